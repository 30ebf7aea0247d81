package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"culm/events"
)

// Difference is one thing in a view that the log does not say.
type Difference struct {
	Session string `json:"session"`
	View    string `json:"view"`
	Key     string `json:"key"`    // of the row within the session
	Column  string `json:"column"` // "" for a whole row
	Got     string `json:"got"`    // in the view; "" for a row that is missing
	Want    string `json:"want"`   // by the fold of the log; "" for a row too many
}

func (d Difference) String() string {
	s := fmt.Sprintf("%s: view %s, row %q", d.Session, d.View, d.Key)
	if d.Column != "" {
		s += ", column " + d.Column
	}
	return fmt.Sprintf("%s: is %q, must be %q", s, clip(d.Got, 200), clip(d.Want, 200))
}

// CheckReport says what a check has looked at.
type CheckReport struct {
	Sessions    int // compared
	Events      uint64
	Rows        int
	Differences int
	Behind      uint64 // events of the log that the views do not have yet
	Parked      []Parked
}

// Parked is a session whose next event could not be applied.
type Parked struct {
	Session string `json:"session"`
	Seq     uint64 `json:"sequence"` // of that event
	Code    string `json:"code"`
	Reason  string `json:"reason"`
}

// CheckOptions say what to check against what.
type CheckOptions struct {
	File string
	Log  events.Log
	// Settle is how long a projector that runs meanwhile may take to notice that
	// a session was deleted or created again; until then that is no difference.
	Settle time.Duration
	// Progress, if not nil, is told now and then how many sessions are left.
	Progress func(left int)
}

// Check compares every row of every view with the log. What the rows must be
// follows from aggregate's fold, event by event; nothing of how the projector
// makes them is used. It reads the views as of one moment, each session up to
// its checkpoint, so a projector may run meanwhile. report is called for each
// difference.
func Check(ctx context.Context, o CheckOptions, report func(Difference)) (CheckReport, error) {
	c := &checker{o: o, report: report}
	if _, err := os.Stat(o.File); errors.Is(err, fs.ErrNotExist) {
		return c.out, fmt.Errorf("check: there is no database %s; projector run makes it", o.File)
	} else if err != nil {
		return c.out, fmt.Errorf("check: %w", err)
	}
	db, err := openReader(o.File)
	if err != nil {
		return c.out, fmt.Errorf("check %s: %w", o.File, err)
	}
	defer db.Close()
	c.db = db
	if c.tx, err = db.BeginTx(ctx, nil); err != nil {
		return c.out, fmt.Errorf("check %s: %w", o.File, err)
	}
	defer func() { _ = c.tx.Rollback() }() // it has only read
	if err := c.all(ctx); err != nil {
		return c.out, fmt.Errorf("check %s: %w", o.File, err)
	}
	return c.out, nil
}

type checker struct {
	o      CheckOptions
	db     *sql.DB
	tx     *sql.Tx // what is checked
	report func(Difference)
	out    CheckReport
	lost   map[string]bool // sessions whose log is damaged: that does not settle
}

func (c *checker) differ(d Difference) {
	c.out.Differences++
	if c.report != nil {
		c.report(d)
	}
}

func (c *checker) all(ctx context.Context) error {
	stale, _, err := staleViews(ctx, c.tx, views)
	if err != nil {
		return err
	}
	for _, v := range stale {
		c.differ(Difference{View: v.name, Column: "version", Got: "another", Want: fmt.Sprint(v.version)})
	}
	checkpoints, err := scanAll(ctx, c.tx, checkpointsTable, "true ORDER BY session")
	if err != nil {
		return err
	}
	infos, err := c.o.Log.Sessions(ctx)
	if err != nil {
		return err
	}
	logged := map[string]uint64{}
	c.lost = map[string]bool{}
	for _, i := range infos {
		c.lost[i.Session] = i.Lost > 0
		logged[i.Session] = i.LastSeq
	}
	told := time.Now()
	for i, cp := range checkpoints {
		if err := c.session(ctx, cp); err != nil {
			return err
		}
		seq := uint64(cp.Seq) //nolint:gosec // was a sequence
		c.out.Behind += max(logged[cp.Session], seq) - seq
		delete(logged, cp.Session)
		if c.o.Progress != nil && time.Since(told) > 2*time.Second {
			told = time.Now()
			c.o.Progress(len(checkpoints) - i - 1)
		}
	}
	for session, last := range logged {
		c.out.Behind += last
		if err := c.nothing(ctx, session); err != nil {
			return err
		}
	}
	return c.index(ctx)
}

// nothing says that no view has rows of a session without a checkpoint.
func (c *checker) nothing(ctx context.Context, session string) error {
	for _, v := range views {
		var n int
		if err := c.tx.QueryRowContext(ctx, "SELECT count(*) FROM "+v.tables[0]+" WHERE session = ?", session).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			c.differ(Difference{Session: session, View: v.name, Got: fmt.Sprint(n, " rows without a checkpoint")})
		}
	}
	return nil
}

// index says that every message is in the index of words.
func (c *checker) index(ctx context.Context) error {
	var messages, indexed string
	err := c.tx.QueryRowContext(ctx, "SELECT count(*), (SELECT count(*) FROM messages_fts_docsize) FROM messages").Scan(&messages, &indexed)
	if err == nil && messages != indexed {
		c.differ(Difference{View: "messages", Column: "index of words", Got: indexed, Want: messages})
	}
	return err
}

func (c *checker) session(ctx context.Context, cp *checkpointRow) error {
	if cp.StuckSeq > 0 {
		c.out.Parked = append(c.out.Parked, Parked{cp.Session, uint64(cp.StuckSeq), cp.StuckCode, cp.StuckReason}) //nolint:gosec // was a sequence
	}
	x, err := c.expect(ctx, cp)
	var bad *foldError
	if errors.As(err, &bad) {
		if !c.lost[cp.Session] && c.settles(ctx, cp) {
			return nil
		}
		c.differ(Difference{Session: cp.Session, View: "checkpoints", Key: fmt.Sprint(cp.Seq), Got: "applied", Want: bad.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	c.out.Sessions++
	c.out.Events += uint64(len(x.timeline))
	return errors.Join(
		compare(ctx, c, sessionsTable, cp.Session, x.sessions),
		compare(ctx, c, runsTable, cp.Session, x.runs),
		compare(ctx, c, loopsTable, cp.Session, x.loops),
		compare(ctx, c, roundsTable, cp.Session, x.rounds),
		compare(ctx, c, messagesTable, cp.Session, x.messages),
		compare(ctx, c, toolsTable, cp.Session, x.tools),
		compare(ctx, c, approvalsTable, cp.Session, x.approvals),
		compare(ctx, c, usageTable, cp.Session, x.usage),
		compare(ctx, c, timelineTable, cp.Session, x.timeline),
	)
}

// settles says that the projector moves, within the time it has, the checkpoint
// of a session whose log is another now.
func (c *checker) settles(ctx context.Context, cp *checkpointRow) bool {
	for end := time.Now().Add(c.o.Settle); time.Now().Before(end); {
		now := checkpointRow{}
		err := scanOne(ctx, c.db, checkpointsTable, &now, "session = ?", cp.Session)
		if errors.Is(err, sql.ErrNoRows) || err == nil && now.Hash != cp.Hash {
			return true
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// foldError: the log up to the checkpoint does not fold, or is not the one that
// the views were made from.
type foldError struct{ why string }

func (e *foldError) Error() string { return e.why }

func (c *checker) expect(ctx context.Context, cp *checkpointRow) (*expected, error) {
	x := newExpected(cp)
	if cp.Seq > 0 {
		for r, err := range c.o.Log.Read(ctx, cp.Session, 0, uint64(cp.Seq)) { //nolint:gosec // was a sequence
			switch {
			case errors.Is(err, events.ErrNotFound):
				return nil, &foldError{"the log has no such session"}
			case err != nil:
				return nil, err
			}
			if err := x.step(r); err != nil {
				return nil, &foldError{err.Error()}
			}
		}
	}
	if x.state.Head.Hash != cp.Hash || clamp(x.state.Head.Seq) != cp.Seq {
		return nil, &foldError{"the log has another event there, or none"}
	}
	x.finish(cp)
	return x, nil
}

// compare compares the rows of one table and session.
func compare[T any](ctx context.Context, c *checker, m *mapper[T], session string, want []*T) error {
	rows, err := scanAll(ctx, c.tx, m, "session = ?", session)
	if err != nil {
		return err
	}
	got := map[string]*T{}
	for _, row := range rows {
		got[m.key(row)] = row
	}
	c.out.Rows += len(rows)
	for _, w := range want {
		key := m.key(w)
		g := got[key]
		delete(got, key)
		if g == nil {
			c.differ(Difference{Session: session, View: m.table, Key: key, Want: fmt.Sprintf("%+v", *w)})
			continue
		}
		gv, wv := reflect.ValueOf(g).Elem(), reflect.ValueOf(w).Elem()
		for i, column := range m.cols {
			if a, b := gv.Field(i).Interface(), wv.Field(i).Interface(); a != b && !(m.table == "timeline" && column == "text" && a != "") {
				c.differ(Difference{Session: session, View: m.table, Key: key, Column: column, Got: fmt.Sprint(a), Want: fmt.Sprint(b)})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		c.differ(Difference{Session: session, View: m.table, Key: key, Got: fmt.Sprintf("%+v", *got[key])})
	}
	return nil
}

// key spells a row's key within its session.
func (m *mapper[T]) key(row *T) string {
	v := reflect.ValueOf(row).Elem()
	var parts []string
	for i, c := range m.cols {
		if c != "session" && slices.Contains(m.keys, c) {
			parts = append(parts, fmt.Sprint(v.Field(i).Interface()))
		}
	}
	return strings.Join(parts, " ")
}
