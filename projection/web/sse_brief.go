package web

import (
	"time"

	"culm/events"
)

// brief is an event without its content: what the page needs to know what to
// read, and what of the streamed text the event puts on record.
type brief struct {
	Session string    `json:"session"`
	Seq     uint64    `json:"seq"`
	Type    string    `json:"type"`
	Time    time.Time `json:"time,omitzero"`
	Actor   string    `json:"actor,omitzero"`
	Run     string    `json:"run,omitzero"`
	Round   *uint32   `json:"round,omitzero"`        // of round.*
	Call    string    `json:"tool_call_id,omitzero"` // of an outcome
}

// briefOf tells what attributes say also where the type is not known.
func briefOf(r *events.Record) brief {
	e, _ := events.Decode(r.Payload)
	b := brief{Session: r.Session, Seq: r.Seq, Type: r.Type, Time: e.Time, Actor: e.Actor, Run: e.Run}
	switch d := e.Data.(type) {
	case events.RoundStarted:
		b.Round = &d.Round
	case events.RoundFinished:
		b.Round = &d.Round
	case events.RoundFailed:
		b.Round = &d.Round
	case events.ToolFinished:
		b.Call = d.ToolCallID
	case events.ReplayFinished:
		b.Call = d.ToolCallID
	}
	return b
}
