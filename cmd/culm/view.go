package main

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/events"
)

// view is what this program shows of an engine's state. It reads what it knows
// and passes over the rest, so that engines may say more.
type view struct {
	Session  sessionView         `json:"session"`
	Run      *runView            `json:"run"`
	Loop     *loopView           `json:"loop"`
	Pending  []pending           `json:"pending"`
	Replays  []jsontext.Value    `json:"replays"`
	Usage    events.Usage        `json:"usage"`
	Messages []messageView       `json:"messages"`
	reply    aggregate.ReadReply // without its state
	name     string              // of the session
	rawLoop  jsontext.Value      // the loop as the engine gave it
}

type sessionView struct {
	events.Settings
	Created  time.Time      `json:"created"`
	Closed   bool           `json:"closed"`
	Mode     string         `json:"mode"`
	Plan     jsontext.Value `json:"plan"` // null or false when it is off
	ReadOnly bool           `json:"read_only"`
}

type runView struct {
	RunID           string  `json:"run_id"`
	Status          string  `json:"status"`
	Runner          string  `json:"runner"`
	Round           *uint32 `json:"round"`
	CancelRequested bool    `json:"cancel_requested"`
}

type loopView struct {
	Generation          string `json:"generation"`
	Revision            uint64 `json:"revision"`
	Status              string `json:"status"`
	Reason              string `json:"reason"`
	Objective           string `json:"objective"`
	MaxIterations       uint32 `json:"max_iterations"`
	MaxTotalRounds      uint32 `json:"max_total_rounds"`
	IterationsStarted   uint32 `json:"iterations_started"`
	IterationsCompleted uint32 `json:"iterations_completed"`
	RoundsStarted       uint32 `json:"rounds_started"`
	StopRequested       bool   `json:"stop_requested"`
	Abandoned           bool   `json:"abandoned"`
}

// pending is one item that waits for a person.
type pending struct {
	ToolCallID string          `json:"tool_call_id"`
	Kind       string          `json:"kind"` // approval, question or unknown
	Generation string          `json:"generation"`
	Question   events.Question `json:"question"`
}

type messageView struct {
	Role      string            `json:"role"`
	Origin    string            `json:"origin"`
	Content   string            `json:"content"`
	ToolCalls []events.ToolCall `json:"tool_calls"`
	Success   *bool             `json:"success"`
	Seq       uint64            `json:"seq"`
}

// viewOf reads the state of a reply.
func viewOf(r aggregate.ReadReply) (*view, error) {
	v := &view{name: r.Session, reply: r}
	v.reply.State = nil
	if err := json.Unmarshal(r.State, v); err != nil {
		return nil, fmt.Errorf("state of %s: %w", r.Session, err)
	}
	var raw struct {
		Loop jsontext.Value `json:"loop"`
	}
	if err := json.Unmarshal(r.State, &raw); err != nil {
		return nil, fmt.Errorf("state of %s: %w", r.Session, err)
	}
	v.rawLoop = raw.Loop
	if len(v.rawLoop) == 0 {
		v.rawLoop = jsontext.Value("null")
	}
	return v, nil
}
