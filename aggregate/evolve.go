package aggregate

import (
	"culm/events"
)

// Evolve folds one event into the state, in place. It copies what the event
// says and validates nothing: whoever reads a log checks the chain first and
// the state after (Fold). It does not move s.Head, which needs the stored bytes.
func Evolve(s *State, e *events.Event) {
	if e.Command != "" {
		if s.receipts == nil {
			s.receipts = map[string]receipt{}
		}
		s.receipts[e.Command] = receipt{seq: e.Seq, digest: e.CommandDigest}
	}
	switch d := e.Data.(type) {
	case events.SessionCreated, events.SessionConfigured, events.SessionModeChanged, events.SessionPlanEntered,
		events.SessionPlanExited, events.SessionClosed:
		evolveSession(s, e)
	case events.MessageSubmitted:
		s.person(d.UserMessage)
	case events.RunRequested, events.RunStarted, events.RunRefused, events.RunCancelRequested,
		events.RunBudgetExhausted, events.RunInterrupted, events.RunFinished:
		evolveRun(s, e)
	case events.RoundStarted:
		s.loop(d.Loop)
		s.admitted(d.Admission)
	case events.RoundFinished:
		evolveAnswer(s, d)
	case events.RoundFailed:
		if s.Run != nil {
			s.Run.RoundOpen, s.Run.FailedRound = false, true
		}
	case events.LoopStopRequested:
		evolveStop(s, d)
	case events.LoopStopped:
		s.loop(&d.Loop)
	case events.LoopBudgetExhausted:
		s.loop(&d.Loop)
	case events.LoopRecoveryRefused:
		s.loop(&d.Loop)
	case events.LoopAbandoned:
		s.loop(&d.Loop)
		if s.Loop != nil {
			s.Loop.Abandoned = true
		}
	default:
		evolveCall(s, e)
	}
}

func evolveSession(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.SessionCreated:
		s.Session = Session{
			Name: e.Session, Kind: d.Kind, Parent: d.Parent, Created: e.Time, Settings: d.Settings, Mode: d.Mode,
			ReadOnly: d.ReadOnly, NoHumanApprover: d.NoHumanApprover, EnforcePolicy: d.EnforcePolicy, Posture: d.Posture,
		}
	case events.SessionConfigured:
		s.Session.Settings = d.Settings
	case events.SessionModeChanged:
		s.Session.Mode, s.Session.Posture = d.Mode, d.Posture
	case events.SessionPlanEntered:
		s.Session.Plan = &Plan{EnteredAt: e.Time, PrePermissionMode: d.RequestedMode, Reason: d.Reason}
		s.Session.Posture = d.Posture
	case events.SessionPlanExited:
		s.Session.Plan, s.Session.Posture = nil, d.Posture
	case events.SessionClosed:
		s.endRun(d.Loop, d.Voided, d.Unknown)
		s.Session.Closed = true
	}
}

func evolveRun(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		s.void(d.Voided)
		if d.Message != nil {
			s.person(*d.Message)
		}
		if d.Cause == causeUser {
			s.Spent = Spent{Budget: deref(d.Budget)}
			if d.LoopRequest != nil { // for the plain run that may follow a parked loop
				s.Spent.Budget.MaxRounds = d.LoopRequest.MaxTotalRounds
			}
		}
		s.request(d.RunID, d.Cause, d.LoopRequest)
	case events.RunStarted:
		evolveStarted(s, e, d)
	case events.RunRefused:
		s.endRun(d.Loop, d.Voided, d.Unknown)
	case events.RunCancelRequested:
		if s.Run != nil {
			s.Run.CancelRequested = true
		}
	case events.RunBudgetExhausted:
		s.Spent.Exhausted = d.Kind
	case events.RunInterrupted:
		s.endRun(nil, d.Voided, d.Unknown)
	case events.RunFinished:
		s.endRun(d.Loop, d.Voided, d.Unknown)
	}
}

func (s *State) request(id, cause string, loop *events.LoopRequest) {
	s.Run = &Run{ID: id, Status: runRequested, Cause: cause, LoopRequest: loop}
}

func evolveStarted(s *State, e *events.Event, d events.RunStarted) {
	if s.Run == nil {
		s.request(d.RunID, d.Cause, nil)
	}
	s.Run.ID, s.Run.Cause, s.Run.Status = d.RunID, d.Cause, runLive
	s.Run.Runner, s.Run.Fence, s.Run.Primary = d.Runner, e.Seq, d.Roster.Primary
	if m := d.Roster.Primary; s.Session.Model != nil && m.Provider != "" && m.Model != "" {
		s.Session.Model = &events.Model{Provider: m.Provider, Model: m.Model} // as it was resolved
	}
	l := d.Loop
	if l == nil {
		return
	}
	if s.Loop == nil || s.Loop.Generation != l.Generation {
		s.Loop = &Loop{Continued: d.Cause == causeContinue}
	}
	s.Loop.apply(&l.Loop)
	s.Loop.Owner, s.Loop.Objective, s.Loop.OnPark = l.Owner, l.Objective, l.OnPark
	s.Loop.MaxIterations, s.Loop.MaxTotalRounds = l.MaxIterations, l.MaxTotalRounds
}

func evolveStop(s *State, d events.LoopStopRequested) {
	if d.Loop == nil {
		s.Run, s.StoppedRun = nil, d.RunID
		s.void(d.Voided)
		return
	}
	s.loop(d.Loop)
	if s.Loop != nil {
		s.Loop.StopRequested = true
	}
}

func (s *State) loop(w *events.Loop) {
	if w != nil && s.Loop != nil {
		s.Loop.apply(w)
	}
}

// endRun takes away the run; what its calls became is listed.
func (s *State) endRun(loop *events.Loop, voided []events.VoidedCall, unknown []events.UnknownCall) {
	s.loop(loop)
	s.void(voided)
	for _, u := range unknown {
		if c := s.call(u.ToolCallID); c != nil {
			c.Status, c.Digest, c.Generation, c.Newest = CallUnknown, u.ArgumentsDigest, u.Generation, u.Generation
			c.Approval, c.Replaying = nil, false
		}
	}
	s.Run = nil
}

func (s *State) void(calls []events.VoidedCall) {
	for _, v := range calls {
		s.settle(v.ToolCallID, false)
	}
}

// person adds a genuine user message.
func (s *State) person(m events.UserMessage) {
	s.Last = Message{ID: m.MessageID, Role: roleUser, Origin: originPerson, Content: m.Content}
	s.GenuineSince, s.Unseen = true, true
}

func (s *State) admitted(a events.Admission) {
	r := s.Run
	if r == nil {
		return
	}
	r.Rounds, r.RoundOpen, r.Iteration, r.Summary, r.FailedRound, r.Terminal = a.Round+1, true, a.Iteration, a.Summary, false, false
	s.Unseen = false
	s.Spent.Rounds++
	s.Spent.SummaryUsed = s.Spent.SummaryUsed || a.Summary
	if a.Repeat != nil {
		s.Repeat, s.GenuineSince = a.Repeat, false
		s.Last = Message{ID: a.Repeat.MessageID, Role: roleUser, Origin: originRepeat, Content: a.Repeat.Content}
	}
}

func evolveAnswer(s *State, d events.RoundFinished) {
	s.Last = Message{ID: d.Message.MessageID, Role: roleAssistant, Origin: originModel}
	s.Calls = make([]Call, len(d.Message.ToolCalls))
	for i, t := range d.Message.ToolCalls {
		s.Calls[i] = Call{ToolCall: t, MessageID: ResultID(d.Message.MessageID, i), Answer: s.Answers, Index: i, Status: CallOpen}
	}
	s.Answers++
	if d.Usage != nil {
		s.Usage = s.Usage.Add(*d.Usage)
		s.Spent.Tokens += d.Usage.Total
	}
	if r := s.Run; r != nil {
		r.RoundOpen, r.Terminal = false, d.Decision == decisionFinalize || d.Decision == decisionStop
		if d.Usage != nil {
			r.Usage = r.Usage.Add(*d.Usage)
		}
	}
	s.loop(d.Loop)
	if d.Next != nil && d.Next.Admitted {
		s.admitted(d.Next.Admission)
	}
}
