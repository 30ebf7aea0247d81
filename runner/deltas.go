package runner

import (
	"sync"

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

	mu    sync.Mutex // held while publishing: they go out in the order of their numbers
	round uint32
	index uint64
}

// begin says which round the deltas belong to from now on. The numbering of one
// that goes on goes on too: what was replayed before the first round counts there.
func (st *stream) begin(round uint32) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.round != round {
		st.round, st.index = round, 0
	}
}

func (st *stream) send(d Delta) {
	if st.to == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for text := range provider.Chunks(d.Text, maxDelta) {
		part := d
		part.Text, part.Round, part.Index = text, st.round, st.index
		payload, err := json.Marshal(part)
		if err != nil { // text that is no UTF-8 is not shown
			continue
		}
		st.index++
		st.to.Publish(st.session, st.run, payload)
	}
}
