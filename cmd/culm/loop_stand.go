package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

// loopBlocks says that the loop refuses activations: it lost its run or ended
// in the middle of an iteration, and nobody has said yet what becomes of it.
func (v *view) loopBlocks() bool {
	l := v.Loop
	if l == nil || l.Abandoned {
		return false
	}
	return l.Status == events.StatusRecoveryUnsupported || v.orphaned()
}

// orphaned: the loop goes on by its own word, and the run that has it is gone.
func (v *view) orphaned() bool {
	l := v.Loop
	return l != nil && l.Status.Live() && (v.Run == nil || v.Run.RunID != l.OwnerExecutionID)
}

// blockedWhy says why the loop wants a person's word.
func (v *view) blockedWhy() string {
	switch {
	case v.orphaned() || v.Loop.Reason == "owner_lost":
		return "its run was interrupted, and nobody knows how the last step ended" + v.lost()
	case v.Loop.Reason == "parked":
		return "it ended in the middle of an iteration, when a call had to wait for a person"
	}
	return "it ended in the middle of an iteration, and nobody knows how the last step ended" + v.lost()
}

// wayOut is what a person does about a loop that blocks. What waits comes first:
// a loop is not continued past an open call.
func (v *view) wayOut() string {
	session := v.reply.Session
	text := fmt.Sprintf("culm loop continue %[1]s --ack or culm loop abandon %[1]s --ack", session)
	if len(v.Pending) > 0 {
		return fmt.Sprintf("culm pending %s, then %s", session, text)
	}
	return text
}

// lost names the calls whose outcome is unknown.
func (v *view) lost() string {
	var calls []string
	for _, p := range v.Pending {
		if p.Kind == kindUnknown {
			calls = append(calls, fmt.Sprintf("%s (call %s)", show.Clip(show.Clean(p.Name), 40), show.Clip(show.Clean(p.ToolCallID), 64)))
		}
	}
	if len(calls) == 0 {
		return ""
	}
	return ": " + strings.Join(calls, ", ")
}

// stand tells how a loop stands that has neither ended well nor goes on, with
// what to do next; "" for any other.
func (v *view) stand() string {
	l := v.Loop
	if l == nil {
		return ""
	}
	at := fmt.Sprintf("at %d of %d iterations", l.IterationsCompleted, l.MaxIterations)
	switch {
	case v.loopBlocks():
		return fmt.Sprintf("loop blocked %s: %s; next: %s", at, v.blockedWhy(), v.wayOut())
	case l.Status != events.StatusPaused || v.Run != nil && v.Run.Status != "suspended":
		return ""
	case len(v.Pending) > 0:
		return fmt.Sprintf("loop paused %s; next: culm pending %s", at, v.reply.Session)
	}
	return fmt.Sprintf("loop paused %s; next: culm resume %s", at, v.reply.Session)
}

// tellStand ends what was followed with how the loop stands. Without an answer
// there is one line less, nothing else.
func (a *app) tellStand(ctx context.Context, b backend, session string) {
	if a.JSON {
		return
	}
	if v, err := a.viewed(ctx, b, session); err == nil {
		if text := v.stand(); text != "" {
			fmt.Fprintln(a.out, a.wrapped(text))
		}
	}
}

// stopsNothing says why a stop had no effect.
func (a *app) stopsNothing(ctx context.Context, b backend, session string) string {
	if v, err := a.viewed(ctx, b, session); err == nil && v.loopBlocks() {
		return "nothing to stop: " + v.stand()
	}
	return "the loop is stopping or has ended already"
}

// viewed reads how a session stands.
func (a *app) viewed(ctx context.Context, b backend, session string) (*view, error) {
	r, err := a.read(ctx, b, session, aggregate.ReadQuery{})
	if err != nil {
		return nil, err
	}
	return viewOf(r)
}

// whyBlocked turns the refusal that a loop stands in the way into why it does,
// and what to do, where that can be seen.
func (a *app) whyBlocked(ctx context.Context, b backend, err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.why.Code != aggregate.CodeRecoveryUnsupported {
		return err
	}
	v, failed := a.viewed(ctx, b, r.session)
	switch {
	case failed != nil || v.Loop == nil:
	case v.loopBlocks():
		r.why.Message = "the loop blocks the session: " + v.blockedWhy()
		r.hint = v.wayOut()
	default: // it was left in the middle of an iteration, which a person's word ends
		r.hint = fmt.Sprintf("culm run %s \"…\" does both", r.session)
	}
	return err
}
