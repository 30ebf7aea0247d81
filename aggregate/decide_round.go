package aggregate

import (
	"culm/events"
)

// roundResult is the result of round.start, and of admit_next.
type roundResult struct {
	Admitted  bool    `json:"admitted"`
	Round     *uint32 `json:"round,omitzero"`
	Iteration uint32  `json:"iteration,omitzero"`
	Summary   bool    `json:"summary,omitzero"`
	Reason    string  `json:"reason,omitzero"`
}

func notAdmitted(reason string) roundResult { return roundResult{Reason: reason} }

// decideRoundStart is the one way into a round (docs/rules.md#loop-t3 for
// loops, docs/rules.md#budget for plain runs).
func decideRoundStart(s *State, run *Run, env Env) (Decision, *Rejection) {
	switch {
	case run.RoundOpen:
		return refuse(reject(CodeRoundOpen, "round %d is open", run.Rounds-1))
	case run.CancelRequested:
		return nothing(notAdmitted(refusedCancelled))
	case s.count(unsettled) > 0:
		return refuse(reject(CodeCallsOpen, "%d tool calls of the last answer have no outcome", s.count(unsettled)).with("waiting", s.Waiting()))
	}
	if l := s.loopOf(run); l != nil {
		return admitLoopRound(s, run, *l, env)
	}
	return admitPlainRound(s, run)
}

// tripped is the first bound of the budget that is reached, "" for none; in a
// loop the rounds are bounded by the loop's own cap.
func (p *Spent) tripped(loop bool) string {
	b := p.Budget
	switch {
	case b.MaxTotalTokens > 0 && p.Tokens >= b.MaxTotalTokens:
		return budgetTokens
	case b.MaxToolCalls > 0 && p.ToolCalls >= b.MaxToolCalls:
		return budgetToolCalls
	case !loop && b.MaxRounds > 0 && p.Rounds >= b.MaxRounds:
		return budgetRounds
	}
	return ""
}

// loopAdmission is the loop after an attempt to admit a round: T4 for a spent
// budget between the stop and the cap of T3.
func (s *State) loopAdmission(l Loop) (Loop, admission) {
	if l.Status.Live() && !l.StopRequested && s.Spent.tripped(true) != "" {
		return l.end(events.StatusBudgetExhausted, reasonBudget), admission{reason: refusedBudget, changed: true}
	}
	return l.admitRound()
}

func admitLoopRound(s *State, run *Run, l Loop, env Env) (Decision, *Rejection) {
	next, a := s.loopAdmission(l)
	switch {
	case a.admitted:
		return appendEvent(events.RoundStarted{RunID: run.ID, Admission: s.admit(run, next, a, env), Loop: next.wire()})
	case !a.changed:
		return nothing(notAdmitted(a.reason))
	case next.Status == events.StatusStopped:
		return appendEvent(events.LoopStopped{Loop: *next.wire()})
	}
	return appendEvent(events.LoopBudgetExhausted{Kind: s.exhaustedKind(next), Loop: *next.wire()})
}

func (s *State) exhaustedKind(l Loop) string {
	if l.Reason == reasonRoundLimit {
		return budgetRounds
	}
	return s.Spent.tripped(true)
}

// admit spells an admission of the run's next round into a loop.
func (s *State) admit(run *Run, l Loop, a admission, env Env) events.Admission {
	out := events.Admission{Round: run.Rounds, Iteration: l.IterationsStarted}
	if a.repeat {
		out.Repeat = &events.Repeat{
			MessageID: env.mint("repeat", 0), Content: l.Objective, RuntimeKind: events.RuntimeKindIteration,
			LoopGeneration: l.Generation, ObjectiveRevision: objectiveRevision, Iteration: l.IterationsStarted,
		}
	}
	return out
}

// admitPlainRound gives a plain run its rounds, and after a reached bound
// exactly one summary round.
func admitPlainRound(s *State, run *Run) (Decision, *Rejection) {
	p := &s.Spent
	if p.Exhausted == "" {
		if kind := p.tripped(false); kind != "" {
			return appendEvent(events.RunBudgetExhausted{RunID: run.ID, Kind: kind})
		}
		return appendEvent(events.RoundStarted{RunID: run.ID, Admission: events.Admission{Round: run.Rounds}})
	}
	if p.SummaryUsed {
		return nothing(notAdmitted(refusedBudget))
	}
	return appendEvent(events.RoundStarted{RunID: run.ID, Admission: events.Admission{Round: run.Rounds, Summary: true}})
}

// openRound checks that the command speaks of the open round.
func (r *Run) openRound(n uint32) *Rejection {
	if !r.RoundOpen || n != r.Rounds-1 {
		return reject(CodeRoundNotOpen, "round %d is not open", n)
	}
	return nil
}

// finishResult is the result of round.finish.
type finishResult struct {
	Decision    string       `json:"decision"`
	ToolCallIDs []string     `json:"tool_call_ids,omitzero"`
	Next        *roundResult `json:"next,omitzero"`
}

func decideRoundFinish(s *State, run *Run, c RoundFinish, env Env) (Decision, *Rejection) {
	if r := run.openRound(*c.Round); r != nil {
		return refuse(r)
	}
	e := events.RoundFinished{
		RunID: run.ID, Round: *c.Round, Iteration: run.Iteration, Usage: c.Usage, FinishReason: c.FinishReason, Attempts: c.Attempts,
		Message: events.AssistantMessage{MessageID: env.mint("message", 0), Content: c.Message.Content, ToolCalls: nameCalls(c.Message.ToolCalls, env)},
	}
	l := s.loopOf(run)
	switch {
	case len(e.Message.ToolCalls) > 0:
		e.Decision = decisionTools
	case l == nil:
		e.Decision = decisionFinalize
	default:
		next, decision, changed, r := l.terminal()
		if r != nil {
			return refuse(r)
		}
		e.Decision = decision
		if decision == decisionContinue && c.AdmitNext {
			next, e.Next = s.admitNext(run, next, c.Usage, env)
		}
		if changed {
			e.Loop = next.wire()
		}
	}
	return appendEvent(e)
}

// admitNext is round.start within round.finish: the same rules, the same event.
func (s *State) admitNext(run *Run, l Loop, used *events.Usage, env Env) (Loop, *events.NextRound) {
	if run.CancelRequested {
		return l, &events.NextRound{Reason: refusedCancelled}
	}
	after := *s
	after.Spent.Tokens += deref(used).Total
	next, a := after.loopAdmission(l)
	if !a.admitted {
		return next, &events.NextRound{Reason: a.reason}
	}
	return next, &events.NextRound{Admitted: true, Admission: s.admit(run, next, a, env)}
}

// nameCalls gives every call of one answer an id of its own: the model's, or a
// minted one where that is empty or was used before in the answer
// (docs/rules.md#tool-call-ids).
func nameCalls(calls []CallSpec, env Env) []events.ToolCall {
	if len(calls) == 0 {
		return nil
	}
	used := make(map[string]bool, len(calls))
	out := make([]events.ToolCall, len(calls))
	for i, c := range calls {
		out[i] = events.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if c.ID == "" || used[c.ID] {
			out[i].ID, out[i].ModelID = "call_"+env.mint("call", i), &c.ID
		}
		used[out[i].ID] = true
	}
	return out
}

func decideRoundFail(run *Run, c RoundFail) (Decision, *Rejection) {
	if r := run.openRound(*c.Round); r != nil {
		return refuse(r)
	}
	return appendEvent(events.RoundFailed{RunID: run.ID, Round: *c.Round, Error: *c.Error})
}

// decideBudget is T4 for a loop, and the one way to a summary round otherwise.
func decideBudget(s *State, run *Run, c BudgetExhaust) (Decision, *Rejection) {
	if l := s.loopOf(run); l != nil {
		if !l.Status.Live() {
			return nothing(nil)
		}
		return appendEvent(events.LoopBudgetExhausted{Kind: c.Kind, Loop: *l.end(events.StatusBudgetExhausted, reasonBudget).wire()})
	}
	if s.Spent.Exhausted != "" {
		return nothing(nil)
	}
	return appendEvent(events.RunBudgetExhausted{RunID: run.ID, Kind: c.Kind})
}
