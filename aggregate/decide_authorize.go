package aggregate

import (
	"culm/aggregate/policy"
	"culm/events"
)

// ToolAuthorize is tool.authorize: what a call wants to touch, as its runner
// states it.
type ToolAuthorize struct {
	RunRef
	ToolCallID     string `json:"tool_call_id"`
	PermissionType string `json:"permission_type"`
	Resource       string `json:"resource"`
	Summary        string `json:"summary"`
	Risk           string `json:"risk"`
	Mutating       *bool  `json:"mutating"`
}

func (c ToolAuthorize) check() *Rejection {
	return first(c.RunRef.check(), need("tool_call_id", c.ToolCallID, "permission_type", c.PermissionType, "resource", c.Resource),
		oneOf("risk", c.Risk, policy.RiskLow, policy.RiskMedium, policy.RiskHigh))
}

// authorizeResult is the result of tool.authorize.
type authorizeResult struct {
	Decision   string `json:"decision"` // allow, deny or ask
	Step       string `json:"step,omitzero"`
	RuleID     string `json:"rule_id,omitzero"`
	Reason     string `json:"reason,omitzero"`
	Generation string `json:"generation,omitzero"`
	MessageID  string `json:"message_id,omitzero"`
	Suspended  bool   `json:"suspended,omitzero"`
}

// decideAuthorize asks the policy about a call (docs/rules.md#policy): it is
// allowed, gets a failed result, or waits for a person.
func decideAuthorize(s *State, run *Run, c ToolAuthorize, env Env) (Decision, *Rejection) {
	call, r := s.gateable(run, c.ToolCallID)
	if r != nil {
		return refuse(r)
	}
	once, grants, r := s.restored(call)
	if r != nil {
		return refuseWith(s.refusedRun(run, r, env), r)
	}
	q := policy.Request{
		Tool: call.Name, Type: c.PermissionType, Resource: c.Resource, Risk: c.Risk, Mutating: s.mutates(call, c.PermissionType, c.Mutating, env),
		Workspace: s.Session.Workspace,
	}
	v := policy.Evaluate(s.policyInput(call, q, once, grants, env))
	access := events.Access{PermissionType: c.PermissionType, Resource: c.Resource}
	switch v.Decision {
	case policy.Allow:
		if call.Authorized && call.Access == access && call.Risk == c.Risk && call.Mutating == q.Mutating {
			return nothing(authorizeResult{Decision: policy.Allow, Step: v.Step, RuleID: v.RuleID})
		}
		return appendEvent(events.ToolAuthorized{CallRef: call.ref(), Access: access, Mutating: q.Mutating, Risk: c.Risk, Verdict: v.Event()})
	case policy.Deny:
		return appendEvent(s.denied(run, call, access, v.Event(), v.Why))
	}
	return s.parkCall(run, call, s.asked(call, c, v, env), env)
}

// policyInput is everything a verdict on the call rests on.
func (s *State) policyInput(call *Call, q policy.Request, once []policy.OneShot, grants []policy.Grant, env Env) policy.Input {
	in := policy.Input{
		Policy: env.Config.Policy, Request: q, CallID: call.ID, OneShots: once, Now: env.Now,
		Grants:  append(append([]policy.Grant(nil), s.Grants...), grants...),
		Session: policy.Session{RequestedMode: s.Session.Mode, Plan: s.Session.Plan != nil, ReadOnly: s.Session.ReadOnly, NoHumanApprover: s.Session.NoHumanApprover},
	}
	if call.Replaying || call.Status == CallDecided {
		in.Generation = call.Generation
	}
	return in
}

// restored are the approvals that a decided or replayed call carries, each
// checked before any counts (docs/rules.md#replay).
func (s *State) restored(call *Call) ([]policy.OneShot, []policy.Grant, *Rejection) {
	if call.Approval == nil || call.Approval.Request == nil {
		return nil, nil, nil
	}
	var approvals []policy.Approval
	for _, a := range append(append([]Approval(nil), call.Ledger...), *call.Approval) {
		if a.Request == nil {
			continue // the approval of a call whose outcome was unknown had no request
		}
		approvals = append(approvals, policy.Approval{Request: *a.Request, Decision: a.Decision, Matcher: a.Matcher, ExpiresAt: a.ExpiresAt})
	}
	once, grants, r := policy.Restore(call.ID, call.Generation, call.Name, s.Session.Workspace, approvals)
	if r != nil {
		return nil, nil, reject(r.Code, "%s", r.Message).with("tool_call_id", call.ID).with("generation", call.Generation)
	}
	return once, grants, nil
}

// denied is the failed result of a call that the policy refuses.
func (s *State) denied(run *Run, call *Call, access events.Access, v events.Verdict, why string) events.ToolDenied {
	suspends, loop := s.suspension(run, call.ID, CallSettled)
	return events.ToolDenied{
		CallRef: call.ref(), Access: access, Verdict: v, Content: call.notRun("denied: " + why), Suspends: suspends, Loop: loop,
	}
}

// asked is the item that waits where the policy wants a person's word.
func (s *State) asked(call *Call, c ToolAuthorize, v policy.Verdict, env Env) events.Parked {
	text := c.Summary
	if text == "" {
		text = call.Name + ": " + c.PermissionType + " " + cutText(c.Resource, 512)
	}
	return events.Parked{
		Kind: itemApproval, ArgumentsDigest: events.Hash([]byte(call.Arguments)), ExpiresAt: env.expiry(),
		Question: events.Question{Question: "Allow this? " + text, Options: []string{"Approve", "Deny"}, Source: "policy"},
		Request: &events.PermissionRequest{
			Generation: env.mint("generation", 0), ToolName: call.Name, PermissionType: c.PermissionType, Resource: c.Resource,
			Summary: c.Summary, Risk: v.Risk, ReasonCode: v.ReasonCode, Workspace: s.Session.Workspace, RequestedMode: v.RequestedMode,
			EffectiveMode: v.EffectiveMode, PolicyRevision: v.PolicyRevision, AllowedDecisions: v.AllowedDecisions, SuggestedMatchers: v.Matchers,
		},
	}
}

// parkCall lets the call wait, unless its ledger is full or nobody is there to
// be asked.
func (s *State) parkCall(run *Run, call *Call, p events.Parked, env Env) (Decision, *Rejection) {
	if len(call.Ledger)+1 >= maxLedger {
		return refuse(reject(CodeLedgerFull, "the call has gathered %d approvals already", len(call.Ledger)))
	}
	if s.Session.NoHumanApprover {
		access := events.Access{PermissionType: "question", Resource: call.Name}
		if p.Request != nil {
			access = events.Access{PermissionType: p.Request.PermissionType, Resource: p.Request.Resource}
		}
		v := events.Verdict{Step: policy.StepNoHuman, PolicyRevision: env.Config.PolicyRevision}
		return appendEvent(s.denied(run, call, access, v, "nobody is there to be asked in this session"))
	}
	suspends, loop := s.suspension(run, call.ID, CallParked)
	if call.Replaying {
		return appendEvent(events.ReplayReparked{CallRef: call.ref(), Generation: call.Generation, Parked: p, Suspends: suspends, Loop: loop})
	}
	return appendEvent(events.ToolParked{CallRef: call.ref(), Parked: p, Suspends: suspends, Loop: loop})
}
