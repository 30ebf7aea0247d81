package web

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the deltas that wait for one client: 8 MiB. What comes on top is
// left out; their numbers tell the client.
const (
	maxWaiting = 128
	maxDelta   = 64 << 10
)

// streamed is one delta on its way to a client.
type streamed struct {
	Session string         `json:"session"`
	Run     string         `json:"run"`
	Delta   jsontext.Value `json:"delta"`
}

// listen lets the deltas of the sessions that the client named come, until the
// returned function is called.
func (t *stream) listen(from Deltas) (stop func(), err error) {
	if from == nil || len(t.deltas) == 0 {
		return func() {}, nil
	}
	to := make(chan streamed, maxWaiting)
	t.streamed = to
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, session := range t.deltas {
		f, err := from.Follow(session, func(run string, delta []byte) {
			if len(delta) > maxDelta {
				return
			}
			select {
			case to <- streamed{session, run, delta}:
			default:
			}
		})
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, f)
	}
	return stop, nil
}

// delta buffers one delta, and those that wait behind it. They have no id: who
// comes back goes on after the last event. What is no JSON is nobody's delta.
func (t *stream) delta(d streamed) {
	for {
		if data, err := json.Marshal(d); err == nil {
			t.message("", "delta", data)
		}
		if t.buf.Len() > 64<<10 {
			return
		}
		select {
		case d = <-t.streamed:
		default:
			return
		}
	}
}
