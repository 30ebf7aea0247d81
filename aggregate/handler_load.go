package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"culm/events"
)

// errLogShrank: the log ends before an event that this engine has seen in it:
// somebody restored or cut it. Nothing is written to the session until the
// engine is restarted.
var errLogShrank = fmt.Errorf("%w: the log is shorter than it was", ErrMalformedState)

// load makes sure that the actor has a state: from memory, or by folding the
// session's log. It returns events.ErrNotFound for a session without events.
func (h *Handler) load(ctx context.Context, a *actor) error {
	switch {
	case a.broken != nil:
		return a.broken
	case a.state != nil:
		return nil
	}
	s, err := Fold(h.opts.Log.Read(ctx, a.session, 0, 0))
	switch {
	case errors.Is(err, ErrMalformedState):
		h.opts.Logger.Error("session refused", "session", a.session, "err", err)
		return err
	case err != nil:
		return err
	case !s.Exists():
		return events.ErrNotFound
	}
	a.state, a.ticket = s, h.opts.Barrier.Mark()
	return nil
}

// catchUp folds on what other engines have appended. A session that was
// deleted or born again meanwhile is loaded anew.
func (h *Handler) catchUp(ctx context.Context, a *actor) error {
	if a.state == nil {
		return h.load(ctx, a)
	}
	err := a.state.FoldOn(h.opts.Log.Read(ctx, a.session, a.state.Head.Seq, 0))
	if err == nil {
		a.ticket = h.opts.Barrier.Mark()
		return nil
	}
	a.forget()
	if errors.Is(err, ErrMalformedState) || errors.Is(err, events.ErrNotFound) {
		return h.load(ctx, a)
	}
	return err
}

// secondLook is how long a log that ends too early is given to show the rest.
const secondLook = 500 * time.Millisecond

// last is the log's last sequence, known to be at least seen. A replica that has
// just become leader may answer, for a moment, without the end that it has to
// catch up with: so the log is looked at twice before it is shorter than it was.
func (h *Handler) last(ctx context.Context, session string, seen uint64) (uint64, error) {
	last, err := h.opts.Log.Last(ctx, session)
	if err != nil || last >= seen {
		return last, err
	}
	timer := time.NewTimer(secondLook)
	defer timer.Stop()
	select {
	case <-timer.C:
		return h.opts.Log.Last(ctx, session)
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
	}
}

// current makes sure that no event was in the log, when the call began, that
// the state does not hold; moved says that there was one and the decision must
// be taken again. A refusal decided on an old state would otherwise be wrong.
func (h *Handler) current(ctx context.Context, a *actor) (moved bool, err error) {
	last, err := h.last(ctx, a.session, a.state.Head.Seq)
	switch {
	case errors.Is(err, events.ErrNotFound):
		a.forget()
		return true, nil
	case err != nil:
		return false, err
	case last == a.state.Head.Seq:
		return false, nil
	case last < a.state.Head.Seq:
		a.broken = fmt.Errorf("session %s ends at %d after %d was seen: %w", a.session, last, a.state.Head.Seq, errLogShrank)
		h.opts.Logger.Error("session refused", "session", a.session, "seq", last, "err", a.broken)
		a.forget()
		return false, a.broken
	}
	return true, h.catchUp(ctx, a)
}

// conflicted folds on what was appended first by somebody else. If there is
// nothing, the log may be shorter than the state: then it is broken.
func (h *Handler) conflicted(ctx context.Context, a *actor) error {
	if a.state == nil {
		return h.load(ctx, a)
	}
	before := a.state.Head
	if err := h.catchUp(ctx, a); err != nil || a.state.Head != before {
		return err
	}
	_, err := h.current(ctx, a)
	return err
}
