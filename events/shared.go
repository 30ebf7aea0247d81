package events

import "github.com/go-json-experiment/json/jsontext"

// Model names a model of a provider instance.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Parent links a child session to the call that asked for it.
type Parent struct {
	Session    string `json:"session"`
	ToolCallID string `json:"tool_call_id"`
}

// Failure is an error as clients see it: a stable code and a text.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable,omitzero"`
}

// Usage counts model tokens.
type Usage struct {
	Prompt     uint64 `json:"prompt"`
	Completion uint64 `json:"completion"`
	Total      uint64 `json:"total"`
}

// Add sums two usages.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.Prompt + o.Prompt, u.Completion + o.Completion, u.Total + o.Total}
}

// Budget bounds one run; a zero field is no bound.
type Budget struct {
	MaxRounds      uint32 `json:"max_rounds,omitzero"`
	MaxTotalTokens uint64 `json:"max_total_tokens,omitzero"`
	MaxToolCalls   uint32 `json:"max_tool_calls,omitzero"`
	MaxSubagents   uint32 `json:"max_subagents,omitzero"`
}

// LoopStatus is the state of a counted loop (docs/rules.md#loop-states).
type LoopStatus string

// The states of a counted loop. Running and Finalizing are live.
const (
	StatusRunning             LoopStatus = "running"
	StatusFinalizing          LoopStatus = "finalizing"
	StatusPaused              LoopStatus = "paused"
	StatusCompleted           LoopStatus = "completed"
	StatusStopped             LoopStatus = "stopped"
	StatusCancelled           LoopStatus = "cancelled"
	StatusBudgetExhausted     LoopStatus = "budget_exhausted"
	StatusFailed              LoopStatus = "failed"
	StatusRecoveryUnsupported LoopStatus = "recovery_unsupported"
)

// Live says that rounds may still be admitted.
func (s LoopStatus) Live() bool { return s == StatusRunning || s == StatusFinalizing }

// Loop is a counted loop as it stands after the event that carries it.
type Loop struct {
	Generation          string     `json:"generation"` // UUID of this start of a loop
	Revision            uint64     `json:"revision"`   // within the generation; the first stored one is 2
	Status              LoopStatus `json:"status"`     // running, finalizing, paused, completed, stopped, cancelled, budget_exhausted, failed or recovery_unsupported
	IterationsStarted   uint32     `json:"iterations_started"`
	IterationsCompleted uint32     `json:"iterations_completed"`
	RoundsStarted       uint32     `json:"rounds_started"`
	Reason              string     `json:"reason,omitzero"` // why it ended or paused
}

// LoopStart is a loop with what is fixed for its life, as run.started carries it.
type LoopStart struct {
	Loop
	Owner         string `json:"owner"` // run id that executes it
	Objective     string `json:"objective"`
	MaxIterations uint32 `json:"max_iterations"`
	// MaxTotalRounds is the effective cap: the lower of the loop's own and the run budget's.
	MaxTotalRounds uint32 `json:"max_total_rounds"`
	OnPark         string `json:"on_park"` // end or pause
}

// LoopRequest asks for a loop; it starts when the run is claimed.
type LoopRequest struct {
	Objective      string `json:"objective"`
	MaxIterations  uint32 `json:"max_iterations"`
	MaxTotalRounds uint32 `json:"max_total_rounds"` // effective
	OnPark         string `json:"on_park"`
}

// UserMessage is a message a person sent.
type UserMessage struct {
	MessageID string `json:"message_id"`
	Content   string `json:"content"`
}

// Repeat is the objective given to the model again (docs/rules.md#repeat).
type Repeat struct {
	MessageID         string `json:"message_id"`
	Content           string `json:"content"`
	RuntimeKind       string `json:"runtime_kind"` // always counted_loop_iteration
	LoopGeneration    string `json:"loop_generation"`
	ObjectiveRevision uint32 `json:"objective_revision"` // always 1
	Iteration         uint32 `json:"iteration"`
}

// RuntimeKindIteration marks a Repeat.
const RuntimeKindIteration = "counted_loop_iteration"

// ToolCall is one call of an assistant message.
type ToolCall struct {
	// ID names the call in commands: the model's id, or a minted one where the
	// model's was empty or repeated within the message.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the exact text the model gave, which need not be JSON.
	Arguments string `json:"arguments"`
	// ModelID is what the model gave where ID is minted: empty or repeated.
	ModelID *string `json:"model_id,omitzero"`
}

// AssistantMessage is one answer of the model.
type AssistantMessage struct {
	MessageID string     `json:"message_id"`
	Content   string     `json:"content"`
	ToolCalls []ToolCall `json:"tool_calls,omitzero"`
}

// UnknownCall is a call that was started and has no outcome: it may have
// happened. It is never repeated by itself (docs/rules.md#unknown).
type UnknownCall struct {
	ToolCallID      string `json:"tool_call_id"`
	MessageID       string `json:"message_id"` // of the waiting result
	Name            string `json:"name"`
	ArgumentsDigest string `json:"arguments_digest"`
	Generation      string `json:"generation"` // under which a person decides
	StartedSeq      uint64 `json:"started_seq"`
}

// VoidedCall is a call that will not run; its failed result is Content.
type VoidedCall struct {
	ToolCallID string `json:"tool_call_id"`
	MessageID  string `json:"message_id"` // of the result
	Content    string `json:"content"`
}

// Admission is the start of a round.
type Admission struct {
	Round     uint32  `json:"round"`              // per run, 0-based
	Iteration uint32  `json:"iteration,omitzero"` // 1-based, in a loop
	Repeat    *Repeat `json:"repeat,omitzero"`    // stored with the first round of iterations 2..K
	Summary   bool    `json:"summary,omitzero"`   // the one round after a spent budget
}

// NextRound is the admission that round.finish asked for with admit_next.
type NextRound struct {
	Admission
	Admitted bool   `json:"admitted"`
	Reason   string `json:"reason,omitzero"` // why it was not admitted
}

// Posture is the permission state after a change (docs/rules.md#posture).
type Posture struct {
	AuditRevision  uint64 `json:"audit_revision"`  // number of changes so far, this one included
	PolicyRevision uint64 `json:"policy_revision"` // sequence of the _settings session that applied
	RequestedMode  string `json:"requested_mode"`  // default, bypass or auto
	EffectiveMode  string `json:"effective_mode"`  // what holds of it under the installation's policy
}

// Question is what a person is asked.
type Question struct {
	Question    string   `json:"question"`
	Options     []string `json:"options,omitzero"`
	AllowCustom bool     `json:"allow_custom"` // an answer outside of the options counts
	Source      string   `json:"source"`       // who asks: a tool, or the policy
}

// Matcher says what a remembered decision or a rule covers.
type Matcher struct {
	ID      string `json:"id,omitzero"`
	Kind    string `json:"kind"`
	Pattern string `json:"pattern"`
}

// PermissionRequest is the typed half of a parked call.
type PermissionRequest struct {
	Generation        string    `json:"generation"` // UUID of this one request
	ToolName          string    `json:"tool_name"`
	PermissionType    string    `json:"permission_type"`
	Resource          string    `json:"resource"`
	Summary           string    `json:"summary,omitzero"`
	Risk              string    `json:"risk,omitzero"`
	ReasonCode        string    `json:"reason_code,omitzero"`
	Workspace         string    `json:"workspace,omitzero"`
	RequestedMode     string    `json:"requested_mode"`
	EffectiveMode     string    `json:"effective_mode"`
	PolicyRevision    uint64    `json:"policy_revision"`
	AllowedDecisions  []string  `json:"allowed_decisions"` // of the decisions of approval.decided
	SuggestedMatchers []Matcher `json:"suggested_matchers,omitzero"`
}

// ReplayFlags is the posture under which an approved call runs.
type ReplayFlags struct {
	Bypass       bool `json:"bypass"`
	AutoApprove  bool `json:"auto_approve"`
	PlanReadOnly bool `json:"plan_read_only"`
}

// RosterModel is one role of a run's models.
type RosterModel struct {
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	Type     string `json:"type,omitzero"` // protocol family of the provider
}

// Roster is the set of models of one run.
type Roster struct {
	Primary       RosterModel  `json:"primary"`
	Fast          *RosterModel `json:"fast,omitzero"`
	Background    *RosterModel `json:"background,omitzero"`
	Summarization *RosterModel `json:"summarization,omitzero"`
}

// Reasoning is the reasoning effort of a run and where it came from.
type Reasoning struct {
	Effort string `json:"effort,omitzero"`
	Source string `json:"source"` // session, request, provider_default or none
}

// Settings are what session.configure may change, as they stand.
type Settings struct {
	Title           string            `json:"title,omitzero"`
	Model           *Model            `json:"model,omitzero"`
	ReasoningEffort string            `json:"reasoning_effort,omitzero"`
	Workspace       string            `json:"workspace,omitzero"`
	Gold            jsontext.Value    `json:"gold,omitzero"` // object, kept as given
	Metadata        map[string]string `json:"metadata,omitzero"`
}
