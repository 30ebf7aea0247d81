package aggregate

import "culm/events"

// ToolStart is tool.start.
type ToolStart struct {
	RunRef
	ToolCallID string `json:"tool_call_id"`
	// Mutating says whether the call changes the world; absent counts as true
	// where it matters.
	Mutating *bool `json:"mutating"`
}

func (c ToolStart) check() *Rejection {
	return first(c.RunRef.check(), need("tool_call_id", c.ToolCallID))
}

// ToolFinish is tool.finish.
type ToolFinish struct {
	RunRef
	ToolCallID string  `json:"tool_call_id"`
	Success    *bool   `json:"success"`
	Content    *string `json:"content"`
	Error      string  `json:"error"`
	ElapsedMS  uint64  `json:"elapsed_ms"`
}

func (c ToolFinish) check() *Rejection {
	switch {
	case c.Success == nil:
		return missing("success")
	case c.Content == nil:
		return reject(CodeInvalidCommand, "content is missing")
	}
	return first(c.RunRef.check(), need("tool_call_id", c.ToolCallID))
}

// RequestSpec is the typed half of tool.park.
type RequestSpec struct {
	ToolName          string           `json:"tool_name"`
	PermissionType    string           `json:"permission_type"`
	Resource          string           `json:"resource"`
	Summary           string           `json:"summary"`
	Risk              string           `json:"risk"`
	ReasonCode        string           `json:"reason_code"`
	AllowedDecisions  []string         `json:"allowed_decisions"`
	SuggestedMatchers []events.Matcher `json:"suggested_matchers"`
}

// ToolPark is tool.park.
type ToolPark struct {
	RunRef
	ToolCallID  string       `json:"tool_call_id"`
	Question    string       `json:"question"`
	Options     []string     `json:"options"`
	AllowCustom *bool        `json:"allow_custom"`
	Source      string       `json:"source"`
	Request     *RequestSpec `json:"request"`
}

func (c ToolPark) check() *Rejection {
	if r := first(c.RunRef.check(), need("tool_call_id", c.ToolCallID, "question", c.Question)); r != nil {
		return r
	}
	if len(c.Options) > maxOptions {
		return reject(CodeInvalidCommand, "%d options, allowed are %d", len(c.Options), maxOptions)
	}
	if c.Request == nil {
		if c.AllowCustom != nil && !*c.AllowCustom && len(c.Options) == 0 {
			return reject(CodeInvalidCommand, "a question without options that allows no words of one's own has no answer")
		}
		return nil
	}
	q := c.Request
	if r := need("request.tool_name", q.ToolName, "request.permission_type", q.PermissionType, "request.resource", q.Resource); r != nil {
		return r
	}
	for _, d := range q.AllowedDecisions {
		if !decisionKinds[d] {
			return reject(CodeInvalidCommand, "request.allowed_decisions holds %.40q", d)
		}
	}
	return nil
}

// ReplayStart is replay.start.
type ReplayStart struct{ RunRef }

// The decisions a person can give.
const (
	allowOnce      = "allow_once"
	allowSession   = "allow_session"
	allowWorkspace = "allow_workspace"
	allowGlobal    = "allow_global"
	denyOnce       = "deny_once"
	denySession    = "deny_session"
)

var decisionKinds = map[string]bool{
	allowOnce: true, allowSession: true, allowWorkspace: true, allowGlobal: true, denyOnce: true, denySession: true,
}

func isAllow(decision string) bool {
	return decision == allowOnce || decision == allowSession || decision == allowWorkspace || decision == allowGlobal
}

// ApprovalDecide is approval.decide.
type ApprovalDecide struct {
	ToolCallID             string  `json:"tool_call_id"`
	Generation             string  `json:"generation"`
	Decision               string  `json:"decision"`
	MatcherID              string  `json:"matcher_id"`
	ExpectedPolicyRevision *uint64 `json:"expected_policy_revision"`
	ConfirmGlobal          bool    `json:"confirm_global"`
	Note                   string  `json:"note"`
}

func (c ApprovalDecide) check() *Rejection {
	if r := need("tool_call_id", c.ToolCallID, "generation", c.Generation, "decision", c.Decision); r != nil {
		return r
	}
	if !decisionKinds[c.Decision] {
		return reject(CodeInvalidCommand, "decision is %.40q", c.Decision)
	}
	return nil
}

// QuestionAnswer is question.answer.
type QuestionAnswer struct {
	ToolCallID      string        `json:"tool_call_id"`
	Answer          *string       `json:"answer"`
	Model           *events.Model `json:"model"`
	ReasoningEffort string        `json:"reasoning_effort"`
}

func (c QuestionAnswer) check() *Rejection {
	if c.Answer == nil {
		return missing("answer")
	}
	return checkModel(c.Model)
}

// ToolResolve is tool.resolve.
type ToolResolve struct {
	ToolCallID string  `json:"tool_call_id"`
	Generation string  `json:"generation"`
	Success    *bool   `json:"success"`
	Content    *string `json:"content"`
}

func (c ToolResolve) check() *Rejection {
	switch {
	case c.Success == nil:
		return missing("success")
	case c.Content == nil:
		return reject(CodeInvalidCommand, "content is missing")
	}
	return need("tool_call_id", c.ToolCallID)
}
