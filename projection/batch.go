package projection

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"culm/events"
)

// batch is what the next transaction writes.
type batch struct {
	sessions []*tracked
	events   int
	since    time.Time
}

// catchUpFactor is how much longer a batch may take while nobody waits for
// live events yet: larger ones cost less.
const catchUpFactor = 25

// full says that the batch is to be committed although more events wait.
func (a *applier) full() bool {
	b := &a.batch
	return b.events >= a.p.opts.BatchEvents || b.events > 0 && time.Since(b.since) >= a.delay()
}

// delay is how long an event may wait for others to share its transaction.
func (a *applier) delay() time.Duration {
	if !a.ready {
		return catchUpFactor * a.p.opts.BatchDelay
	}
	return a.p.opts.BatchDelay
}

// touch takes the session into the batch, with its rows in memory.
func (a *applier) touch(t *tracked) error {
	if t.live == nil {
		l, err := loadLive(a.w.ctx, a.w.db.write, t.session)
		if err != nil {
			return err
		}
		t.live = l
		if !t.cached {
			t.cached = true
			a.cached = append(a.cached, t)
		}
	}
	if !t.batched {
		t.batched = true
		a.batch.sessions = append(a.batch.sessions, t)
		if a.batch.since.IsZero() {
			a.batch.since = time.Now()
		}
	}
	return nil
}

// apply puts one event that fits the head into the batch. What fails parks the
// session; the error is of the database.
func (a *applier) apply(t *tracked, d decoded) error {
	if err := a.touch(t); err != nil {
		return err
	}
	if err := safely(t.live, &d); err != nil {
		// The rows in memory may be half changed: go back to what is committed
		// and forward again to the event before this one.
		if err := a.redo(t); err != nil {
			return err
		}
		return a.park(t, d.rec.Seq, fmt.Errorf("%w: %w", errView, err))
	}
	t.live.row.StuckSeq, t.live.row.StuckReason = 0, ""
	if t.live.row.Status == sessionStuck {
		t.live.row.Status = t.live.status()
	}
	a.moved(t, &d)
	t.applied = append(t.applied, d)
	a.batch.events++
	return nil
}

func (a *applier) moved(t *tracked, d *decoded) {
	t.head, t.at = d.head(), nanos(d.ev.Time)
	t.mark = a.p.stats.applied.Add(1)
	if t.head.Seq <= t.seen {
		a.behind(-1)
	}
}

// flush commits the batch.
func (a *applier) flush() error {
	b := &a.batch
	if len(b.sessions) == 0 {
		return nil
	}
	err := a.w.transact(func() error {
		for _, t := range b.sessions {
			if err := a.writeSession(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrTaken) {
		err = a.flushEach(err)
	}
	if err != nil {
		return err
	}
	a.committed()
	return nil
}

// Bounds of what stays in memory of sessions between two batches, in bytes: of
// one, and of all together.
const (
	maxKept    = 64 << 10
	maxKeptAll = 16 << 20
	rowsKept   = 4 << 10 // of a session without its texts, about
)

// size is about what the session's rows take, in bytes.
func (l *live) size() int {
	n := rowsKept + len(l.row.Title) + len(l.row.Metadata)
	if l.loop != nil {
		n += len(l.loop.Objective)
	}
	for _, c := range l.calls {
		n += len(c.Arguments) + len(c.Error)
	}
	for _, i := range l.items {
		n += len(i.Question) + len(i.Request)
	}
	return n
}

// committed tells who waits, and lets go of what is not needed any more.
func (a *applier) committed() {
	b := &a.batch
	for _, t := range b.sessions {
		t.batched, t.applied = false, nil
		t.live.out = changes{}
		a.keep(t)
		reason := ""
		if t.stuck != nil {
			reason = t.stuck.reason
		}
		a.p.pos.set(t.session, position{t.head.Seq, reason})
	}
	a.p.stats.batches.Add(1)
	*b = batch{sessions: b.sessions[:0]}
	a.letGo()
}

// keep counts what the session takes; one that takes too much is read back
// when it is needed.
func (a *applier) keep(t *tracked) {
	size := t.live.size()
	if size > maxKept {
		t.live, size = nil, 0
	}
	a.kept += size - t.kept
	t.kept = size
}

// letGo forgets the rows of the sessions that have been in memory for longest,
// while all together are too many.
func (a *applier) letGo() {
	n := 0
	for ; len(a.cached)-n > a.p.opts.Sessions || a.kept > maxKeptAll; n++ {
		t := a.cached[n]
		a.kept -= t.kept
		t.live, t.cached, t.kept = nil, false, 0
	}
	a.cached = slices.Delete(a.cached, 0, n)
}

func (a *applier) writeSession(t *tracked) error {
	if err := a.w.write(t.live); err != nil {
		return fmt.Errorf("session %s: %w", t.session, err)
	}
	return a.w.put(checkpointsUpsert, checkpointsTable.values(t.checkpoint()))
}

func (t *tracked) checkpoint() *checkpointRow {
	c := &checkpointRow{Session: t.session, Birth: t.head.Birth, Seq: clamp(t.head.Seq), Hash: t.head.Hash, EventID: t.head.ID, At: t.at}
	if t.stuck != nil {
		c.StuckSeq, c.StuckCode, c.StuckReason = clamp(t.stuck.seq), t.stuck.code, t.stuck.reason
	}
	return c
}

// reset removes what the views hold of a session, because the log has another
// history of it or none.
func (a *applier) reset(t *tracked, n answer) error {
	if err := a.flush(); err != nil {
		return err
	}
	switch {
	case t.head.Seq == 0 && t.stuck == nil:
	case n.gone:
		a.p.opts.Logger.Debug("the log has the session no more", "session", t.session, "seq", t.head.Seq)
	default:
		a.p.opts.Logger.Warn("views of a session are computed anew", "session", t.session, "seq", t.head.Seq, "reason", n.reset)
		a.p.stats.resets.Add(1)
	}
	a.p.pos.set(t.session, position{})
	err := a.w.transact(func() error {
		if err := a.w.remove(t.session); err != nil {
			return err
		}
		return a.w.put("DELETE FROM checkpoints WHERE session = ?", []any{t.session})
	})
	if err != nil {
		return fmt.Errorf("reset %s: %w", t.session, err)
	}
	if t.live != nil {
		t.live = newLive(t.session)
	}
	if t.stuck == nil {
		a.behind(-t.ahead())
	}
	t.head, t.at, t.seen, t.stuck, t.retried, t.gone = events.Head{}, 0, 0, nil, false, n.gone
	if n.gone && a.p.opts.Gone != nil {
		a.p.opts.Gone(t.session)
	}
	return nil
}
