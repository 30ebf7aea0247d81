package projection

import (
	"errors"
	"fmt"

	"culm/events"
)

// flushEach commits a batch that failed as a whole event by event, so that
// only the session of the event that SQL refuses is parked. If not even that
// can be written, the fault is the database's: it returns why.
func (a *applier) flushEach(why error) error {
	a.p.opts.Logger.Warn("a batch failed and is tried again event by event", "err", why)
	for _, t := range a.batch.sessions {
		l, err := loadLive(a.w.ctx, a.w.db.write, t.session)
		if err != nil {
			return errors.Join(why, err)
		}
		last := t.head
		events := t.applied
		t.live, t.applied = l, nil
		if err := a.loadHead(t); err != nil {
			return errors.Join(why, err)
		}
		if t.stuck == nil {
			a.behind(int64(last.Seq - t.head.Seq)) //nolint:gosec // a difference of sequences: they are to be applied again
		}
		if err := a.eachEvent(t, events); err != nil {
			return err
		}
		if t.stuck == nil && t.head != last {
			return fmt.Errorf("session %s is at %d instead of %d: %w", t.session, t.head.Seq, last.Seq, why)
		}
	}
	return nil
}

func (a *applier) eachEvent(t *tracked, events []decoded) error {
	write := func() error { return a.w.transact(func() error { return a.writeSession(t) }) }
	for _, d := range events {
		before := t.head
		err := safely(t.live, &d)
		if err == nil {
			t.head, t.at = d.head(), nanos(d.ev.Time)
			err = write()
		}
		if err == nil {
			if t.stuck == nil {
				a.behind(-1)
			}
			t.live.out = changes{}
			continue
		}
		if errors.Is(err, ErrTaken) {
			return err
		}
		t.head = before
		l, loadErr := loadLive(a.w.ctx, a.w.db.write, t.session)
		if loadErr != nil {
			return errors.Join(err, loadErr)
		}
		t.live = l
		if err := a.park(t, d.rec.Seq, fmt.Errorf("%w: %w", errView, err)); err != nil {
			return err
		}
		break
	}
	return write()
}

// loadHead sets the session's head to the committed checkpoint.
func (a *applier) loadHead(t *tracked) error {
	rows, err := scanAll(a.w.ctx, a.w.db.write, checkpointsTable, "session = ?", t.session)
	t.head, t.at = events.Head{}, 0
	if err == nil && len(rows) == 1 && rows[0].Seq > 0 {
		c := rows[0]
		t.head = events.Head{Seq: uint64(c.Seq), Hash: c.Hash, ID: c.EventID, Birth: c.Birth, Session: c.Session} //nolint:gosec // was a sequence
		t.at = c.At
	}
	return err
}
