package aggregate

import (
	"errors"
	"math"
	"strings"

	"culm/events"
)

// Bounds of a counted loop (docs/rules.md#loop-bounds).
const (
	MaxIterations     = 100
	MaxTotalRounds    = 1000
	MaxObjectiveBytes = 16384
	maxOwnerBytes     = 128
	loopSchema        = 1
	objectiveRevision = 1
)

// What happens to a loop when its run parks.
const (
	onParkEnd   = "end"
	onParkPause = "pause"
)

// Why a loop ended or paused: Loop.Reason.
const (
	reasonStop            = "stop_requested"
	reasonRoundLimit      = "counted_loop_round_limit"
	reasonBudget          = "counted_loop_budget_exhausted"
	reasonParked          = "parked"
	reasonCancelled       = "cancelled"
	reasonRunFailed       = "run_failed"
	reasonEndedEarly      = "ended_early"
	reasonOwnerLost       = "owner_lost"
	reasonUnknownOutcome  = "unknown_completion_reason"
	reasonSuspended       = "suspended"
	reasonReportedOutcome = "run_budget"
)

// Loop is the state of the session's counted loop: LI-1 to LI-7 of
// docs/rules.md#loop-invariants hold after every event.
type Loop struct {
	Generation          string
	Revision            uint64
	Owner               string // run id that executes it
	Objective           string
	MaxIterations       uint32
	MaxTotalRounds      uint32 // effective cap
	IterationsStarted   uint32
	IterationsCompleted uint32
	RoundsStarted       uint32
	Status              events.LoopStatus
	Reason              string
	OnPark              string
	StopRequested       bool
	Abandoned           bool
	Continued           bool // by loop.continue: iteration 1 is given as a repeat too
}

// checkBounds says whether a loop of these numbers and this objective may be.
func checkBounds(iterations, rounds uint32, objective string) *Rejection {
	switch {
	case iterations < 1 || iterations > MaxIterations:
		return reject(CodeInvalidBounds, "max_iterations is %d, allowed are 1 to %d", iterations, MaxIterations)
	case rounds < iterations || rounds > MaxTotalRounds:
		return reject(CodeInvalidBounds, "max_total_rounds is effectively %d, allowed are max_iterations (%d) to %d", rounds, iterations, MaxTotalRounds)
	case strings.TrimSpace(objective) == "":
		return reject(CodeInvalidBounds, "the objective is blank")
	case len(objective) > MaxObjectiveBytes:
		return reject(CodeInvalidBounds, "the objective has %d bytes, allowed are %d", len(objective), MaxObjectiveBytes)
	}
	return nil
}

// Validate checks the invariants of docs/rules.md#loop-invariants.
func (l *Loop) Validate() error {
	if r := checkBounds(l.MaxIterations, l.MaxTotalRounds, l.Objective); r != nil {
		return r
	}
	switch {
	case l.Revision == 0 || l.Revision == math.MaxUint64:
		return errors.New("loop revision out of range")
	case l.Owner == "" || len(l.Owner) > maxOwnerBytes:
		return errors.New("loop owner is empty or too long")
	case !isUUID(l.Generation):
		return errors.New("loop generation is no UUID")
	case l.IterationsStarted > l.MaxIterations:
		return errors.New("more iterations started than allowed")
	case l.IterationsCompleted > l.IterationsStarted:
		return errors.New("more iterations completed than started")
	case l.IterationsStarted-l.IterationsCompleted > 1:
		return errors.New("more than one iteration is open")
	case l.RoundsStarted > l.MaxTotalRounds:
		return errors.New("more rounds started than allowed")
	case l.RoundsStarted < l.IterationsStarted:
		return errors.New("fewer rounds than iterations started")
	}
	done := l.IterationsCompleted == l.MaxIterations
	switch l.Status {
	case events.StatusFinalizing, events.StatusCompleted:
		if !done {
			return errors.New(string(l.Status) + " before all iterations are completed")
		}
	case events.StatusRunning:
		if done {
			return errors.New("running after all iterations are completed")
		}
	case events.StatusPaused, events.StatusStopped, events.StatusCancelled, events.StatusBudgetExhausted,
		events.StatusFailed, events.StatusRecoveryUnsupported:
	default:
		return errors.New("unknown loop status " + string(l.Status))
	}
	return nil
}

// wire is the loop as an event carries it.
func (l Loop) wire() *events.Loop {
	return &events.Loop{
		Generation: l.Generation, Revision: l.Revision, Status: l.Status, IterationsStarted: l.IterationsStarted,
		IterationsCompleted: l.IterationsCompleted, RoundsStarted: l.RoundsStarted, Reason: l.Reason,
	}
}

// apply copies what an event says of the loop.
func (l *Loop) apply(w *events.Loop) {
	l.Generation, l.Revision, l.Status, l.Reason = w.Generation, w.Revision, w.Status, w.Reason
	l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted = w.IterationsStarted, w.IterationsCompleted, w.RoundsStarted
}

// beginLoop is T2: a new generation at its first stored revision, 2.
func beginLoop(generation, owner string, q *events.LoopRequest) Loop {
	return Loop{
		Generation: generation, Revision: 2, Owner: owner, Objective: q.Objective, MaxIterations: q.MaxIterations,
		MaxTotalRounds: q.MaxTotalRounds, Status: events.StatusRunning, OnPark: q.OnPark,
	}
}

// end moves the loop to a status for a reason, one revision on.
func (l Loop) end(status events.LoopStatus, reason string) Loop {
	l.Status, l.Reason = status, reason
	l.Revision++
	return l
}

// admission is what T3 answers.
type admission struct {
	admitted bool
	reason   string // why not: stopped, budget_exhausted or not_live
	changed  bool   // the loop changed although nothing was admitted
	repeat   bool   // the objective is given again, as iteration loop.IterationsStarted
}

// Reasons of a round that is refused quietly.
const (
	refusedStopped   = "stopped"
	refusedBudget    = "budget_exhausted"
	refusedNotLive   = "not_live"
	refusedCancelled = "cancel_requested"
)

// admitRound is T3, the only admission point of a loop's rounds
// (docs/rules.md#loop-t3), in the order of its table but for the budget, which
// the caller tests. Stop is tested before the cap, and both before the next
// prompt, so that a stopped loop leaves no unanswered repeat behind.
func (l Loop) admitRound() (Loop, admission) {
	switch {
	case !l.Status.Live():
		return l, admission{reason: refusedNotLive}
	case l.StopRequested:
		return l.end(events.StatusStopped, reasonStop), admission{reason: refusedStopped, changed: true}
	case l.RoundsStarted == l.MaxTotalRounds:
		return l.end(events.StatusBudgetExhausted, reasonRoundLimit), admission{reason: refusedBudget, changed: true}
	}
	a := admission{admitted: true}
	if l.Status == events.StatusRunning && l.IterationsStarted == l.IterationsCompleted {
		a.repeat = l.IterationsStarted > 0 || l.Continued
		l.IterationsStarted++
	}
	l.RoundsStarted++
	l.Revision++
	return l, a
}

// Decisions of a finished round.
const (
	decisionTools    = "tools"
	decisionContinue = "continue"
	decisionStop     = "stop"
	decisionFinalize = "finalize"
)

// terminal is T5: the model answered without tool calls (docs/rules.md#loop-t5).
// Stop beats completion. An answer that arrives after the loop has ended (a
// budget was reported in the middle of the round) is kept and changes nothing.
// changed is false where the loop stays as it is.
func (l Loop) terminal() (next Loop, decision string, changed bool, err *Rejection) {
	switch {
	case l.Status == events.StatusFinalizing:
		return l, decisionFinalize, false, nil
	case !l.Status.Live():
		return l, decisionStop, false, nil
	case l.IterationsStarted != l.IterationsCompleted+1:
		return l, "", false, reject(CodeTerminalWithoutIteration, "%d iterations are started and %d completed", l.IterationsStarted, l.IterationsCompleted)
	}
	l.IterationsCompleted++
	switch {
	case l.StopRequested:
		return l.end(events.StatusStopped, reasonStop), decisionStop, true, nil
	case l.IterationsCompleted == l.MaxIterations:
		return l.end(events.StatusFinalizing, ""), decisionFinalize, true, nil
	}
	l.Revision++
	return l, decisionContinue, true, nil
}

// runResult is how a run ended, as T7 sees it: the columns of the finish table.
type runResult int

const (
	resultOK runResult = iota
	resultSuspended
	resultBudget // ok with a budget completion reason
	resultOther  // ok with any other completion reason
	resultCancelled
	resultError
)

// budgetReasons are the completion reasons that mean a spent budget.
var budgetReasons = map[string]bool{
	reasonRoundLimit: true, reasonBudget: true, "budget_exceeded": true, "max_rounds_reached": true,
	"stop_hook_continuation_cap": true,
}

// finish is T7, for every way a run that began a loop can end; it always moves
// the revision (docs/rules.md#loop-t7).
func (l Loop) finish(r runResult) Loop {
	status, reason := l.finishStatus(r)
	if status == l.Status {
		reason = l.Reason
	}
	return l.end(status, reason)
}

// finishStatus is the finish table, row by status, column by result. A
// cancellation overrules everything; an error everything but a cancellation
// and an unknown end; a bounded end stays what it is.
func (l Loop) finishStatus(r runResult) (status events.LoopStatus, reason string) {
	switch {
	case r == resultCancelled:
		return events.StatusCancelled, reasonCancelled
	case r == resultError && (l.Status == events.StatusCancelled || l.Status == events.StatusRecoveryUnsupported):
		return l.Status, l.Reason
	case r == resultError:
		return events.StatusFailed, reasonRunFailed
	case !l.Status.Live():
		return l.Status, l.Reason
	}
	switch r {
	case resultSuspended:
		return events.StatusRecoveryUnsupported, reasonSuspended
	case resultBudget:
		return events.StatusBudgetExhausted, reasonReportedOutcome
	case resultOther:
		return events.StatusRecoveryUnsupported, reasonUnknownOutcome
	}
	if l.Status == events.StatusFinalizing {
		return events.StatusCompleted, ""
	}
	return events.StatusFailed, reasonEndedEarly
}

// park is T7 for a run that suspends (docs/rules.md#on-park).
func (l Loop) park() Loop {
	if !l.Status.Live() {
		return l.finish(resultSuspended)
	}
	if l.OnPark == onParkPause {
		return l.end(events.StatusPaused, reasonParked)
	}
	return l.end(events.StatusRecoveryUnsupported, reasonParked)
}

// resume is the takeover of a paused loop by its successor run. A loop that
// paused with all iterations done was finalizing and is so again.
func (l Loop) resume(owner string) Loop {
	l.Owner = owner
	if l.IterationsCompleted == l.MaxIterations {
		return l.end(events.StatusFinalizing, "")
	}
	return l.end(events.StatusRunning, "")
}

// remaining is what loop.continue may still spend of an ended loop.
func (l Loop) remaining() (iterations, rounds uint32) {
	return l.MaxIterations - l.IterationsCompleted, l.MaxTotalRounds - l.RoundsStarted
}
