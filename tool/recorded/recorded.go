// Package recorded answers tool calls with the results of a recorded session.
// It touches nothing.
package recorded

import (
	"context"
	"fmt"

	"culm/provider"
	"culm/provider/transcript"
	"culm/tool"
)

// Tools gives each call the result that the recording holds for it.
type Tools struct {
	recording *transcript.Recording
	options   Options
	byID      map[string][]*transcript.Call // id, name and arguments
	byText    map[string][]*transcript.Call // name and arguments
}

// Options say what the tools do besides answering.
type Options struct {
	// Ask returns the question to put to a person before a call may run, or nil.
	Ask func(tool.Call) *tool.Question
	// Chunk is the most bytes of one piece of output, 4096 if zero.
	Chunk int
}

var _ tool.Tools = (*Tools)(nil)

// New answers from r, which must not change any more.
func New(r *transcript.Recording, o Options) *Tools {
	if o.Chunk <= 0 {
		o.Chunk = 4096
	}
	t := &Tools{recording: r, options: o, byID: map[string][]*transcript.Call{}, byText: map[string][]*transcript.Call{}}
	for i := range r.Answers {
		for j := range r.Answers[i].Calls {
			c := &r.Answers[i].Calls[j]
			t.byID[idKey(c.ID, c.Name, c.Arguments)] = append(t.byID[idKey(c.ID, c.Name, c.Arguments)], c)
			t.byText[textKey(c.Name, c.Arguments)] = append(t.byText[textKey(c.Name, c.Arguments)], c)
		}
	}
	return t
}

func textKey(name, arguments string) string { return fmt.Sprintf("%q %s", name, arguments) }

func idKey(id, name, arguments string) string { return fmt.Sprintf("%q %q %s", id, name, arguments) }

// Describe goes by name and arguments of the call. Options.Ask, if set, says
// alone what is asked.
func (t *Tools) Describe(c tool.Call) tool.Access {
	a := tool.Describe(c.Name, c.Arguments)
	switch {
	case c.Replay:
		a.Ask = nil
	case t.options.Ask != nil:
		a.Ask = t.options.Ask(c)
	}
	return a
}

// Execute returns the recorded result of the call. A call that the recording
// does not hold, or whose result it does not hold, fails with an error that
// names it.
func (t *Tools) Execute(ctx context.Context, c tool.Call, output func(string)) tool.Result {
	if err := context.Cause(ctx); err != nil {
		return tool.Failed("not_run", fmt.Sprintf("%s was not run: %v", c.Name, err))
	}
	call := t.find(c)
	switch {
	case call == nil:
		return tool.Failed("not_recorded", fmt.Sprintf("the recording holds no call of %s with these arguments", c.Name))
	case call.Result == nil:
		return tool.Failed("result_missing", fmt.Sprintf("the recording holds no result of call %q of %s (line %d)", call.ID, call.Name, call.Line))
	}
	for text := range provider.Chunks(call.Result.Content, t.options.Chunk) {
		output(text)
	}
	r := tool.Result{Success: !call.Result.Failed, Content: call.Result.Content}
	switch {
	case call.Result.Rejected:
		r.Error = "rejected"
	case call.Result.Failed:
		r.Error = "tool_failed"
	}
	return r
}

// find goes by position, which tells equal ids and equal texts apart; then by
// what the call says, for the first recorded call with a result if there is one.
func (t *Tools) find(c tool.Call) *transcript.Call {
	if p := c.At; p != nil && p.Index >= 0 {
		a := &t.recording.Answers[p.Answer%uint64(len(t.recording.Answers))]
		if p.Index < len(a.Calls) && a.Calls[p.Index].Name == c.Name && a.Calls[p.Index].Arguments == c.Arguments {
			return &a.Calls[p.Index]
		}
	}
	for _, found := range [][]*transcript.Call{
		t.byID[idKey(c.ID, c.Name, c.Arguments)], t.byID[idKey(c.ModelID, c.Name, c.Arguments)], t.byText[textKey(c.Name, c.Arguments)],
	} {
		if len(found) > 0 {
			return answered(found)
		}
	}
	return nil
}

func answered(calls []*transcript.Call) *transcript.Call {
	for _, c := range calls {
		if c.Result != nil {
			return c
		}
	}
	return calls[0]
}
