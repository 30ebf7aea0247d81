package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/events"
	"culm/internal/show"
)

// gone says why nothing waits in the session any more: what became of the call,
// or, without one, of whatever waited last.
func (a *app) gone(ctx context.Context, b backend, session, call string) error {
	last := ""
	for r, err := range a.history(ctx, b, session, 0, 0) {
		if err != nil {
			return err
		}
		e, err := events.Decode(r.Payload)
		if err != nil {
			continue
		}
		if text := a.fate(&e, func(c events.CallRef) bool { return call == "" || c.ToolCallID == call || c.MessageID == call }); text != "" {
			last = text
		}
	}
	switch {
	case last != "":
		return fmt.Errorf("nothing waits for a person in %s any more: %s", session, last)
	case call != "":
		return fmt.Errorf("nothing waits for a person in %s, and no call %s ever did", session, show.Clip(show.Clean(call), 80))
	}
	return fmt.Errorf("nothing waits for a person in %s, and nothing ever did", session)
}

// became says what happened to the item since it was read, "" for nothing.
func (a *app) became(ctx context.Context, b backend, it *item) string {
	for r, err := range a.history(ctx, b, it.Session, it.Sequence, 0) {
		if err != nil {
			return ""
		}
		e, err := events.Decode(r.Payload)
		if err != nil {
			continue
		}
		if text := a.fate(&e, func(c events.CallRef) bool { return c.MessageID == it.MessageID }); text != "" {
			return text
		}
	}
	return ""
}

// fate tells an event that ends the waiting of a call that is meant, "" for any
// other event.
func (a *app) fate(e *events.Event, meant func(events.CallRef) bool) string {
	who, since := show.Clean(e.Actor), a.ago(e.Time)
	switch d := e.Data.(type) {
	case events.ApprovalDecided:
		if meant(d.CallRef) {
			return fmt.Sprintf("%s decided %s on %s, %s", who, spoken(d.Decision), toolName(d.CallRef), since) + note(d.Note)
		}
	case events.QuestionAnswered:
		if meant(d.CallRef) {
			return fmt.Sprintf("%s answered %s, %s", who, show.Quote(d.Answer, 80), since)
		}
	case events.ToolResolved:
		if meant(d.CallRef) {
			return fmt.Sprintf("%s said how %s ended, %s", who, toolName(d.CallRef), since)
		}
	case events.QuestionExpired:
		if meant(d.CallRef) {
			return fmt.Sprintf("nobody decided on %s in time, so it expired %s; that is neither an approval nor a denial", toolName(d.CallRef), since)
		}
	case events.RunFinished:
		return voided(d.Voided, meant, "the run ended without it ("+show.Clean(d.Outcome)+"), "+since)
	case events.RunRefused:
		return voided(d.Voided, meant, "the loop was stopped and its run refused ("+show.Clean(d.Code)+"), "+since)
	case events.RunInterrupted:
		return voided(d.Voided, meant, "the loop was stopped and its runner is gone, "+since)
	case events.LoopStopRequested:
		return voided(d.Voided, meant, who+" stopped the loop that would have run it, "+since)
	case events.RunRequested:
		return voided(d.Voided, meant, who+" asked for another run instead, "+since)
	case events.SessionClosed:
		return voided(d.Voided, meant, who+" closed the session, "+since)
	}
	return ""
}

func voided(calls []events.VoidedCall, meant func(events.CallRef) bool, text string) string {
	for _, v := range calls {
		if meant(events.CallRef{ToolCallID: v.ToolCallID, MessageID: v.MessageID}) {
			return text
		}
	}
	return ""
}

func toolName(c events.CallRef) string {
	return fmt.Sprintf("%s (call %s)", show.Clip(show.Clean(c.Name), 40), show.Clip(show.Clean(c.ToolCallID), 64))
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return ": " + show.Quote(text, 120)
}

// spoken is a decision in words: "allow once".
func spoken(decision string) string { return strings.ReplaceAll(show.Clean(decision), "_", " ") }

// tooLate turns a refusal of a decision into what happened instead, where that
// can be seen.
func (a *app) tooLate(ctx context.Context, b backend, it *item, err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || !outdated[r.why.Code] {
		return err
	}
	if text := a.became(ctx, b, it); text != "" {
		r.why.Message = "too late: " + text
	}
	return err
}
