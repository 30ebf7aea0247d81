// Package transcript reads the session recordings of coding agents: one JSON
// object a line, with lines of type user and assistant that carry the
// conversation and others that are bookkeeping.
//
// Reading is lenient: what cannot be used is named in the findings with its
// line and passed over. What is used is used exactly: tool arguments are the
// bytes of the file, and a text that could not be kept as it is counts as damage.
package transcript

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNothing: no line of the file holds an answer of a model.
	ErrNothing = errors.New("no answer in the recording")
	// ErrTooLarge: the file is larger than Limits.Bytes.
	ErrTooLarge = errors.New("recording too large")
)

// Recording is one recorded session. It must not be changed once it is in use.
type Recording struct {
	Answers []Answer // of the model, in order; never empty
	Prompts []Prompt // what the person wrote, in order
	// Findings name what is wrong with the file, in the order it was noticed.
	Findings []Finding
	// MoreFindings counts those beyond Limits.Findings.
	MoreFindings int
	Lines        int
	// Passed counts lines and blocks that carry no part of this conversation,
	// by their type.
	Passed map[string]int
}

// Answer is one answer of the model, joined from the lines that share its id.
type Answer struct {
	Line         int    // where it begins, 1-based
	MessageID    string // may be empty
	Model        string
	Parts        []Part // text and reasoning in order, as recorded
	Calls        []Call
	Usage        *Usage
	FinishReason string // stop, tool_calls, length, or the recorded word
}

// Text joins the text parts: what the model said aloud.
func (a Answer) Text() string {
	var text strings.Builder
	for _, p := range a.Parts {
		if !p.Reasoning {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// Part is a piece of an answer.
type Part struct {
	Reasoning bool
	Text      string
}

// Usage counts tokens; Prompt includes what the model's cache held.
type Usage struct{ Prompt, Completion uint64 }

// Call is one tool call of an answer.
type Call struct {
	Line      int
	ID        string // as recorded: may be empty or repeated
	Name      string
	Arguments string  // the recorded JSON text, byte for byte
	Result    *Result // nil if the recording holds none
}

// Result is the recorded outcome of a call.
type Result struct {
	Line     int
	Content  string
	Failed   bool // marked as an error, or rejected
	Rejected bool // the person did not let the call happen
}

// Prompt is one message of the person.
type Prompt struct {
	Line int
	Text string
}

// Finding is one thing that is wrong with a recording.
type Finding struct {
	Line int // 1-based
	Kind FindingKind
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("line %d: %s: %s", f.Line, f.Kind, f.Text) }

// FindingKind says what a finding means for the recording.
type FindingKind string

// The kinds of a finding.
const (
	// Damaged: the line or block could not be read and is left out.
	Damaged FindingKind = "damaged"
	// TooLong: the line exceeds Limits.Line and is left out.
	TooLong FindingKind = "too_long"
	// MissingResult: the call has no recorded result.
	MissingResult FindingKind = "missing_result"
	// StrayResult: the result answers no open call and is left out.
	StrayResult FindingKind = "stray_result"
	// BrokenOff: the recording ends with calls; an answer without any is added.
	BrokenOff FindingKind = "broken_off"
	// RepeatedID: an id that an earlier call of the same answer has already.
	RepeatedID FindingKind = "repeated_id"
	// SplitAnswer: an answer's id comes again after other answers; the later
	// part counts as an answer of its own.
	SplitAnswer FindingKind = "split_answer"
)

// Limits bound what Read takes; a zero field means its default.
type Limits struct {
	Bytes    int64 // of the file, 64 MiB
	Line     int   // bytes of one line, 8 MiB
	Findings int   // kept, 1000
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 64 << 20
	}
	if l.Line == 0 {
		l.Line = 8 << 20
	}
	if l.Findings == 0 {
		l.Findings = 1000
	}
	return l
}
