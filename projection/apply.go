package projection

import (
	"errors"
	"fmt"

	"culm/events"
)

// apply sets the rows that the event changes. The chain has been checked. On
// an error, or a panic, the live session is not to be used any more.
func (l *live) apply(e *events.Event, size int) error {
	r := &l.row
	if r.FirstSeq == 0 {
		r.FirstSeq, r.Birth = clamp(e.Seq), e.Birth
	}
	r.Seq, r.UpdatedAt, r.LastType, r.LastActor = clamp(e.Seq), nanos(e.Time), e.Type, e.Actor
	l.timeline(e, size)
	if e.Data != nil {
		if err := l.applyData(e); err != nil {
			return err
		}
	}
	l.mirror()
	return nil
}

func (l *live) applyData(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.SessionCreated, events.SessionConfigured, events.SessionModeChanged, events.SessionPlanEntered,
		events.SessionPlanExited, events.SessionClosed:
		return l.applySession(e)
	case events.MessageSubmitted:
		l.person(e, &d.UserMessage)
	case events.RunRequested, events.RunStarted, events.RunRefused, events.RunCancelRequested, events.RunBudgetExhausted,
		events.RunInterrupted, events.RunFinished:
		return l.applyRun(e)
	case events.RoundStarted, events.RoundFinished, events.RoundFailed:
		return l.applyRound(e)
	case events.LoopStopRequested, events.LoopStopped, events.LoopBudgetExhausted, events.LoopRecoveryRefused, events.LoopAbandoned:
		return l.applyLoop(e)
	case events.ToolAuthorized, events.ToolDenied, events.ToolStarted, events.ToolFinished, events.ToolParked,
		events.ReplayStarted, events.ReplayFinished, events.ReplayBlocked, events.ReplayReparked:
		return l.applyCall(e)
	case events.ApprovalDecided, events.QuestionAnswered, events.QuestionExpired, events.ToolResolved:
		l.applyDecision(e)
	case events.NoteAppended, events.PolicyModeChanged, events.PolicyRuleAdded, events.PolicyRuleRemoved:
	default:
		return fmt.Errorf("no view knows what to do with %T", d)
	}
	return nil
}

func (l *live) applySession(e *events.Event) error {
	r := &l.row
	switch d := e.Data.(type) {
	case events.SessionCreated:
		r.Kind, r.CreatedAt, r.Mode = d.Kind, nanos(e.Time), d.Mode
		r.ReadOnly, r.NoHumanApprover, r.EnforcePolicy = d.ReadOnly, d.NoHumanApprover, d.EnforcePolicy
		if d.Parent != nil {
			r.ParentSession, r.ParentCall = d.Parent.Session, d.Parent.ToolCallID
		}
		r.EffectiveMode = d.EffectiveMode
		l.settings(&d.Settings)
	case events.SessionConfigured:
		l.settings(&d.Settings)
	case events.SessionModeChanged:
		r.Mode, r.EffectiveMode = d.Mode, d.EffectiveMode
	case events.SessionPlanEntered:
		r.Plan, r.EffectiveMode = true, d.EffectiveMode
	case events.SessionPlanExited:
		r.Plan, r.EffectiveMode = false, d.EffectiveMode
	case events.SessionClosed:
		l.voidCalls(e, d.Voided)
		l.unknownCalls(e, d.Unknown)
		for len(l.items) > 0 { // the rules take no decision any more: nothing waits
			l.decide(e, l.items[0], "session_closed")
		}
		l.endRun(e, runCancelled, "session_closed", nil)
		r.Closed = true
		return l.setLoop(e, d.Loop)
	}
	return nil
}

func (l *live) settings(s *events.Settings) {
	r := &l.row
	r.Title, r.ReasoningEffort, r.Workspace, r.Metadata = s.Title, s.ReasoningEffort, s.Workspace, ""
	r.Provider, r.Model = "", ""
	if s.Model != nil {
		r.Provider, r.Model = s.Model.Provider, s.Model.Model
	}
	if len(s.Metadata) > 0 {
		r.Metadata = text(s.Metadata)
	}
}

// errOtherLoop: an event speaks of a loop that is not the session's newest.
var errOtherLoop = errors.New("the event's loop is not the session's newest")

// setLoop takes over how the loop stands after the event.
func (l *live) setLoop(e *events.Event, w *events.Loop) error {
	o := l.loop
	if w == nil || o == nil {
		return nil
	}
	if o.Generation != w.Generation {
		return fmt.Errorf("%w: %s is not %s", errOtherLoop, w.Generation, o.Generation)
	}
	o.Revision, o.Status, o.Reason = clamp(w.Revision), string(w.Status), w.Reason
	o.IterationsStarted, o.IterationsCompleted, o.RoundsStarted = int64(w.IterationsStarted), int64(w.IterationsCompleted), int64(w.RoundsStarted)
	o.UpdatedSeq, o.UpdatedAt = clamp(e.Seq), nanos(e.Time)
	l.out.loops.add(o)
	return nil
}

func (l *live) applyLoop(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.LoopStopRequested:
		if d.Loop == nil {
			l.voidCalls(e, d.Voided)
			l.endRun(e, runStopped, "stop_requested", nil)
			return nil
		}
		if l.loop != nil {
			l.loop.StopRequested = true
		}
		return l.setLoop(e, d.Loop)
	case events.LoopStopped:
		return l.setLoop(e, &d.Loop)
	case events.LoopBudgetExhausted:
		return l.setLoop(e, &d.Loop)
	case events.LoopRecoveryRefused:
		return l.setLoop(e, &d.Loop)
	case events.LoopAbandoned:
		if l.loop != nil {
			l.loop.Abandoned = true
		}
		return l.setLoop(e, &d.Loop)
	}
	return nil
}

// mirror copies into the session's row what lists show of run, loop and items.
func (l *live) mirror() {
	r := &l.row
	r.RunID, r.RunStatus, r.RunCause, r.Runner, r.CancelRequested, r.Round = "", "", "", "", false, -1
	if n := l.run; n != nil {
		r.RunID, r.RunStatus, r.RunCause, r.Runner, r.CancelRequested, r.Round = n.RunID, n.Status, n.Cause, n.Runner, n.CancelRequested, n.Rounds-1
	}
	if o := l.loop; o != nil {
		r.LoopGeneration, r.LoopStatus, r.LoopReason = o.Generation, o.Status, o.Reason
		r.IterationsStarted, r.IterationsCompleted, r.MaxIterations = o.IterationsStarted, o.IterationsCompleted, o.MaxIterations
		r.RoundsStarted, r.MaxTotalRounds = o.RoundsStarted, o.MaxTotalRounds
	}
	r.Waiting, r.WaitingSince = int64(len(l.items)), 0
	for i, item := range l.items {
		if i == 0 || item.SinceAt < r.WaitingSince {
			r.WaitingSince = item.SinceAt
		}
	}
	r.Status = l.status()
}

func (l *live) timeline(e *events.Event, size int) {
	call, message := subjects(e.Data)
	l.out.timeline.add(&timelineRow{
		Session: e.Session, Seq: clamp(e.Seq), At: nanos(e.Time), EventID: e.ID, Type: e.Type, Actor: e.Actor, Command: e.Command,
		RunID: e.Run, ToolCallID: call, MessageID: message, Bytes: int64(size), Text: words(e),
	})
}
