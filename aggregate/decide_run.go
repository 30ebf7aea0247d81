package aggregate

import (
	"errors"

	"culm/aggregate/routing"
	"culm/events"
)

// Outcomes of a run.
const (
	outcomeRunCompleted = "completed"
	outcomeRunFailed    = "failed"
	outcomeRunCancelled = "cancelled"
)

// claimResult is the result of run.claim.
type claimResult struct {
	Fence   uint64            `json:"fence"` // sequence of run.started
	LeaseMS int64             `json:"lease_ms"`
	Cause   string            `json:"cause"`
	Roster  events.Roster     `json:"roster"`
	Loop    *events.LoopStart `json:"loop,omitzero"`
	Replays uint32            `json:"replays"`
}

// decideClaim gives the requested run to the first runner that asks, and
// starts the loop that was asked for (T1 and T2 of docs/rules.md#loop-t1).
func decideClaim(s *State, c RunClaim, env Env) (Decision, *Rejection) {
	run := s.Run
	switch {
	case c.RunID == s.StoppedRun:
		return refuse(reject(CodeAlreadyStopped, "the loop was stopped before it started"))
	case run == nil || run.ID != c.RunID:
		return refuse(reject(CodeNoSuchRun, "no run %.64q is requested", c.RunID))
	case run.Status != runRequested:
		return refuse(reject(CodeAlreadyClaimed, "the run is %s under %s", run.Status, run.Runner).with("runner", run.Runner))
	}
	plan, err := env.Config.Routing.Plan(routing.Claim{Session: s.Session.Settings, Held: c.Providers})
	if err != nil {
		return s.notRouted(run, err, env)
	}
	if run.LoopRequest != nil && plan.Gold.Enabled {
		return refuse(goldConflict())
	}
	return appendEvent(events.RunStarted{
		RunID: run.ID, Runner: c.Runner, Cause: run.Cause, Roster: plan.Roster, Reasoning: plan.Reasoning, Gold: plan.Gold.Event(),
		ConfigDigest: env.Config.Digest, Replays: uint32(s.replays()), Loop: s.claimLoop(run, env), //nolint:gosec // at most maxCallsPerRound
	})
}

// notRouted refuses a claim whose provider cannot be resolved: for good, with
// the fact, where the configuration says so, else only to this runner
// (docs/routing.md).
func (s *State) notRouted(run *Run, err error, env Env) (Decision, *Rejection) {
	var no *routing.Error
	if !errors.As(err, &no) {
		return refuse(reject(CodeProviderUnavailable, "%v", err))
	}
	r := reject(no.Code, "%s", no.Message).with("reason", string(no.Reason)).with("provider", cutText(no.Asked, maxDetail))
	if no.Role != "" {
		r.with("role", no.Role)
	}
	if no.Code == routing.CodeNotHeld {
		return refuse(r)
	}
	return refuseWith(s.refusedRun(run, r, env), r)
}

// claimLoop is the loop that the claimed run executes: a new one, a paused one
// taken over, or none.
func (s *State) claimLoop(run *Run, env Env) *events.LoopStart {
	switch {
	case run.LoopRequest != nil:
		return beginLoop(env.mint("loop", 0), run.ID, run.LoopRequest).start()
	case s.Loop != nil && s.Loop.Status == events.StatusPaused:
		return s.Loop.resume(run.ID).start()
	}
	return nil
}

func (l Loop) start() *events.LoopStart {
	return &events.LoopStart{
		Loop: *l.wire(), Owner: l.Owner, Objective: l.Objective, MaxIterations: l.MaxIterations,
		MaxTotalRounds: l.MaxTotalRounds, OnPark: l.OnPark,
	}
}

// renewResult is the result of run.renew.
type renewResult struct {
	LeaseMS         int64 `json:"lease_ms"`
	CancelRequested bool  `json:"cancel_requested"`
	StopRequested   bool  `json:"stop_requested"`
}

func decideRenew(s *State, run *Run, env Env) (Decision, *Rejection) {
	l := s.loopOf(run)
	return nothing(renewResult{LeaseMS: env.Config.LeaseMS, CancelRequested: run.CancelRequested, StopRequested: l != nil && l.StopRequested})
}

// decideRunRefuse ends the run. One that was asked to cancel ends as cancelled.
func decideRunRefuse(s *State, run *Run, c RunRefuse, env Env) (Decision, *Rejection) {
	if run.CancelRequested {
		return appendEvent(s.cancelledRun(run, env))
	}
	return appendEvent(s.refusedRun(run, &Rejection{Code: c.Code, Message: c.Message}, env))
}

// refusedRun ends the run by a refusal. Decisions given so far stay, but for
// those of a loop that was asked to stop: no later run replays them either.
func (s *State) refusedRun(run *Run, r *Rejection, env Env) events.RunRefused {
	e := events.RunRefused{RunID: run.ID, Code: r.Code, Message: r.Message, Details: r.texts(), Unknown: s.unknownCalls(env.mint)}
	if s.stopping(run) {
		e.Voided = s.voidCalls("the loop was stopped", isStatus(CallDecided))
	}
	if l := s.loopOf(run); l != nil {
		e.Loop = l.finish(resultError).wire()
	}
	return e
}

// cancelledRun is the end of a live run that was asked to cancel and whose
// runner does not finish it: nothing that had not started by then ever starts.
func (s *State) cancelledRun(run *Run, env Env) events.RunFinished {
	e := events.RunFinished{
		RunID: run.ID, Outcome: outcomeRunCancelled, CompletionReason: reasonCancelled, Usage: run.Usage,
		Voided: s.voidCalls("the run was cancelled", notStarted), Unknown: s.unknownCalls(env.mint),
	}
	if l := s.loopOf(run); l != nil {
		e.Loop = l.finish(resultCancelled).wire()
	}
	return e
}

// stopping says that the run's loop was asked to stop: nothing that was approved
// for it is replayed, by a later run neither.
func (s *State) stopping(run *Run) bool {
	l := s.loopOf(run)
	return l != nil && l.StopRequested
}

// decideFinish is the one end of a started run (docs/rules.md#loop-t7). Calls
// that were started become unknown; calls that were not are voided, those that
// wait for a person only by a cancellation, whatever the runner reports.
func decideFinish(s *State, run *Run, c RunFinish, env Env) (Decision, *Rejection) {
	e := events.RunFinished{RunID: run.ID, CompletionReason: c.CompletionReason, Error: c.Error, Usage: run.Usage, Unknown: s.unknownCalls(env.mint)}
	var result runResult
	switch c.Outcome {
	case outcomeCancelled:
		e.Outcome, result = outcomeRunCancelled, resultCancelled
		e.Voided = s.voidCalls("the run was cancelled", notStarted)
	case outcomeError:
		e.Outcome, result = outcomeRunFailed, resultError
		e.Voided = s.voidCalls("the run failed", func(st CallStatus) bool { return st == CallOpen || st == CallDecided && s.stopping(run) })
	default:
		e.Outcome, result = outcomeRunCompleted, okResult(c.CompletionReason)
		e.Voided = s.voidCalls("the run ended", func(st CallStatus) bool { return st == CallOpen || st == CallDecided })
	}
	if run.CancelRequested {
		e.Voided = s.voidCalls("the run was cancelled", notStarted)
	}
	if l := s.loopOf(run); l != nil {
		next := l.finish(result)
		e.Loop = next.wire()
		if reason := loopCompletionReason(next); reason != "" {
			e.CompletionReason = reason
		}
	} else if s.Spent.Exhausted != "" && e.CompletionReason == "" {
		e.CompletionReason = budgetCompletionReason(s.Spent.Exhausted)
	}
	return appendEvent(e)
}

// okResult is the column of the finish table for a run that ended well.
func okResult(reason string) runResult {
	switch {
	case reason == "":
		return resultOK
	case budgetReasons[reason]:
		return resultBudget
	}
	return resultOther
}

// loopCompletionReason is the reason of a loop's bounded end, which wins over
// what the runner reports.
func loopCompletionReason(l Loop) string {
	switch l.Status {
	case events.StatusStopped:
		return "counted_loop_stopped"
	case events.StatusBudgetExhausted:
		if l.Reason == reasonRoundLimit || l.Reason == reasonBudget {
			return l.Reason
		}
	}
	return ""
}

func budgetCompletionReason(kind string) string {
	if kind == budgetRounds {
		return "max_rounds_reached"
	}
	return "budget_exceeded"
}

// Lapse is the fact that the live run's lease ran out, or nil without one
// (docs/rules.md#lease): it was interrupted, or, asked to cancel before, it ends
// as cancelled. Its ids follow from the session's next sequence.
func Lapse(s *State, env Env) events.Data {
	run := s.Run
	if run == nil || run.Status != runLive {
		return nil
	}
	if run.CancelRequested {
		return s.cancelledRun(run, env)
	}
	e := events.RunInterrupted{RunID: run.ID, Code: "lease_expired", Unknown: s.unknownCalls(env.mint)}
	if s.stopping(run) {
		e.Voided = s.voidCalls("the loop was stopped", isStatus(CallDecided))
	}
	return e
}

// Expire is the fact that a waiting call was not decided in time, or nil. It is
// no denial and runs nothing (docs/rules.md#expiry).
func Expire(s *State, env Env) events.Data {
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Status != CallParked || c.Parked.ExpiresAt.IsZero() || env.Now.Before(c.Parked.ExpiresAt) {
			continue
		}
		return events.QuestionExpired{
			CallRef: c.ref(), Generation: c.Generation, Content: c.notRun("nobody decided in time"), RunID: s.successor(c.ID, CallSettled, env),
		}
	}
	return nil
}
