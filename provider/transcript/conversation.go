package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// conversation folds the lines of a file into a Recording.
type conversation struct {
	Recording
	limits Limits
	// joins says that the last answer may go on: no prompt came after it.
	joins bool
	seen  map[string]bool // ids of all answers
	// open holds the calls without a result by id, those of the newest answer last.
	open map[string][]openCalls
}

// openCalls are calls of one answer that share an id, in order.
type openCalls struct {
	answer int
	calls  []int
}

func newConversation(limits Limits) *conversation {
	return &conversation{
		Recording: Recording{Passed: map[string]int{}},
		limits:    limits, seen: map[string]bool{}, open: map[string][]openCalls{},
	}
}

func (c *conversation) find(line int, kind FindingKind, text string) {
	if len(c.Findings) >= c.limits.Findings {
		c.MoreFindings++
		return
	}
	c.Findings = append(c.Findings, Finding{line, kind, text})
}

func (c *conversation) damaged(err error) { c.find(c.Lines, Damaged, err.Error()) }

// line takes the next line of the file.
func (c *conversation) line(b []byte) {
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	var l recordedLine
	if err := decode(b, &l); err != nil {
		c.damaged(err)
		return
	}
	switch {
	case l.Sidechain:
		c.Passed["sidechain"]++
	case l.Type == "assistant" || l.Type == "user":
		c.message(l)
	default:
		c.Passed[cmp.Or(string(l.Type), "untyped")]++
	}
}

func (c *conversation) message(l recordedLine) {
	var m recordedMessage
	if err := decode(l.Message, &m); err != nil {
		c.damaged(fmt.Errorf("message: %w", err))
		return
	}
	list, err := blocks(m.Content)
	if err != nil {
		c.damaged(err)
		return
	}
	switch {
	case l.Type == "user":
		c.user(l, list)
	case m.Model == "<synthetic>": // the agent speaking in the model's name
		c.Passed["synthetic"]++
	default:
		c.assistant(m, list)
	}
}

// assistant adds a part to the answer it belongs to, or begins one.
func (c *conversation) assistant(m recordedMessage, list []jsontext.Value) {
	id := string(m.ID)
	n := len(c.Answers)
	if !c.joins || id == "" || c.Answers[n-1].MessageID != id {
		if id != "" && c.seen[id] {
			c.find(c.Lines, SplitAnswer, fmt.Sprintf("answer %q goes on", id))
		}
		c.seen[id] = true
		c.Answers = append(c.Answers, Answer{Line: c.Lines, MessageID: id, Model: string(m.Model)})
		c.joins, n = true, n+1
	}
	a := &c.Answers[n-1]
	for _, raw := range list {
		c.block(a, raw)
	}
	if reason := finishReason(string(m.StopReason)); reason != "" {
		a.FinishReason = reason
	}
	c.usage(a, m.Usage)
}

func (c *conversation) block(a *Answer, raw jsontext.Value) {
	var b recordedBlock
	if err := decode(raw, &b); err != nil {
		c.damaged(fmt.Errorf("block: %w", err))
		return
	}
	switch b.Type {
	case "text":
		a.Parts = append(a.Parts, Part{Text: string(b.Text)})
	case "thinking":
		a.Parts = append(a.Parts, Part{Reasoning: true, Text: string(b.Thinking)})
	case "tool_use":
		c.call(a, b)
	default:
		c.Passed["block "+cmp.Or(string(b.Type), "untyped")]++
	}
}

func (c *conversation) call(a *Answer, b recordedBlock) {
	if b.Name == "" {
		c.find(c.Lines, Damaged, "a call without a name")
		return
	}
	id, answer, index := string(b.ID), len(c.Answers)-1, len(a.Calls)
	a.Calls = append(a.Calls, Call{Line: c.Lines, ID: id, Name: string(b.Name), Arguments: string(b.Input)})
	groups := c.open[id]
	if g := len(groups) - 1; g >= 0 && groups[g].answer == answer {
		groups[g].calls = append(groups[g].calls, index)
		c.find(c.Lines, RepeatedID, fmt.Sprintf("call id %q", id))
		return
	}
	c.open[id] = append(groups, openCalls{answer, []int{index}})
}

// usage keeps the last count: the lines of one answer repeat it as it grows.
func (c *conversation) usage(a *Answer, raw jsontext.Value) {
	if raw.Kind() != '{' {
		return
	}
	var u recordedUsage
	if err := decode(raw, &u); err != nil {
		c.damaged(fmt.Errorf("usage: %w", err))
		return
	}
	a.Usage = &Usage{
		Prompt:     uint64(u.Input) + uint64(u.CacheCreation) + uint64(u.CacheRead),
		Completion: uint64(u.Output),
	}
}

// user takes results and prompts; a line may hold several.
func (c *conversation) user(l recordedLine, list []jsontext.Value) {
	for _, raw := range list {
		var b recordedBlock
		if err := decode(raw, &b); err != nil {
			c.damaged(fmt.Errorf("block: %w", err))
			continue
		}
		switch {
		case b.Type == "tool_result":
			c.result(b)
		case b.Type != "text":
			c.Passed["block "+cmp.Or(string(b.Type), "untyped")]++
		case l.Meta:
			c.Passed["meta"]++
		default:
			c.prompt(string(b.Text))
		}
	}
}

func (c *conversation) prompt(text string) {
	c.joins = false
	switch {
	case strings.HasPrefix(text, "[Request interrupted by user"):
		c.Passed["interruption"]++
	case strings.HasPrefix(text, "<local-command-"):
		c.Passed["local command"]++
	case strings.TrimSpace(text) == "":
		c.Passed["empty prompt"]++
	default:
		c.Prompts = append(c.Prompts, Prompt{c.Lines, text})
	}
}

// result goes to the first open call with its id of the newest answer that has one.
func (c *conversation) result(b recordedBlock) {
	id := string(b.ToolUseID)
	groups := c.open[id]
	if len(groups) == 0 {
		c.find(c.Lines, StrayResult, fmt.Sprintf("call id %q", id))
		return
	}
	text, err := resultText(b.Content)
	if err != nil {
		c.damaged(fmt.Errorf("result of %q: %w", id, err))
		return
	}
	g := &groups[len(groups)-1]
	rejected := b.IsError && strings.Contains(text, rejection)
	c.Answers[g.answer].Calls[g.calls[0]].Result = &Result{c.Lines, text, b.IsError, rejected}
	if g.calls = g.calls[1:]; len(g.calls) == 0 {
		c.open[id] = groups[:len(groups)-1]
	}
}

// rejection is how the agent tells its model that the person said no.
const rejection = "The tool use was rejected"

func (c *conversation) close() (*Recording, error) {
	if len(c.Answers) == 0 {
		if len(c.Findings) > 0 {
			return nil, fmt.Errorf("%w: %s", ErrNothing, c.Findings[0])
		}
		return nil, ErrNothing
	}
	for i := range c.Answers {
		a := &c.Answers[i]
		if a.FinishReason == "" {
			a.FinishReason = "stop"
			if len(a.Calls) > 0 {
				a.FinishReason = "tool_calls"
			}
		}
		for _, call := range a.Calls {
			if call.Result == nil {
				c.find(call.Line, MissingResult, fmt.Sprintf("call %q of %s", call.ID, call.Name))
			}
		}
	}
	if last := c.Answers[len(c.Answers)-1]; len(last.Calls) > 0 {
		c.find(last.Line, BrokenOff, "its last answer has calls, and is given an end")
		c.Answers = append(c.Answers, Answer{Line: last.Line, Model: last.Model, Parts: []Part{{Text: ending}}, FinishReason: "stop"})
	}
	return &c.Recording, nil
}

// ending is the last answer of a recording that breaks off: without it a run
// that plays the recording would begin again and never end.
const ending = "The recording ends here."

func finishReason(recorded string) string {
	switch recorded {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens":
		return "length"
	default:
		return recorded
	}
}
