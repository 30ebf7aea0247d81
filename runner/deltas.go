package runner

import (
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"culm/provider"
)

// Deltas takes what is streamed while a call is under way: model text, tool
// output, progress. It is not stored and may be dropped.
type Deltas interface {
	// Publish hands over one JSON object. It does not block, is safe for
	// concurrent use, and may keep payload.
	Publish(session, run string, payload []byte)
}

// Kinds of a Delta besides those of provider.Delta.
const (
	kindToolOutput = "tool_output"
	kindProgress   = "progress"
)

// Delta is one streamed piece. Those of a round are numbered from 0 in the
// order in which they were made.
type Delta struct {
	Round uint32 `json:"round"`
	Index uint64 `json:"index"`
	Kind  string `json:"kind"` // text, reasoning, tool_output or progress
	Text  string `json:"text"`
	// ToolCallID names the call that tool_output belongs to.
	ToolCallID string `json:"tool_call_id,omitzero"`
	// Attempt is the model attempt, from 2 on: what earlier attempts of the
	// round have streamed is void.
	Attempt int `json:"attempt,omitzero"`
}

// maxDelta bounds the text of one delta, in bytes.
const maxDelta = 16 << 10

// stream publishes the deltas of one run.
type stream struct {
	to           Deltas
	session, run string
	round        atomic.Uint32
	index        atomic.Uint64
}

// begin starts the numbering of a round.
func (st *stream) begin(round uint32) {
	st.round.Store(round)
	st.index.Store(0)
}

func (st *stream) send(d Delta) {
	if st.to == nil {
		return
	}
	for text := range provider.Chunks(d.Text, maxDelta) {
		part := d
		part.Text, part.Round, part.Index = text, st.round.Load(), st.index.Add(1)-1
		if payload, err := json.Marshal(part); err == nil { // text that is no UTF-8 is not shown
			st.to.Publish(st.session, st.run, payload)
		}
	}
}
