package aggregate

import (
	"culm/aggregate/routing"
	"culm/events"
)

// Causes of a run.
const (
	causeUser     = "user"
	causeDecision = "decision"
	causeAnswer   = "answer"
	causeRetry    = "retry"
	causeContinue = "continue"
)

// requestResult is the result of run.request and run.resume.
type requestResult struct {
	Outcome string `json:"outcome"` // requested, already_running or nothing_pending
	RunID   string `json:"run_id,omitzero"`
}

const (
	outcomeRequested = "requested"
	outcomeRunning   = "already_running"
	outcomeNothing   = "nothing_pending"
)

func decideRequest(s *State, c RunRequest, env Env) (Decision, *Rejection) {
	loop, r := loopRequest(s, c)
	if r != nil {
		return refuse(r)
	}
	if run := s.active(); run != nil {
		return nothing(requestResult{outcomeRunning, run.ID})
	}
	if d, r, blocked := s.activate(c.Prompt != nil); blocked {
		return d, r
	}
	if s.Waiting() > 0 {
		return refuse(callsWait(s))
	}
	if loop != nil {
		if r := s.checkLoopStart(c, loop, env); r != nil {
			return refuse(r)
		}
	} else if c.Prompt == nil && !s.workPending() {
		return nothing(requestResult{Outcome: outcomeNothing})
	}
	e := events.RunRequested{RunID: env.mint("run", 0), Cause: causeUser, LoopRequest: loop, Budget: c.budget()}
	if c.Prompt != nil {
		e.Message = &events.UserMessage{MessageID: env.mint("message", 0), Content: *c.Prompt}
		e.Voided = s.voidCalls("a new message came first", isStatus(CallOpen))
	}
	return appendEvent(e)
}

// active is the run that is requested or live; a suspended one is not.
func (s *State) active() *Run {
	if s.Run != nil && s.Run.Status != runSuspended {
		return s.Run
	}
	return nil
}

func callsWait(s *State) *Rejection {
	return reject(CodeCallsOpen, "%d tool calls wait for a person; decide or answer them, or run.cancel", s.Waiting()).with("waiting", s.Waiting())
}

// activate is the check that every activation passes (docs/rules.md#recovery):
// a loop whose owner died is marked and refused by the first, refused without
// writing by every later one. message says that a person's message comes with
// the activation, which lifts a pending repeat.
func (s *State) activate(message bool) (d Decision, r *Rejection, blocked bool) {
	l := s.Loop
	switch {
	case l != nil && s.loopBlocks() && l.Status.Live():
		d, r = refuseWith(events.LoopRecoveryRefused{Loop: *l.end(events.StatusRecoveryUnsupported, reasonOwnerLost).wire()}, s.recoveryRefused())
		return d, r, true
	case s.Waiting() > 0 && !(s.loopBlocks() && !s.parkedLoop()):
		return Decision{}, nil, false // the caller says that calls wait
	case s.loopBlocks():
		d, r = refuse(s.recoveryRefused())
		return d, r, true
	case !message && s.pendingRepeat():
		d, r = refuse(reject(CodeRecoveryUnsupported, "the loop ended in the middle of iteration %d; send a message of your own first", l.IterationsStarted).
			with("generation", l.Generation))
		return d, r, true
	}
	return Decision{}, nil, false
}

func (s *State) recoveryRefused() *Rejection {
	l := s.Loop
	return reject(CodeRecoveryUnsupported, "%s (%d of %d iterations completed); loop.continue or loop.abandon opens the way",
		l.blockedWhy(), l.IterationsCompleted, l.MaxIterations).with("generation", l.Generation)
}

// blockedWhy tells a person why the loop blocks. A live one blocks because its
// owner is gone, also before it is marked.
func (l *Loop) blockedWhy() string {
	switch {
	case l.Status.Live() || l.Reason == reasonOwnerLost:
		return "the loop's run was interrupted, and its last admitted work has no known end"
	case l.Reason == reasonParked:
		return "the loop ended when a call had to wait for a person"
	}
	return "the loop's run ended for a reason that does not say how its work ended"
}

// loopRequest is the loop that a request asks for, its cap made effective, or
// nil; bounds are T1 of docs/rules.md#loop-t1.
func loopRequest(s *State, c RunRequest) (*events.LoopRequest, *Rejection) {
	if c.Loop == nil {
		return nil, nil
	}
	objective := s.Last.Content
	switch {
	case c.Loop.Objective != nil:
		objective = *c.Loop.Objective
	case c.Prompt != nil:
		objective = *c.Prompt
	case !s.lastIsPerson():
		return nil, reject(CodePromptNotCurrentUser, "the last message is not a person's; give a prompt")
	}
	rounds := c.Loop.MaxTotalRounds
	if r := checkBounds(c.Loop.MaxIterations, rounds, objective); r != nil {
		return nil, r
	}
	if c.Budget != nil && c.Budget.MaxRounds != nil {
		rounds = min(rounds, *c.Budget.MaxRounds)
	}
	if r := checkBounds(c.Loop.MaxIterations, rounds, objective); r != nil {
		return nil, r
	}
	if c.Prompt != nil {
		if r := need("prompt", *c.Prompt); r != nil {
			return nil, reject(CodeInvalidBounds, "the prompt is empty")
		}
	}
	onPark := c.Loop.OnPark
	if onPark == "" {
		onPark = onParkEnd
	}
	return &events.LoopRequest{Objective: objective, MaxIterations: c.Loop.MaxIterations, MaxTotalRounds: rounds, OnPark: onPark}, nil
}

func (s *State) lastIsPerson() bool { return s.Last.Role == roleUser && s.Last.Origin == originPerson }

// checkLoopStart is the rest of T1.
func (s *State) checkLoopStart(c RunRequest, loop *events.LoopRequest, env Env) *Rejection {
	if l := s.Loop; l != nil && l.Status == events.StatusPaused {
		return reject(CodeOwnershipNotCurrent, "a paused loop is there; run.resume takes it up, loop.stop before it ends it")
	}
	if s.goldEnabled(env.Config) {
		return goldConflict()
	}
	if c.Prompt == nil && (!s.lastIsPerson() || s.Last.Content != loop.Objective) {
		return reject(CodePromptNotCurrentUser, "the last message is not a person's that equals the objective; give a prompt")
	}
	return nil
}

// goldEnabled says that the session would run under an enabled gold
// configuration: its own, or where it has none, the installation's.
func (s *State) goldEnabled(c Config) bool {
	return routing.ResolveGold(s.Session.Gold, c.Routing.Gold, nil).Enabled
}

func goldConflict() *Rejection {
	return reject(CodeGoldConflict, "the session's gold configuration is enabled; a counted loop cannot run with it")
}

// workPending says that the session owes something without a new message: a
// user message or a tool result without an answer, a call to run or to replay.
func (s *State) workPending() bool {
	return s.Last.Role == roleUser || s.Last.Role == roleTool || s.Unseen || s.count(unsettled) > 0
}

func decideResume(s *State, env Env) (Decision, *Rejection) {
	if run := s.active(); run != nil {
		return nothing(requestResult{outcomeRunning, run.ID})
	}
	// A run that was to replay what a parked loop's decisions allow, and was
	// refused, may be tried again.
	if !s.parkedLoop() || s.replays() == 0 {
		if d, r, blocked := s.activate(false); blocked {
			return d, r
		}
	}
	if s.Waiting() > 0 || !s.workPending() {
		return nothing(requestResult{Outcome: outcomeNothing})
	}
	return appendEvent(events.RunRequested{RunID: env.mint("run", 0), Cause: causeRetry})
}

// decideCancel asks a live run to end, or ends one that no runner holds.
func decideCancel(s *State, c RunCancel) (Decision, *Rejection) {
	run := s.Run
	switch {
	case run == nil || c.RunID != "" && c.RunID != run.ID:
		return refuse(reject(CodeNoSuchRun, "there is no such run to cancel"))
	case run.CancelRequested:
		return nothing(nil)
	case run.Status == runLive:
		return appendEvent(events.RunCancelRequested{RunID: run.ID})
	}
	e := events.RunFinished{
		RunID: run.ID, Outcome: outcomeRunCancelled, CompletionReason: reasonCancelled, Usage: run.Usage,
		Voided: s.voidCalls("the run was cancelled", notStarted),
	}
	if l := s.Loop; l != nil && (l.Owner == run.ID || l.Status == events.StatusPaused) {
		e.Loop = l.finish(resultCancelled).wire()
	}
	return appendEvent(e)
}
