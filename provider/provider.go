// Package provider is one streaming call to a model.
//
// A [Provider] answers one [Request] with one [Answer] and streams what it
// produces on the way. It keeps no session state and calls no tool. The duties
// of an implementation:
//
//  1. Stream deltas in order through emit, from one goroutine at a time, and
//     never after Generate has returned. The text deltas of a successful call
//     joined are the answer's Content. [Chunks] cuts text between characters.
//  2. Hand tool arguments over as the exact text the model gave.
//  3. Return soon after ctx has ended, with context.Cause(ctx) or an error
//     that wraps it.
//  4. Report every other failure as an *[Error]; do not retry, the caller does.
package provider

import (
	"context"
	"fmt"
	"time"
)

// Provider makes model calls. It is safe for concurrent use.
type Provider interface {
	// Generate makes one model call. emit may not be nil.
	Generate(ctx context.Context, r Request, emit func(Delta)) (Answer, error)
}

// Request asks for the next answer of a session.
type Request struct {
	Session string
	RunID   string
	Model   string // of this provider; "" for its default
	Round   uint32 // of the run, 0-based
	// Iteration is 1-based within a counted loop and 0 outside of one.
	Iteration uint32
	// Summary asks for a closing text: the budget is spent, no tools are wanted.
	Summary bool
	// Answers is the 0-based ordinal of this answer among all of the session.
	// It survives restarts and does not change when a call is repeated.
	Answers uint64
	// Messages reads the transcript, for providers that send it; may be nil.
	Messages func(ctx context.Context) ([]Message, error)
}

// Message is one entry of the transcript as a model sees it.
type Message struct {
	Role       string // user, assistant or tool
	Content    string
	ToolCalls  []ToolCall // of an assistant message
	ToolCallID string     // of a tool message: the call it answers
	Failed     bool       // of a tool message: the call failed
}

// ToolCall is one call that a model asks for.
type ToolCall struct {
	ID   string // as the model gave it: may be empty or repeated
	Name string
	// Arguments is the exact text the model gave, which need not be JSON.
	Arguments string
}

// Kind says what a Delta is a piece of.
type Kind string

// The kinds of a Delta.
const (
	Text      Kind = "text"
	Reasoning Kind = "reasoning"
)

// Delta is one streamed piece of an answer; Text holds whole characters.
type Delta struct {
	Kind Kind
	Text string
}

// Usage counts model tokens.
type Usage struct{ Prompt, Completion, Total uint64 }

// Answer is a complete answer of the model.
type Answer struct {
	Content   string
	ToolCalls []ToolCall
	Usage     *Usage // nil if the provider does not say
	// FinishReason is stop, tool_calls or length, or another word of the provider.
	FinishReason string
}

// Codes of Error that this repository uses; a provider may add its own.
const (
	CodeRateLimited   = "rate_limited"
	CodeOverloaded    = "overloaded"
	CodeTimeout       = "timeout"
	CodeUnreachable   = "unreachable"
	CodeAuth          = "auth"
	CodeInvalid       = "invalid_request"
	CodeOverflow      = "context_overflow"
	CodeInvalidAnswer = "invalid_answer"
	CodePanic         = "panic"
	CodeFailed        = "provider_failed"
)

// Error is a failed model call.
type Error struct {
	Code    string // stable, for programs
	Message string // for people
	// Retryable says that the same call may succeed a little later.
	Retryable bool
	// RetryAfter is the least time to wait before that, if the model's server named one.
	RetryAfter time.Duration
	Err        error // cause, may be nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return e.Code + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }
