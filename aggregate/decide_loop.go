package aggregate

import "culm/events"

// decideStop asks the loop to end at its next boundary; before the loop has
// started it ends the requested run (docs/rules.md#stop).
func decideStop(s *State, c LoopStop) (Decision, *Rejection) {
	l := s.Loop
	if run := s.Run; run != nil && run.Status == runRequested && run.LoopRequest != nil {
		switch {
		case c.Generation == "":
			return appendEvent(events.LoopStopRequested{RunID: run.ID, Voided: s.voidCalls("the loop was stopped", isStatus(CallDecided))})
		case l == nil || c.Generation != l.Generation:
			return refuse(generationChanged("", "the loop has not started and has no generation yet"))
		}
	}
	switch {
	case l == nil && s.StoppedRun != "" && c.Generation == "":
		return nothing(nil)
	case l == nil:
		return refuse(reject(CodeNoLoop, "the session has no loop"))
	case c.Generation != "" && c.Generation != l.Generation:
		return refuse(generationChanged(l.Generation, "the loop's generation is "+l.Generation))
	case l.StopRequested || s.loopBlocks() || !l.Status.Live() && l.Status != events.StatusPaused:
		return nothing(nil) // asked already, or over, or its owner is dead
	}
	return appendEvent(events.LoopStopRequested{Loop: l.wire()})
}

// generationChanged refuses a generation that is not the current one, "" for
// none yet.
func generationChanged(current, text string) *Rejection {
	return reject(CodeGenerationChanged, "%s", text).with("generation", current)
}

// blockedLoop is the loop that loop.continue and loop.abandon speak of.
func (s *State) blockedLoop(generation string) (*Loop, *Rejection) {
	l := s.Loop
	switch {
	case l == nil:
		return nil, reject(CodeNoLoop, "the session has no loop")
	case generation != l.Generation:
		return nil, generationChanged(l.Generation, "the loop's generation is "+l.Generation)
	case l.Status.Live() && !s.loopBlocks() || l.Status == events.StatusPaused:
		return nil, reject(CodeOwnershipNotCurrent, "the loop is %s under run %s; cancel or stop it instead", l.Status, l.Owner)
	}
	return l, nil
}

// decideContinue gives what is left of a loop whose outcome is unknown to a new
// generation (docs/rules.md#continue).
func decideContinue(s *State, c LoopContinue, env Env) (Decision, *Rejection) {
	l, r := s.blockedLoop(c.Generation)
	if r != nil {
		return refuse(r)
	}
	if run := s.active(); run != nil {
		return nothing(requestResult{outcomeRunning, run.ID})
	}
	if !s.loopBlocks() {
		return refuse(reject(CodeNoLoop, "the loop is %s and does not wait to be continued", l.Status))
	}
	if s.Waiting() > 0 {
		return refuse(callsWait(s))
	}
	if s.goldEnabled(env.Config) {
		return refuse(goldConflict())
	}
	iterations, rounds := l.remaining()
	if r := checkBounds(iterations, rounds, l.Objective); r != nil {
		return refuse(reject(CodeInvalidBounds, "%d iterations and %d rounds are left: nothing to continue", iterations, rounds))
	}
	return appendEvent(events.RunRequested{
		RunID: env.mint("run", 0), Cause: causeContinue,
		LoopRequest: &events.LoopRequest{Objective: l.Objective, MaxIterations: iterations, MaxTotalRounds: rounds, OnPark: l.OnPark},
	})
}

// decideAbandon lifts the block; the loop stays as it ended.
func decideAbandon(s *State, c LoopAbandon) (Decision, *Rejection) {
	l, r := s.blockedLoop(c.Generation)
	if r != nil {
		return refuse(r)
	}
	if run := s.active(); run != nil && run.Cause == causeContinue {
		return refuse(reject(CodeOwnershipNotCurrent, "run %s is to continue the loop; run.cancel first", run.ID))
	}
	if !s.loopBlocks() && !s.pendingRepeat() {
		return nothing(nil)
	}
	next := *l
	if l.Status.Live() {
		next = l.end(events.StatusRecoveryUnsupported, reasonOwnerLost)
	} else {
		next.Revision++
	}
	return appendEvent(events.LoopAbandoned{Loop: *next.wire()})
}
