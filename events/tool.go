package events

import "time"

// CallRef names one call of one round and the message of its result. Every
// event of a call begins with it.
type CallRef struct {
	ToolCallID string `json:"tool_call_id"`
	MessageID  string `json:"message_id"` // of the result: the occurrence
	Name       string `json:"name"`
}

// Result is a tool's outcome as the model will see it.
type Result struct {
	Success   bool   `json:"success"`
	Content   string `json:"content"`
	Error     string `json:"error,omitzero"`
	ElapsedMS uint64 `json:"elapsed_ms,omitzero"`
}

// Access is what a call wants to touch.
type Access struct {
	PermissionType string `json:"permission_type"`
	Resource       string `json:"resource"`
}

// Verdict says which rule of the policy answered.
type Verdict struct {
	Step           string `json:"step"` // of the evaluation order, docs/rules.md#policy
	RuleID         string `json:"rule_id,omitzero"`
	PolicyRevision uint64 `json:"policy_revision"`
}

// ToolAuthorized: policy allows the call without asking.
type ToolAuthorized struct {
	CallRef
	Access
	Mutating bool   `json:"mutating,omitzero"`
	Risk     string `json:"risk,omitzero"` // low, medium or high, if the runner stated one
	Verdict
}

// ToolDenied: policy refuses the call; Content is its failed result.
type ToolDenied struct {
	CallRef
	Access
	Verdict
	Content  string `json:"content"`
	Suspends bool   `json:"suspends,omitzero"`
	Loop     *Loop  `json:"loop,omitzero"`
}

// ToolStarted is durable before the side effect.
type ToolStarted struct {
	CallRef
	Mutating bool `json:"mutating,omitzero"`
}

// ToolFinished is the outcome of a started call.
type ToolFinished struct {
	CallRef
	Result
	Suspends bool  `json:"suspends,omitzero"`
	Loop     *Loop `json:"loop,omitzero"`
}

// Parked is a call that waits for a person.
type Parked struct {
	Kind            string             `json:"kind"` // approval or question
	Question        Question           `json:"question"`
	ArgumentsDigest string             `json:"arguments_digest"` // hex SHA-256 of the exact argument bytes
	Request         *PermissionRequest `json:"request,omitzero"`
	ExpiresAt       time.Time          `json:"expires_at,omitzero"`
}

// ToolParked: the call waits; nothing runs until a person decides.
type ToolParked struct {
	CallRef
	Parked
	Suspends bool  `json:"suspends,omitzero"`
	Loop     *Loop `json:"loop,omitzero"`
}

// ToolResolved: a person supplied the outcome of an unknown call.
type ToolResolved struct {
	CallRef
	Generation string `json:"generation"`
	Success    bool   `json:"success"`
	Content    string `json:"content"`
	RunID      string `json:"run_id,omitzero"` // successor run this requests
}

// ApprovalDecided is a person's decision on one waiting call.
type ApprovalDecided struct {
	CallRef
	Generation string   `json:"generation"`
	Decision   string   `json:"decision"` // allow_once, allow_session, allow_workspace, allow_global, deny_once or deny_session
	MatcherID  string   `json:"matcher_id,omitzero"`
	Matcher    *Matcher `json:"matcher,omitzero"` // what MatcherID named
	Note       string   `json:"note,omitzero"`
	// Content is the failed result that a denial writes.
	Content string `json:"content,omitzero"`
	// ExpiresAt ends a decision remembered for the session.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RunID     string    `json:"run_id,omitzero"` // successor run this requests
}

// QuestionAnswered is a person's answer; Answer is the call's result.
type QuestionAnswered struct {
	CallRef
	Answer          string `json:"answer"`
	Content         string `json:"content"` // the result as the model will see it
	Model           *Model `json:"model,omitzero"`
	ReasoningEffort string `json:"reasoning_effort,omitzero"`
	// Plan is entered or exited where the answer moves the plan overlay.
	Plan    string   `json:"plan,omitzero"`
	Posture *Posture `json:"posture,omitzero"`
	RunID   string   `json:"run_id,omitzero"`
}

// QuestionExpired: nobody decided in the time the policy set. It is no denial.
type QuestionExpired struct {
	CallRef
	Generation string `json:"generation,omitzero"`
	Content    string `json:"content"`
	RunID      string `json:"run_id,omitzero"`
}

// ReplayStarted hands a decided call out, once; durable before the side effect.
type ReplayStarted struct {
	CallRef
	Generation string      `json:"generation"`
	Flags      ReplayFlags `json:"flags"`
}

// ReplayFinished is the outcome of a replayed call.
type ReplayFinished struct {
	CallRef
	Generation string `json:"generation"`
	Result
	Suspends bool  `json:"suspends,omitzero"`
	Loop     *Loop `json:"loop,omitzero"`
}

// ReplayBlocked: a decided call may not run any more; Content is its failed result.
type ReplayBlocked struct {
	CallRef
	Generation string `json:"generation"`
	Reason     string `json:"reason"` // plan, authority or unavailable
	Content    string `json:"content"`
	Suspends   bool   `json:"suspends,omitzero"`
	Loop       *Loop  `json:"loop,omitzero"`
}

// ReplayReparked: a second gate of the same call; it waits again under a new
// generation while the approvals given so far are kept.
type ReplayReparked struct {
	CallRef
	Generation string `json:"generation"` // the one that was replayed
	Parked
	Suspends bool  `json:"suspends,omitzero"`
	Loop     *Loop `json:"loop,omitzero"`
}

// PolicyModeChanged sets the configured mode of the installation.
type PolicyModeChanged struct {
	Mode string `json:"mode"` // default, plan, accept_edits, dont_ask, bypass_permissions or auto
}

// PolicyRuleAdded adds a durable rule.
type PolicyRuleAdded struct {
	RuleID         string  `json:"rule_id"`
	Effect         string  `json:"effect"` // allow, deny or always_ask
	Scope          string  `json:"scope"`  // global or workspace
	Workspace      string  `json:"workspace,omitzero"`
	PermissionType string  `json:"permission_type"`
	Matcher        Matcher `json:"matcher"`
}

// PolicyRuleRemoved removes a durable rule.
type PolicyRuleRemoved struct {
	RuleID string `json:"rule_id"`
}

func (ToolAuthorized) EventType() string    { return "tool.authorized" }
func (ToolDenied) EventType() string        { return "tool.denied" }
func (ToolStarted) EventType() string       { return "tool.started" }
func (ToolFinished) EventType() string      { return "tool.finished" }
func (ToolParked) EventType() string        { return "tool.parked" }
func (ToolResolved) EventType() string      { return "tool.resolved" }
func (ApprovalDecided) EventType() string   { return "approval.decided" }
func (QuestionAnswered) EventType() string  { return "question.answered" }
func (QuestionExpired) EventType() string   { return "question.expired" }
func (ReplayStarted) EventType() string     { return "replay.started" }
func (ReplayFinished) EventType() string    { return "replay.finished" }
func (ReplayBlocked) EventType() string     { return "replay.blocked" }
func (ReplayReparked) EventType() string    { return "replay.reparked" }
func (PolicyModeChanged) EventType() string { return "policy.mode_changed" }
func (PolicyRuleAdded) EventType() string   { return "policy.rule_added" }
func (PolicyRuleRemoved) EventType() string { return "policy.rule_removed" }

// Suspends says that the event leaves its run waiting for a person.
func Suspends(d Data) bool {
	switch d := d.(type) {
	case ToolDenied:
		return d.Suspends
	case ToolFinished:
		return d.Suspends
	case ToolParked:
		return d.Suspends
	case ReplayFinished:
		return d.Suspends
	case ReplayBlocked:
		return d.Suspends
	case ReplayReparked:
		return d.Suspends
	}
	return false
}
