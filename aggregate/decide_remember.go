package aggregate

import (
	"culm/aggregate/policy"
	"culm/events"
)

// checkDecision checks the choice against what the item allows, as the policy
// stands now, and returns what is to be remembered: the matcher, and the rule
// of a workspace or global decision (docs/rules.md#decide).
func (s *State) checkDecision(call *Call, c ApprovalDecide, env Env) (*events.Matcher, *events.PolicyRuleAdded, *Rejection) {
	q := call.decidedRequest(c.Generation)
	if q == nil || call.Status == CallUnknown {
		q = &events.PermissionRequest{Generation: c.Generation, ToolName: call.Name, AllowedDecisions: []string{allowOnce, denyOnce}}
	} else if isAllow(c.Decision) && s.deniedByNow(call, q, env) {
		return nil, nil, reject(CodeDecisionNotAllowed, "the policy has changed and denies this by now; only a denial is left").
			with("allowed", []string{denyOnce}).with("policy_revision", env.Config.PolicyRevision)
	}
	rule := s.ruleFor(call, q, c)
	current := env.Config.PolicyRevision
	if rule != nil {
		if old, there := env.Config.Policy.Rule(rule.RuleID); there && old == *rule {
			// A first attempt stored the rule, which has moved the revision on.
			current = deref(c.ExpectedPolicyRevision)
		}
	}
	m, r := policy.CheckDecision(*q, c.choice(), current)
	if r != nil {
		return nil, nil, reject(r.Code, "%s", r.Message).with("allowed", q.AllowedDecisions).with("policy_revision", env.Config.PolicyRevision)
	}
	if rule != nil {
		if err := env.Config.Policy.CheckRule(*rule); err != nil {
			return nil, nil, reject(CodePolicyConflict, "the rule to remember cannot be stored: %v", err)
		}
	}
	return m, rule, nil
}

// ruleFor is the durable rule of a workspace or global choice that is sound in
// itself, nil for any other; its id follows from what was decided.
func (s *State) ruleFor(call *Call, q *events.PermissionRequest, c ApprovalDecide) *events.PolicyRuleAdded {
	if !policy.Durable(c.Decision) || c.ExpectedPolicyRevision == nil {
		return nil
	}
	m, r := policy.CheckDecision(*q, c.choice(), *c.ExpectedPolicyRevision)
	if r != nil || m == nil {
		return nil
	}
	rule := policy.RuleFor(s.Session.Name, call.ID, *q, c.Decision, *m)
	return &rule
}

// ruleOfNone is the id of the rule that the choice would store although its item
// was settled otherwise, so that the choice can never be made again; "" while it
// can, if it was made, or if the item is not known here.
func (s *State) ruleOfNone(c ApprovalDecide) string {
	if !policy.Durable(c.Decision) {
		return ""
	}
	d, decided := s.Decided[c.Generation]
	call := s.call(c.ToolCallID)
	switch {
	case decided && (d.ToolCallID != c.ToolCallID || d.Decision == c.Decision):
		return ""
	case !decided && (call == nil || call.Newest != c.Generation || call.Status.Waiting() && !s.Session.Closed):
		return ""
	}
	return policy.RuleFor(s.Session.Name, c.ToolCallID, events.PermissionRequest{Generation: c.Generation}, c.Decision, events.Matcher{}).RuleID
}

// deniedByNow says that a newer policy than the one that asked denies the call.
func (s *State) deniedByNow(call *Call, q *events.PermissionRequest, env Env) bool {
	if env.Config.PolicyRevision == q.PolicyRevision {
		return false
	}
	in := s.policyInput(call, s.requestOf(call, q), nil, nil, env)
	in.Session.NoHumanApprover = false // a person is deciding
	return policy.Evaluate(in).Decision == policy.Deny
}

// requestOf is a parked request as the policy judges it again.
func (s *State) requestOf(call *Call, q *events.PermissionRequest) policy.Request {
	return policy.Request{
		Tool: call.Name, Type: q.PermissionType, Resource: q.Resource, Risk: q.Risk, Mutating: policy.Mutates(call.Name, q.PermissionType, nil), Workspace: s.Session.Workspace,
	}
}
