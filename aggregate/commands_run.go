package aggregate

import (
	"culm/events"
)

// LoopSpec asks for a counted loop.
type LoopSpec struct {
	MaxIterations  uint32  `json:"max_iterations"`
	MaxTotalRounds uint32  `json:"max_total_rounds"`
	Objective      *string `json:"objective"`
	OnPark         string  `json:"on_park"`
}

// BudgetSpec bounds a run; an absent field is no bound, zero is refused.
type BudgetSpec struct {
	MaxRounds      *uint32 `json:"max_rounds"`
	MaxTotalTokens *uint64 `json:"max_total_tokens"`
	MaxToolCalls   *uint32 `json:"max_tool_calls"`
	MaxSubagents   *uint32 `json:"max_subagents"`
}

// RunRequest is run.request.
type RunRequest struct {
	Prompt *string     `json:"prompt"`
	Loop   *LoopSpec   `json:"loop"`
	Budget *BudgetSpec `json:"budget"`
}

func (c RunRequest) check() *Rejection {
	if b := c.Budget; b != nil {
		for _, zero := range []bool{
			b.MaxRounds != nil && *b.MaxRounds == 0, b.MaxTotalTokens != nil && *b.MaxTotalTokens == 0,
			b.MaxToolCalls != nil && *b.MaxToolCalls == 0, b.MaxSubagents != nil && *b.MaxSubagents == 0,
		} {
			if zero {
				return reject(CodeInvalidBounds, "a budget of 0 lets nothing run; leave the field out for no bound")
			}
		}
	}
	if c.Loop == nil && c.Prompt != nil {
		return need("prompt", *c.Prompt)
	}
	if c.Loop != nil {
		return oneOf("loop.on_park", c.Loop.OnPark, onParkEnd, onParkPause)
	}
	return nil
}

// budget is the request's budget as events carry it.
func (c RunRequest) budget() *events.Budget {
	b := c.Budget
	if b == nil {
		return nil
	}
	return &events.Budget{
		MaxRounds: deref(b.MaxRounds), MaxTotalTokens: deref(b.MaxTotalTokens),
		MaxToolCalls: deref(b.MaxToolCalls), MaxSubagents: deref(b.MaxSubagents),
	}
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// RunResume is run.resume.
type RunResume struct{}

func (RunResume) check() *Rejection { return nil }

// RunCancel is run.cancel.
type RunCancel struct {
	RunID string `json:"run_id"`
}

func (RunCancel) check() *Rejection { return nil }

// LoopStop is loop.stop.
type LoopStop struct {
	Generation string `json:"generation"`
}

func (LoopStop) check() *Rejection { return nil }

// LoopContinue is loop.continue.
type LoopContinue struct {
	Generation         string `json:"generation"`
	AcknowledgeUnknown bool   `json:"acknowledge_unknown"`
}

func (c LoopContinue) check() *Rejection {
	return checkAcknowledged(c.Generation, c.AcknowledgeUnknown)
}

// LoopAbandon is loop.abandon.
type LoopAbandon struct {
	Generation         string `json:"generation"`
	AcknowledgeUnknown bool   `json:"acknowledge_unknown"`
}

func (c LoopAbandon) check() *Rejection { return checkAcknowledged(c.Generation, c.AcknowledgeUnknown) }

func checkAcknowledged(generation string, acknowledged bool) *Rejection {
	if !acknowledged {
		return reject(CodeInvalidCommand, "acknowledge_unknown must be true: what the last round did is not known")
	}
	return need("generation", generation)
}

// RunRef is what every command of a runner but run.claim carries.
type RunRef struct {
	RunID string `json:"run_id"`
	Fence uint64 `json:"fence"`
}

func (c RunRef) check() *Rejection {
	if c.Fence == 0 {
		return missing("fence")
	}
	return need("run_id", c.RunID)
}

// RunClaim is run.claim.
type RunClaim struct {
	RunID     string   `json:"run_id"`
	Runner    string   `json:"runner"`
	Providers []string `json:"providers"` // live provider instances; nil: not said
}

func (c RunClaim) check() *Rejection {
	if !events.ValidToken(c.Runner) {
		return reject(CodeInvalidCommand, "runner is no token")
	}
	return need("run_id", c.RunID)
}

// RunRenew is run.renew.
type RunRenew struct{ RunRef }

// RunRefuse is run.refuse.
type RunRefuse struct {
	RunRef
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (c RunRefuse) check() *Rejection {
	if !events.ValidToken(c.Code) {
		return reject(CodeInvalidCommand, "code is no token")
	}
	return c.RunRef.check()
}

// RunFinish is run.finish.
type RunFinish struct {
	RunRef
	Outcome          string          `json:"outcome"`
	CompletionReason string          `json:"completion_reason"`
	Error            *events.Failure `json:"error"`
}

// Outcomes a runner reports.
const (
	outcomeOK        = "ok"
	outcomeError     = "error"
	outcomeCancelled = "cancelled"
)

func (c RunFinish) check() *Rejection {
	return first(c.RunRef.check(), need("outcome", c.Outcome), oneOf("outcome", c.Outcome, outcomeOK, outcomeError, outcomeCancelled), checkFailure(c.Error))
}

func checkFailure(f *events.Failure) *Rejection {
	if f == nil {
		return nil
	}
	return need("error.code", f.Code)
}

// RoundStart is round.start.
type RoundStart struct{ RunRef }

// AnswerSpec is a model's answer.
type AnswerSpec struct {
	Content   string     `json:"content"`
	ToolCalls []CallSpec `json:"tool_calls"`
}

// CallSpec is one tool call as the model gave it.
type CallSpec struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// RoundFinish is round.finish.
type RoundFinish struct {
	RunRef
	Round        *uint32       `json:"round"`
	Message      *AnswerSpec   `json:"message"`
	Usage        *events.Usage `json:"usage"`
	FinishReason string        `json:"finish_reason"`
	Attempts     uint32        `json:"attempts"`
	AdmitNext    bool          `json:"admit_next"`
}

func (c RoundFinish) check() *Rejection {
	if r := c.RunRef.check(); r != nil {
		return r
	}
	switch {
	case c.Round == nil:
		return missing("round")
	case c.Message == nil:
		return missing("message")
	case len(c.Message.ToolCalls) > maxCallsPerRound:
		return reject(CodeInvalidCommand, "%d tool calls in one answer, allowed are %d", len(c.Message.ToolCalls), maxCallsPerRound)
	case c.Usage != nil && max(c.Usage.Prompt, c.Usage.Completion, c.Usage.Total) > maxRoundTokens:
		return reject(CodeInvalidCommand, "usage says more than %d tokens for one round", maxRoundTokens)
	}
	for i, t := range c.Message.ToolCalls {
		if t.Name == "" || len(t.Name) > maxNameBytes {
			return reject(CodeInvalidCommand, "tool_calls[%d].name is empty or longer than %d bytes", i, maxNameBytes)
		}
		if len(t.ID) > maxIDBytes {
			return reject(CodeInvalidCommand, "tool_calls[%d].id has %d bytes, allowed are %d", i, len(t.ID), maxIDBytes)
		}
	}
	return nil
}

// RoundFail is round.fail.
type RoundFail struct {
	RunRef
	Round *uint32         `json:"round"`
	Error *events.Failure `json:"error"`
}

func (c RoundFail) check() *Rejection {
	switch {
	case c.Round == nil:
		return missing("round")
	case c.Error == nil:
		return missing("error")
	}
	return first(c.RunRef.check(), checkFailure(c.Error))
}

// Kinds of budget.exhaust and of a reached bound.
const (
	budgetTokens    = "tokens"
	budgetToolCalls = "tool_calls"
	budgetSubagents = "subagents"
	budgetRounds    = "rounds"
)

// BudgetExhaust is budget.exhaust.
type BudgetExhaust struct {
	RunRef
	Kind string `json:"kind"`
}

func (c BudgetExhaust) check() *Rejection {
	return first(c.RunRef.check(), need("kind", c.Kind), oneOf("kind", c.Kind, budgetTokens, budgetToolCalls, budgetSubagents, budgetRounds))
}
