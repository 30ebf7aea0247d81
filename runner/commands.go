package runner

import "culm/events"

// The commands of a runner and their results, as docs/contract.md spells them.

type runRef struct {
	RunID string `json:"run_id"`
	Fence uint64 `json:"fence"`
}

type claimData struct {
	RunID     string   `json:"run_id"`
	Runner    string   `json:"runner"`
	Providers []string `json:"providers"`
}

type claimResult struct {
	Fence   uint64        `json:"fence"`
	LeaseMS int64         `json:"lease_ms"`
	Cause   string        `json:"cause"`
	Roster  events.Roster `json:"roster"`
}

type renewResult struct {
	LeaseMS         int64 `json:"lease_ms"`
	CancelRequested bool  `json:"cancel_requested"`
}

type finishData struct {
	runRef
	Outcome string          `json:"outcome"`
	Error   *events.Failure `json:"error,omitzero"`
}

type admitResult struct {
	Admitted bool   `json:"admitted"`
	Reason   string `json:"reason"`
}

type roundFinishData struct {
	runRef
	Round        uint32        `json:"round"`
	Message      answerData    `json:"message"`
	Usage        *events.Usage `json:"usage,omitzero"`
	FinishReason string        `json:"finish_reason,omitzero"`
	Attempts     int           `json:"attempts,omitzero"`
	AdmitNext    bool          `json:"admit_next,omitzero"`
}

type answerData struct {
	Content   string     `json:"content"`
	ToolCalls []callData `json:"tool_calls,omitzero"`
}

type callData struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type roundFailData struct {
	runRef
	Round uint32         `json:"round"`
	Error events.Failure `json:"error"`
}

type toolStartData struct {
	runRef
	ToolCallID string `json:"tool_call_id"`
	Mutating   bool   `json:"mutating"`
}

type toolAuthorizeData struct {
	runRef
	ToolCallID     string `json:"tool_call_id"`
	PermissionType string `json:"permission_type"`
	Resource       string `json:"resource"`
	Summary        string `json:"summary,omitzero"`
	Risk           string `json:"risk,omitzero"`
	Mutating       bool   `json:"mutating"`
}

type authorizeResult struct {
	Decision string `json:"decision"` // allow, deny or ask
}

type toolFinishData struct {
	runRef
	ToolCallID string `json:"tool_call_id"`
	Success    bool   `json:"success"`
	Content    string `json:"content"`
	Error      string `json:"error,omitzero"`
	ElapsedMS  int64  `json:"elapsed_ms,omitzero"`
}

type toolParkData struct {
	runRef
	ToolCallID  string       `json:"tool_call_id"`
	Question    string       `json:"question"`
	Options     []string     `json:"options,omitzero"`
	AllowCustom bool         `json:"allow_custom"`
	Request     *requestData `json:"request,omitzero"`
}

type requestData struct {
	ToolName       string `json:"tool_name"`
	PermissionType string `json:"permission_type"`
	Resource       string `json:"resource"`
	Summary        string `json:"summary,omitzero"`
	Risk           string `json:"risk,omitzero"`
}

type replayResult struct {
	Replay *struct {
		ToolCallID string `json:"tool_call_id"`
		Name       string `json:"name"`
		Arguments  string `json:"arguments"`
		Digest     string `json:"arguments_digest"`
	} `json:"replay"`
}
