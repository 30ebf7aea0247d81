package events

// RunRequested asks for a run; a runner claims it.
type RunRequested struct {
	RunID       string       `json:"run_id"`
	Cause       string       `json:"cause"` // user, decision, answer, retry or continue
	Message     *UserMessage `json:"message,omitzero"`
	LoopRequest *LoopRequest `json:"loop_request,omitzero"`
	Budget      *Budget      `json:"budget,omitzero"`
	// Voided lists calls of an earlier round that were never started and that
	// the new message supersedes.
	Voided []VoidedCall `json:"voided,omitzero"`
}

// RunStarted is a claim; its sequence is the run's fence.
type RunStarted struct {
	RunID        string     `json:"run_id"`
	Runner       string     `json:"runner"`
	Cause        string     `json:"cause"` // of the request
	Roster       Roster     `json:"roster"`
	Gold         *Gold      `json:"gold,omitzero"`
	Reasoning    Reasoning  `json:"reasoning"`
	ConfigDigest string     `json:"config_digest"`    // hex SHA-256 of the configuration snapshot
	Replays      uint32     `json:"replays,omitzero"` // decided calls to replay first
	Loop         *LoopStart `json:"loop,omitzero"`
}

// Gold is the resolved configuration of the goal judge.
type Gold struct {
	Enabled bool   `json:"enabled"`
	Source  string `json:"source"` // session or config
}

// RunRefused ends a run that must not start or go on. Decisions already given
// stay: a later run may still replay what was approved.
type RunRefused struct {
	RunID   string `json:"run_id"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Details by code, as the refused command was told them.
	Details map[string]string `json:"details,omitzero"`
	// Voided lists the approved calls of a loop that was asked to stop: they do
	// not run.
	Voided  []VoidedCall  `json:"voided,omitzero"`
	Unknown []UnknownCall `json:"unknown,omitzero"`
	Loop    *Loop         `json:"loop,omitzero"`
}

// RunCancelRequested lets nothing of the run start any more.
type RunCancelRequested struct {
	RunID string `json:"run_id"`
}

// RunBudgetExhausted: a bound of a plain run is reached; one summary round may follow.
type RunBudgetExhausted struct {
	RunID string `json:"run_id"`
	Kind  string `json:"kind"` // tokens, tool_calls, subagents or rounds
}

// RunInterrupted: the run's lease ran out.
type RunInterrupted struct {
	RunID string `json:"run_id"`
	Code  string `json:"code"` // lease_expired
	// Voided lists the approved calls of a loop that was asked to stop: they
	// are not replayed, whatever becomes of the loop.
	Voided  []VoidedCall  `json:"voided,omitzero"`
	Unknown []UnknownCall `json:"unknown,omitzero"`
}

// RunFinished is the one end of a run that was started.
type RunFinished struct {
	RunID            string        `json:"run_id"`
	Outcome          string        `json:"outcome"` // completed, failed or cancelled
	CompletionReason string        `json:"completion_reason,omitzero"`
	Error            *Failure      `json:"error,omitzero"`
	Usage            Usage         `json:"usage"`
	Voided           []VoidedCall  `json:"voided,omitzero"`
	Unknown          []UnknownCall `json:"unknown,omitzero"`
	Loop             *Loop         `json:"loop,omitzero"`
}

// RoundStarted admits one pass of model and tools.
type RoundStarted struct {
	RunID string `json:"run_id"`
	Admission
	Loop *Loop `json:"loop,omitzero"`
}

// RoundFinished carries the model's answer and what follows from it.
type RoundFinished struct {
	RunID        string           `json:"run_id"`
	Round        uint32           `json:"round"`
	Iteration    uint32           `json:"iteration,omitzero"`
	Message      AssistantMessage `json:"message"`
	Usage        *Usage           `json:"usage,omitzero"`
	FinishReason string           `json:"finish_reason,omitzero"`
	Attempts     uint32           `json:"attempts,omitzero"`
	Decision     string           `json:"decision"` // tools, continue, stop or finalize
	Next         *NextRound       `json:"next,omitzero"`
	Loop         *Loop            `json:"loop,omitzero"`
}

// RoundFailed: the model call failed; the round stays counted.
type RoundFailed struct {
	RunID string  `json:"run_id"`
	Round uint32  `json:"round"`
	Error Failure `json:"error"`
}

// LoopStopRequested asks the loop to end at its next boundary. Before the loop
// has started it ends the requested run named by RunID instead.
type LoopStopRequested struct {
	RunID string `json:"run_id,omitzero"`
	Loop  *Loop  `json:"loop,omitzero"`
	// Voided lists the approved calls that the requested run would have
	// replayed: they do not run.
	Voided []VoidedCall `json:"voided,omitzero"`
}

// LoopStopped: the stop won at a boundary.
type LoopStopped struct {
	Loop Loop `json:"loop"`
}

// LoopBudgetExhausted: the round cap or another budget ended the loop.
type LoopBudgetExhausted struct {
	Kind string `json:"kind,omitzero"` // rounds, tokens, tool_calls or subagents
	Loop Loop   `json:"loop"`
}

// LoopRecoveryRefused marks a loop whose owner died; it is never continued by itself.
type LoopRecoveryRefused struct {
	Loop Loop `json:"loop"`
}

// LoopAbandoned lifts the block of a loop that ended without a known outcome.
type LoopAbandoned struct {
	Loop Loop `json:"loop"`
}

func (RunRequested) EventType() string        { return "run.requested" }
func (RunStarted) EventType() string          { return "run.started" }
func (RunRefused) EventType() string          { return "run.refused" }
func (RunCancelRequested) EventType() string  { return "run.cancel_requested" }
func (RunBudgetExhausted) EventType() string  { return "run.budget_exhausted" }
func (RunInterrupted) EventType() string      { return "run.interrupted" }
func (RunFinished) EventType() string         { return "run.finished" }
func (RoundStarted) EventType() string        { return "round.started" }
func (RoundFinished) EventType() string       { return "round.finished" }
func (RoundFailed) EventType() string         { return "round.failed" }
func (LoopStopRequested) EventType() string   { return "loop.stop_requested" }
func (LoopStopped) EventType() string         { return "loop.stopped" }
func (LoopBudgetExhausted) EventType() string { return "loop.budget_exhausted" }
func (LoopRecoveryRefused) EventType() string { return "loop.recovery_refused" }
func (LoopAbandoned) EventType() string       { return "loop.abandoned" }
