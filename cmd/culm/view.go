package main

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
)

// view is an engine's state with what came beside it. What a newer engine says
// beyond aggregate.View is passed over.
type view struct {
	aggregate.View
	reply   aggregate.ReadReply // without its state
	rawLoop jsontext.Value      // the loop as the engine gave it, null for none

	interrupted bool // the last run ended with its lease; set where it is asked for
}

// requested: a run is asked for, and no runner has taken it.
func (v *view) requested() bool { return v.Run != nil && v.Run.Status == "requested" }

// viewOf reads the state of a reply.
func viewOf(r aggregate.ReadReply) (*view, error) {
	v := &view{reply: r}
	v.reply.State = nil
	if err := json.Unmarshal(r.State, &v.View); err != nil {
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
