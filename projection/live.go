package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"

	"culm/events"
)

// live is what the projector knows of one session between two events: the rows
// that later events can still change. All of it can be read back from the
// database (loadLive). Not safe for concurrent use.
type live struct {
	row   sessionRow
	run   *runRow   // requested, live or suspended
	loop  *loopRow  // the newest
	round *roundRow // open
	calls []*callRow
	items []*itemRow // that wait for a person
	out   changes
}

// changes are the rows to be written with the next transaction.
type changes struct {
	runs     rowSet[runRow]
	loops    rowSet[loopRow]
	rounds   rowSet[roundRow]
	messages rowSet[messageRow]
	calls    rowSet[callRow]
	items    rowSet[itemRow]
	usage    rowSet[usageRow]
	timeline rowSet[timelineRow]
}

func newLive(session string) *live {
	return &live{row: sessionRow{Session: session, Round: -1, Status: sessionIdle}}
}

// loadLive reads back what is known of a session; a session without rows is new.
func loadLive(ctx context.Context, db *sql.Conn, session string) (*live, error) {
	l := newLive(session)
	err := scanOne(ctx, db, sessionsTable, &l.row, "session = ?", session)
	if errors.Is(err, sql.ErrNoRows) {
		return l, nil
	}
	if err == nil && l.row.RunID != "" {
		l.run = &runRow{}
		err = scanOne(ctx, db, runsTable, l.run, "session = ? AND run_id = ?", session, l.row.RunID)
	}
	if err == nil && l.row.LoopGeneration != "" {
		l.loop = &loopRow{}
		err = scanOne(ctx, db, loopsTable, l.loop, "session = ? AND generation = ?", session, l.row.LoopGeneration)
	}
	if err == nil && l.row.Round >= 0 {
		err = l.loadRound(ctx, db)
	}
	if err == nil && l.row.AnswerID != "" {
		l.calls, err = scanAll(ctx, db, toolsTable, "session = ? AND answer_id = ? ORDER BY idx", session, l.row.AnswerID)
	}
	if err == nil && l.row.Waiting > 0 {
		l.items, err = scanAll(ctx, db, approvalsTable, "session = ? AND status = 'pending' ORDER BY since_seq, idx", session)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", session, err)
	}
	return l, nil
}

func (l *live) loadRound(ctx context.Context, db *sql.Conn) error {
	r := &roundRow{}
	err := scanOne(ctx, db, roundsTable, r, "session = ? AND run_id = ? AND round = ?", l.row.Session, l.row.RunID, l.row.Round)
	if err == nil && r.Status == roundOpen {
		l.round = r
	}
	return err
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func scanOne[T any](ctx context.Context, db querier, m *mapper[T], row *T, where string, args ...any) error {
	return db.QueryRowContext(ctx, m.selects()+" WHERE "+where, args...).Scan(m.pointers(row)...)
}

func scanAll[T any](ctx context.Context, db querier, m *mapper[T], where string, args ...any) (out []*T, err error) {
	rows, err := db.QueryContext(ctx, m.selects()+" WHERE "+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row := new(T)
		if err := rows.Scan(m.pointers(row)...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// status is the first of the statuses of a session that holds.
func (l *live) status() string {
	r := &l.row
	switch {
	case r.StuckSeq > 0:
		return sessionStuck
	case r.Closed:
		return sessionClosed
	case r.RunStatus == runLive:
		return sessionRunning
	case r.RunStatus == runRequested:
		return sessionRequested
	case len(l.items) > 0:
		return sessionWaiting
	case l.blocked():
		return sessionBlocked
	case r.LastOutcome == runFailed || r.LastOutcome == runRefused || r.LastOutcome == runInterrupted:
		return sessionFailed
	}
	return sessionIdle
}

// blocked says that the loop refuses activations: it ended without a known
// outcome, or looks live while its owner is gone.
func (l *live) blocked() bool {
	o := l.loop
	if o == nil || o.Abandoned {
		return false
	}
	ownerGone := l.run == nil || l.run.RunID != o.Owner
	return o.Status == string(events.StatusRecoveryUnsupported) || events.LoopStatus(o.Status).Live() && ownerGone
}

// clamp keeps a count within what SQL has numbers for.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // bounded

// nanos is t as the views keep times: 0 for none, and the nearest that can be
// told for times beyond the years 1678 to 2261.
func nanos(t time.Time) int64 {
	switch y := t.Year(); {
	case t.IsZero():
		return 0
	case y < 1678:
		return math.MinInt64
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// text spells a value of an event as JSON; nothing an event holds fails to.
func text(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("spell %T: %v", v, err))
	}
	return string(b)
}

// resultID is the occurrence of a call: the id of the message that its result
// will have.
func resultID(answer string, index int) string { return fmt.Sprintf("%s.%d", answer, index) }
