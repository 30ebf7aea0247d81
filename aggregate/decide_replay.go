package aggregate

import (
	"culm/aggregate/policy"
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
		r := reject(CodeReplayTargetMissing, "the arguments of %.80q are not the approved ones", call.ID).
			with("tool_call_id", call.ID).with("generation", call.Generation)
		return refuseWith(s.refusedRun(run, r, env), r)
	}
	reason, r := s.replayBlocked(call, env)
	if r != nil {
		return refuseWith(s.refusedRun(run, r, env), r)
	}
	if reason != "" {
		suspends, loop := s.suspension(run, call.ID, CallSettled)
		return appendEvent(events.ReplayBlocked{
			CallRef: call.ref(), Generation: call.Generation, Reason: reason, Suspends: suspends, Loop: loop,
			Content: call.Name + " was approved but not run: " + blockedTexts[reason],
		})
	}
	return appendEvent(events.ReplayStarted{CallRef: call.ref(), Generation: call.Generation, Flags: policy.Flags(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil)})
}

// Reasons of replay.blocked.
const (
	blockedPlan      = "plan"
	blockedAuthority = "authority"
)

var blockedTexts = map[string]string{
	blockedPlan: "the session is in plan mode now", blockedAuthority: "it is not allowed any more",
}

// replayBlocked re-checks posture and authorization of a decided call: why it
// may not run any more, "" if it may. The rejection is authorization_refused:
// the approval itself does not hold. What the policy would ask about again has
// been answered; what it denies by now is not run.
func (s *State) replayBlocked(call *Call, env Env) (string, *Rejection) {
	once, grants, r := s.restored(call)
	if r != nil {
		return "", r
	}
	switch {
	case s.Session.ReadOnly && !policy.PlanAllowed(call.Name):
		return blockedAuthority, nil
	case s.readOnly(env) && !policy.PlanAllowed(call.Name):
		return blockedPlan, nil
	}
	q, known := s.replayRequest(call)
	if !known {
		return "", nil
	}
	in := s.policyInput(call, q, once, grants, env)
	in.Session.NoHumanApprover = false // a person has decided
	v := policy.Evaluate(in)
	switch {
	case v.Decision != policy.Deny:
		return "", nil
	case v.Step == policy.StepPlan:
		return blockedPlan, nil
	}
	return blockedAuthority, nil
}

// replayRequest is what the approved call is known to touch: as it was asked
// about, or, for one whose outcome is unknown and that the policy had allowed,
// as it was authorized.
func (s *State) replayRequest(call *Call) (q policy.Request, known bool) {
	switch {
	case call.Approval != nil && call.Approval.Request != nil:
		return s.requestOf(call, call.Approval.Request), true
	case call.Authorized:
		return call.authorized(s.Session.Workspace), true
	}
	return q, false
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
