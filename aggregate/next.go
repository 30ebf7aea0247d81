package aggregate

import (
	"culm/events"
)

// Next says what the outside owes the session under the configuration c. It is
// pure: recovery after a crash is folding the log and asking Next again.
func Next(s *State, c Config) Step {
	st := Step{Kind: StepNothing, Session: s.Session.Name, Answers: s.Answers}
	run := s.Run
	switch {
	case !s.Exists() || s.Session.Closed:
		return st
	case run == nil:
		if s.Waiting() > 0 {
			st.Kind = StepWait
		}
		return st
	}
	l := s.loopOf(run)
	st.RunID, st.Fence, st.Runner, st.Cause, st.Primary = run.ID, run.Fence, run.Runner, run.Cause, run.Primary
	st.Cancelled, st.InLoop, st.Stopping = run.CancelRequested, l != nil && l.Status.Live(), l != nil && l.StopRequested
	switch run.Status {
	case runRequested:
		if run.LoopRequest == nil || !s.goldEnabled(c) {
			st.Kind = StepClaim
		}
	case runSuspended:
		st.Kind = StepWait
	default:
		s.nextOfLiveRun(&st, run, l)
	}
	return st
}

func (s *State) nextOfLiveRun(st *Step, run *Run, l *Loop) {
	loopOver := l != nil && !l.Status.Live()
	switch {
	case run.CancelRequested:
		st.Kind, st.Outcome = StepFinish, outcomeCancelled
		st.Running = s.stepCalls(CallStarted)
	case run.RoundOpen:
		st.Kind, st.Round, st.Iteration, st.Summary = StepModel, run.Rounds-1, run.Iteration, run.Summary
	case s.count(isStatus(CallOpen))+s.count(isStatus(CallStarted)) > 0:
		st.Kind, st.Calls, st.Running = StepTools, s.stepCalls(CallOpen), s.stepCalls(CallStarted)
		st.Round = max(run.Rounds, 1) - 1
	case s.replays() > 0 && !loopOver:
		st.Kind, st.Round = StepReplay, max(run.Rounds, 1)-1
	case loopOver, run.Terminal, run.FailedRound, s.Waiting() > 0, s.Spent.Exhausted != "" && s.Spent.SummaryUsed && l == nil:
		st.Kind, st.Outcome = StepFinish, outcomeOK
		if run.FailedRound {
			st.Outcome = outcomeError
		}
	default:
		st.Kind = StepAdmit
	}
}

func (s *State) stepCalls(status CallStatus) []StepCall {
	var out []StepCall
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Status == status {
			out = append(out, StepCall{
				ID: c.ID, MessageID: c.MessageID, ModelID: modelID(c.ToolCall), Name: c.Name, Arguments: c.Arguments, Answer: c.Answer, Index: c.Index,
			})
		}
	}
	return out
}

// modelID is the id that the model gave.
func modelID(t events.ToolCall) string {
	if t.ModelID != nil {
		return *t.ModelID
	}
	return t.ID
}
