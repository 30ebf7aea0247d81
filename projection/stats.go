package projection

import (
	"context"
	"database/sql"
	"time"
)

// Stats is how the projector is doing, for metrics and health.
type Stats struct {
	Ready    bool   // has caught up since it was started
	Applied  uint64 // events since the start
	Batches  uint64 // transactions since the start
	Resets   uint64 // sessions computed anew because the log was another
	Reading  int    // sessions that are being read from the log, or wait for that
	Views    []ViewStats
	Parked   []Parked
	Sessions map[string]int // by status
	// Waiting counts the items that wait for a person; OldestWaiting is how long
	// the oldest does.
	Waiting       int
	OldestWaiting time.Duration
}

// ViewStats is how far one view is behind the log.
type ViewStats struct {
	Name       string
	Version    int
	LagEvents  int64         // known and not in the view
	Lag        time.Duration // since when there are such events
	Rebuilding bool
}

// Stats looks. The lag is of all sessions together but the parked ones, which
// stand in Parked.
func (p *Projector) Stats(ctx context.Context) (Stats, error) {
	s := Stats{
		Applied: p.stats.applied.Load(), Batches: p.stats.batches.Load(), Resets: p.stats.resets.Load(), Reading: int(p.stats.reading.Load()),
		Sessions: map[string]int{},
	}
	select {
	case <-p.ready:
		s.Ready = true
	default:
	}
	lag := ViewStats{LagEvents: max(0, p.stats.behind.Load())}
	if since := p.stats.behindSince.Load(); since > 0 && lag.LagEvents > 0 {
		lag.Lag = max(0, p.opts.Now().Sub(time.Unix(0, since)))
	}
	for _, v := range p.opts.views {
		lag.Name, lag.Version = v.name, v.version
		_, lag.Rebuilding = p.stats.rebuilding.Load(v.name)
		s.Views = append(s.Views, lag)
	}
	return s, p.look(ctx, func(tx *sql.Tx) error { return p.count(ctx, tx, &s) })
}

func (p *Projector) count(ctx context.Context, tx *sql.Tx, s *Stats) error {
	parked, err := scanAll(ctx, tx, checkpointsTable, "stuck_seq > 0 ORDER BY session")
	if err != nil {
		return err
	}
	for _, c := range parked {
		s.Parked = append(s.Parked, Parked{c.Session, uint64(c.StuckSeq), c.StuckCode, c.StuckReason}) //nolint:gosec // was a sequence
	}
	var oldest sql.NullInt64
	if err := tx.QueryRowContext(ctx, "SELECT count(*), min(since_at) FROM approvals WHERE status = 'pending'").Scan(&s.Waiting, &oldest); err != nil {
		return err
	}
	s.OldestWaiting = time.Duration(p.ageMS(oldest.Int64)) * time.Millisecond
	rows, err := tx.QueryContext(ctx, "SELECT status, count(*) FROM sessions GROUP BY status")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var status string
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return err
		}
		s.Sessions[status] = n
	}
	return rows.Err()
}
