package aggregate

import (
	"strings"

	"culm/aggregate/policy"
	"culm/events"
)

func cancelled() *Rejection {
	return reject(CodeCancelRequested, "the run was asked to cancel: nothing of it may start any more")
}

// decideToolStart is durable before the side effect (docs/rules.md#tool-call).
func decideToolStart(s *State, run *Run, c ToolStart, env Env) (Decision, *Rejection) {
	call, r := s.needCall(c.ToolCallID)
	if r != nil {
		return refuse(r)
	}
	mutating := s.mutates(call, call.Access.PermissionType, c.Mutating, env)
	switch {
	case run.CancelRequested:
		return refuse(cancelled())
	case call.Status != CallOpen:
		return refuse(call.notOpen())
	case mutating && s.readOnly(env):
		return refuse(reject(CodePlanMode, "%s may change the world and the session is read-only", call.Name))
	case s.Session.EnforcePolicy && !call.Authorized:
		return refuse(reject(CodeNotAuthorized, "the session enforces policy: tool.authorize comes first"))
	case !s.stillAllowed(call, env):
		return refuse(reject(CodeNotAuthorized, "the policy has changed since tool.authorize and does not allow it now; ask again"))
	}
	return appendEvent(events.ToolStarted{CallRef: call.ref(), Mutating: mutating})
}

// mutates says whether the call counts as one that may change the world. Where
// nothing may change it, what a runner states of a call lets nothing pass.
func (s *State) mutates(call *Call, permissionType string, stated *bool, env Env) bool {
	if s.readOnly(env) {
		return !policy.ReadsOnly(call.Name, permissionType, stated)
	}
	return policy.Mutates(call.Name, permissionType, stated)
}

// stillAllowed asks the policy again about a call that it has allowed: the last
// change of policy or mode before the start decides. A call that only reads is
// not asked about again, its risk is what its tool said.
func (s *State) stillAllowed(call *Call, env Env) bool {
	if !call.Authorized || !call.Mutating {
		return true
	}
	return policy.Evaluate(s.policyInput(call, call.authorized(s.Session.Workspace), nil, nil, env)).Decision == policy.Allow
}

// authorized is what the call was last authorized for.
func (c *Call) authorized(workspace string) policy.Request {
	return policy.Request{
		Tool: c.Name, Type: c.Access.PermissionType, Resource: c.Access.Resource, Risk: c.Risk, Workspace: workspace,
		Mutating: policy.Mutates(c.Name, c.Access.PermissionType, nil),
	}
}

// readOnly says that nothing that changes the world may run now: plan mode, or
// a read-only session.
func (s *State) readOnly(env Env) bool {
	return s.Session.ReadOnly || policy.EffectiveMode(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil) == policy.ModePlan
}

// decideToolFinish stores the outcome of a started call, of a replay too. A
// call that was kept from starting (plan mode, no such tool) gets its failed
// result without a start: nothing happened.
func decideToolFinish(s *State, run *Run, c ToolFinish) (Decision, *Rejection) {
	call, r := s.needCall(c.ToolCallID)
	switch {
	case r != nil:
		return refuse(r)
	case call.Status != CallStarted && (call.Status != CallOpen || *c.Success):
		return refuse(call.notOpen())
	}
	result := events.Result{Success: *c.Success, Content: *c.Content, Error: c.Error, ElapsedMS: c.ElapsedMS}
	suspends, loop := s.suspension(run, call.ID, CallSettled)
	if call.Replaying {
		return appendEvent(events.ReplayFinished{CallRef: call.ref(), Generation: call.Generation, Result: result, Suspends: suspends, Loop: loop})
	}
	return appendEvent(events.ToolFinished{CallRef: call.ref(), Result: result, Suspends: suspends, Loop: loop})
}

// maxLedger is how many approvals one occurrence may gather, the newest
// request included: the limit is met when a gate is parked, so that nobody
// answers in vain.
const maxLedger = 64

// Kinds of a waiting item.
const (
	itemApproval = "approval"
	itemQuestion = "question"
	itemUnknown  = "unknown"
)

// gateable is a call that may meet a gate now: one that has not started, or a
// replayed one at its second gate, of a run that was not asked to cancel.
func (s *State) gateable(run *Run, id string) (*Call, *Rejection) {
	call, r := s.needCall(id)
	switch {
	case r != nil:
		return nil, r
	case run.CancelRequested:
		return nil, cancelled()
	case call.Status != CallOpen && !(call.Status == CallStarted && call.Replaying):
		return nil, call.notOpen()
	}
	return call, nil
}

// decidePark lets a call wait for a person: a call that has not started, or a
// replayed one that meets a second gate (docs/rules.md#repark).
func decidePark(s *State, run *Run, c ToolPark, env Env) (Decision, *Rejection) {
	call, r := s.gateable(run, c.ToolCallID)
	switch {
	case r != nil:
		return refuse(r)
	case c.Request != nil && !strings.EqualFold(c.Request.ToolName, call.Name):
		return refuse(reject(CodeReparkInvalid, "request.tool_name %.64q is not the call's %.64q", c.Request.ToolName, call.Name))
	case call.Status == CallStarted && c.Request == nil:
		return refuse(reject(CodeReparkInvalid, "a second gate needs a typed request"))
	}
	p, r := s.parked(call, c, env)
	if r != nil {
		return refuse(r)
	}
	return s.parkCall(run, call, p, env)
}
