package projection

import (
	"errors"
	"fmt"

	"culm/events"
)

// errView: a view could not take the event. The code of such a park.
var errView = errors.New("view_failed")

// safely applies the event and makes a panic an error.
func safely(l *live, d *decoded) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return applyHook(l, &d.ev, len(d.rec.Payload))
}

// applyHook is live.apply; tests put their failures here.
var applyHook = (*live).apply

// redo reads the session's rows back and applies the batch's events again.
func (a *applier) redo(t *tracked) error {
	l, err := loadLive(a.w.ctx, a.w.db.write, t.session)
	if err != nil {
		return err
	}
	t.live = l
	for _, d := range t.applied {
		if err := safely(t.live, &d); err != nil {
			return fmt.Errorf("%s@%d applied once and not again: %w", t.session, d.rec.Seq, err)
		}
	}
	return nil
}

// park keeps the session where it is, with the reason for people to see.
func (a *applier) park(t *tracked, seq uint64, cause error) error {
	if err := a.touch(t); err != nil {
		return err
	}
	if t.stuck == nil {
		a.behind(-t.ahead())
	}
	t.stuck = &stuck{seq: seq, code: parkCode(cause), reason: clip(oneLine(cause.Error()), 500)}
	r := &t.live.row
	r.StuckSeq, r.StuckReason = clamp(seq), t.stuck.reason
	r.Status = t.live.status()
	a.p.opts.Logger.Error("session parked: an event cannot be applied", "session", t.session, "seq", seq, "err", cause)
	return nil
}

// unpark clears a park of an earlier start whose event is not there any more,
// or was applied.
func (a *applier) unpark(t *tracked) error {
	retried := t.retried
	t.retried = false
	if t.stuck != nil || !retried {
		return nil
	}
	if t.head.Seq == 0 {
		return a.reset(t, answer{reset: "its first event, which could not be applied, is not there any more"})
	}
	if err := a.touch(t); err != nil {
		return err
	}
	r := &t.live.row
	r.StuckSeq, r.StuckReason = 0, ""
	r.Status = t.live.status()
	return nil
}

// parkCode is the code of a park: that of the first known error it wraps.
func parkCode(err error) string {
	for _, known := range []error{
		events.ErrUnknownEvent, events.ErrMalformed, events.ErrGap, events.ErrDoubled, events.ErrOrder, events.ErrHash,
		events.ErrBirth, events.ErrIDOrder, events.ErrPosition,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return errView.Error()
}
