package aggregate

import (
	"culm/events"
)

// replayResult is the result of replay.start.
type replayResult struct {
	Replay  *replayItem  `json:"replay"`
	Blocked *blockedItem `json:"blocked,omitzero"`
	Pending int          `json:"pending"` // calls that still wait for a person
	Reason  string       `json:"reason,omitzero"`
}

// replayItem is a decided call, handed out to run exactly as it stands.
type replayItem struct {
	ToolCallID      string             `json:"tool_call_id"`
	Name            string             `json:"name"`
	Arguments       string             `json:"arguments"`
	ArgumentsDigest string             `json:"arguments_digest"`
	Generation      string             `json:"generation"`
	Occurrence      string             `json:"occurrence"` // message id of the result
	Flags           events.ReplayFlags `json:"flags"`
}

type blockedItem struct {
	ToolCallID string `json:"tool_call_id"`
	Reason     string `json:"reason"`
}

// decideReplay hands out the next decided call, once (docs/rules.md#replay).
func decideReplay(s *State, run *Run, env Env) (Decision, *Rejection) {
	if run.CancelRequested {
		return refuse(cancelled())
	}
	if run.RoundOpen {
		return refuse(reject(CodeRoundOpen, "round %d is open", run.Rounds-1))
	}
	call := s.nextReplay()
	if call == nil {
		return nothing(replayResult{Pending: s.Waiting()})
	}
	if l := s.loopOf(run); l != nil {
		switch {
		case !l.Status.Live():
			return nothing(replayResult{Pending: s.Waiting(), Reason: refusedNotLive})
		case l.StopRequested:
			return appendEvent(events.LoopStopped{Loop: *l.end(events.StatusStopped, reasonStop).wire()})
		}
	}
	if events.Hash([]byte(call.Arguments)) != call.Digest {
		r := reject(CodeReplayTargetMissing, "the arguments of %.80q are not the approved ones", call.ID)
		return refuseWith(s.refusedRun(run, r.Code, r.Message, env), r)
	}
	if s.readOnly(env) && !PlanAllowed(call.Name) {
		reason := "plan"
		if s.Session.ReadOnly {
			reason = "authority"
		}
		suspends, loop := s.suspension(run, call.ID, CallSettled)
		return appendEvent(events.ReplayBlocked{
			CallRef: call.ref(), Generation: call.Generation, Reason: reason, Suspends: suspends, Loop: loop,
			Content: call.Name + " was approved but not run: the session is read-only now",
		})
	}
	return appendEvent(events.ReplayStarted{CallRef: call.ref(), Generation: call.Generation, Flags: s.replayFlags(env)})
}

// nextReplay is the first decided call, in order of the answer.
func (s *State) nextReplay() *Call {
	for i := range s.Calls {
		if s.Calls[i].Status == CallDecided {
			return &s.Calls[i]
		}
	}
	return nil
}

func (s *State) replayFlags(env Env) events.ReplayFlags {
	m := effectiveMode(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil)
	return events.ReplayFlags{Bypass: m == modeBypass, AutoApprove: m == modeAuto || s.Session.Mode == modeAuto, PlanReadOnly: m == modePlan}
}
