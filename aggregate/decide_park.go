package aggregate

import (
	"slices"
	"strings"

	"culm/aggregate/policy"
	"culm/events"
)

// parked spells the waiting item of tool.park; generation, workspace, modes
// and policy revision are the engine's own.
func (s *State) parked(call *Call, c ToolPark, env Env) (events.Parked, *Rejection) {
	p := events.Parked{
		Kind: itemQuestion, ArgumentsDigest: events.Hash([]byte(call.Arguments)), ExpiresAt: env.expiry(),
		Question: events.Question{
			Question: c.Question, Options: slices.Clone(c.Options), AllowCustom: c.Request == nil, Source: c.Source,
		},
	}
	if c.AllowCustom != nil {
		p.Question.AllowCustom = *c.AllowCustom
	}
	if p.Question.Source == "" {
		p.Question.Source = "pause_tool"
	}
	if c.Request == nil {
		return p, nil
	}
	p.Kind = itemApproval
	q, r := s.permissionRequest(call, c.Request, env)
	p.Request = q
	return p, r
}

// permissionRequest completes what a runner stated; where it says nothing of
// decisions or matchers, those are offered that the policy supports.
func (s *State) permissionRequest(call *Call, q *RequestSpec, env Env) (*events.PermissionRequest, *Rejection) {
	for i, m := range q.SuggestedMatchers {
		if err := policy.CheckMatcher(q.PermissionType, m); err != nil {
			return nil, reject(CodeInvalidCommand, "request.suggested_matchers[%d]: %v", i, err)
		}
		if m.ID == "" || slices.ContainsFunc(q.SuggestedMatchers[:i], func(o events.Matcher) bool { return o.ID == m.ID }) {
			return nil, reject(CodeInvalidCommand, "request.suggested_matchers[%d].id is empty or repeated", i)
		}
	}
	out := &events.PermissionRequest{
		Generation: env.mint("generation", 0), ToolName: q.ToolName, PermissionType: q.PermissionType, Resource: q.Resource,
		Summary: q.Summary, Risk: q.Risk, ReasonCode: q.ReasonCode, Workspace: s.Session.Workspace,
		RequestedMode: s.Session.Mode, EffectiveMode: policy.EffectiveMode(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil),
		PolicyRevision: env.Config.PolicyRevision, AllowedDecisions: slices.Clone(q.AllowedDecisions),
		SuggestedMatchers: slices.Clone(q.SuggestedMatchers),
	}
	if len(out.AllowedDecisions) == 0 {
		out.AllowedDecisions = supportedDecisions(out.Workspace)
	}
	if len(out.SuggestedMatchers) == 0 && slices.ContainsFunc(out.AllowedDecisions, policy.Remembered) {
		out.SuggestedMatchers = policy.SuggestMatchers(policy.Request{
			Tool: call.Name, Type: q.PermissionType, Resource: q.Resource, Risk: q.Risk, Workspace: out.Workspace,
		})
	}
	return out, nil
}

// supportedDecisions are all kinds; for a workspace only where there is one.
func supportedDecisions(workspace string) []string {
	return slices.DeleteFunc(policy.Decisions(), func(d string) bool { return d == allowWorkspace && strings.TrimSpace(workspace) == "" })
}
