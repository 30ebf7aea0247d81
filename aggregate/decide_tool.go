package aggregate

import (
	"strings"

	"culm/events"
)

func cancelled() *Rejection {
	return reject(CodeCancelRequested, "the run was asked to cancel: nothing of it may start any more")
}

// decideToolStart is durable before the side effect (docs/rules.md#tool-call).
func decideToolStart(s *State, run *Run, c ToolStart, env Env) (Decision, *Rejection) {
	call, r := s.needCall(c.ToolCallID)
	mutating := c.Mutating == nil || *c.Mutating
	switch {
	case r != nil:
		return refuse(r)
	case run.CancelRequested:
		return refuse(cancelled())
	case call.Status != CallOpen:
		return refuse(call.notOpen())
	case mutating && s.readOnly(env) && !(c.Mutating == nil && PlanAllowed(call.Name)):
		return refuse(reject(CodePlanMode, "%s may change the world and the session is read-only", call.Name))
	case s.Session.EnforcePolicy && !call.Authorized:
		return refuse(reject(CodeNotAuthorized, "the session enforces policy: tool.authorize comes first"))
	}
	return appendEvent(events.ToolStarted{CallRef: call.ref(), Mutating: deref(c.Mutating)})
}

// readOnly says that nothing that changes the world may run now: plan mode, or
// a read-only session.
func (s *State) readOnly(env Env) bool {
	return s.Session.ReadOnly || effectiveMode(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil) == modePlan
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

// decidePark lets a call wait for a person: a call that has not started, or a
// replayed one that meets a second gate (docs/rules.md#repark).
func decidePark(s *State, run *Run, c ToolPark, env Env) (Decision, *Rejection) {
	call, r := s.needCall(c.ToolCallID)
	switch {
	case r != nil:
		return refuse(r)
	case run.CancelRequested:
		return refuse(cancelled())
	case call.Status != CallOpen && !(call.Status == CallStarted && call.Replaying):
		return refuse(call.notOpen())
	case c.Request != nil && !strings.EqualFold(c.Request.ToolName, call.Name):
		return refuse(reject(CodeReparkInvalid, "request.tool_name %.64q is not the call's %.64q", c.Request.ToolName, call.Name))
	case call.Status == CallStarted && c.Request == nil:
		return refuse(reject(CodeReparkInvalid, "a second gate needs a typed request"))
	case len(call.Ledger)+1 >= maxLedger:
		return refuse(reject(CodeLedgerFull, "the call has gathered %d approvals already", len(call.Ledger)))
	}
	p := s.parked(call, c, env)
	suspends, loop := s.suspension(run, call.ID, CallParked)
	if call.Replaying {
		return appendEvent(events.ReplayReparked{CallRef: call.ref(), Generation: call.Generation, Parked: p, Suspends: suspends, Loop: loop})
	}
	return appendEvent(events.ToolParked{CallRef: call.ref(), Parked: p, Suspends: suspends, Loop: loop})
}

// parked spells the waiting item; generation, workspace, modes and policy
// revision are the engine's own.
func (s *State) parked(call *Call, c ToolPark, env Env) events.Parked {
	p := events.Parked{
		Kind: itemQuestion, ArgumentsDigest: events.Hash([]byte(call.Arguments)),
		Question: events.Question{
			Question: c.Question, Options: append([]string(nil), c.Options...), AllowCustom: c.Request == nil, Source: c.Source,
		},
	}
	if c.AllowCustom != nil {
		p.Question.AllowCustom = *c.AllowCustom
	}
	if p.Question.Source == "" {
		p.Question.Source = "pause_tool"
	}
	if q := c.Request; q != nil {
		p.Kind = itemApproval
		p.Request = &events.PermissionRequest{
			Generation: env.mint("generation", 0), ToolName: q.ToolName, PermissionType: q.PermissionType, Resource: q.Resource,
			Summary: q.Summary, Risk: q.Risk, ReasonCode: q.ReasonCode, Workspace: s.Session.Workspace,
			RequestedMode: s.Session.Mode, EffectiveMode: effectiveMode(env.Config.Mode, s.Session.Mode, s.Session.Plan != nil),
			PolicyRevision: env.Config.PolicyRevision, AllowedDecisions: allowedDecisions(q),
			SuggestedMatchers: append([]events.Matcher(nil), q.SuggestedMatchers...),
		}
	}
	return p
}

// allowedDecisions defaults to the two that remember nothing.
func allowedDecisions(q *RequestSpec) []string {
	if len(q.AllowedDecisions) > 0 {
		return append([]string(nil), q.AllowedDecisions...)
	}
	return []string{allowOnce, denyOnce}
}
