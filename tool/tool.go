// Package tool is what the model may do in the world.
//
// A tool that goes wrong has a failed [Result] for the model to read; there is
// no Go error. The duties of an implementation:
//
//  1. Describe has no side effect and does not block.
//  2. Execute does what Call.Arguments says, exactly that text, at most once.
//  3. Execute returns soon after ctx has ended, and then says truthfully
//     whether the work was done.
package tool

import "context"

// Tools executes calls. It is safe for concurrent use.
type Tools interface {
	// Describe says what a call would touch, before anything is done.
	Describe(Call) Access
	// Execute runs the call. output takes pieces of its output for a watcher as
	// they come; they are not the result. output may not be nil.
	Execute(ctx context.Context, c Call, output func(string)) Result
}

// Call is one tool call.
type Call struct {
	Session string
	RunID   string
	// Provider is the instance whose model asked for the call, by id.
	Provider string
	ID       string // names the call in the session: unique within its answer
	ModelID  string // as the model gave it: may be empty or repeated
	Name     string
	// Arguments is the exact text the model gave, which need not be JSON.
	Arguments string
	// At is where the model asked for the call; nil if that is not known.
	At *Position
	// Replay says that a person has approved the call; it is not asked about again.
	Replay bool
}

// Position is a place in a session: call Index of the model's answer number
// Answer, both 0-based.
type Position struct {
	Answer uint64
	Index  int
}

// Result is the outcome of a call as the model reads it.
type Result struct {
	Success bool
	Content string
	Error   string // short code of a failure, "" with Success
	// Ask, if set, says that nothing was done yet: a person has to be asked first.
	Ask *Question
}

// Failed is the result of a call that did not work.
func Failed(code, content string) Result { return Result{Error: code, Content: content} }

// Access says what a call touches and whom to ask before.
type Access struct {
	Mutating       bool // changes the world; refused in plan mode
	PermissionType string
	Resource       string
	Summary        string
	Risk           string // low, medium or high
	// Ask, if set, is put to a person before the call may run.
	Ask *Question
}

// Question is what a person is asked about a call.
type Question struct {
	Text        string
	Options     []string
	AllowCustom bool
	// Approval says that the question is whether the call may run; otherwise
	// the answer itself is the call's result and nothing runs.
	Approval bool
}
