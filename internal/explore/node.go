package explore

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
)

// requests is 1 for an event that requests a run.
func requests(d events.Data) uint8 {
	id := ""
	switch d := d.(type) {
	case events.RunRequested:
		id = d.RunID
	case events.ApprovalDecided:
		id = d.RunID
	case events.QuestionExpired:
		id = d.RunID
	case events.ToolResolved:
		id = d.RunID
	}
	if id == "" {
		return 0
	}
	return 1
}

// generations is 1 for an event that gives generations.
func generations(d events.Data) uint8 {
	var unknown []events.UnknownCall
	switch d := d.(type) {
	case events.ToolParked, events.ReplayReparked:
		return 1
	case events.RunInterrupted:
		unknown = d.Unknown
	case events.RunRefused:
		unknown = d.Unknown
	case events.RunFinished:
		unknown = d.Unknown
	case events.SessionClosed:
		unknown = d.Unknown
	}
	return uint8(min(len(unknown), 1)) //nolint:gosec // 0 or 1
}

// noPolicy leaves out the policy, which only the settings session holds.
var noPolicy = json.WithMarshalers(json.MarshalFunc(func(policy.Policy) ([]byte, error) { return []byte("null"), nil }))

// add finds or makes the node of a state.
func (e *engine) add(s *aggregate.State, runs, gens uint8) uint32 {
	key, err := json.Marshal(s, json.Deterministic(true), noPolicy)
	if err != nil {
		panic(err)
	}
	k := fmt.Sprintf("%d %d %s", runs, gens, key)
	if i, ok := e.byKey[k]; ok {
		return i
	}
	n := &node{s: s, runs: runs, gens: gens, next: aggregate.Next(s, aggregate.Config{}), rests: rests(s)}
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Status.Waiting() {
			n.waiting = append(n.waiting, item{callOf(c.ID), e.gens.number(c.Generation), c.Status == aggregate.CallUnknown})
		}
	}
	if s.Run != nil {
		if got := e.runs.number(s.Run.ID); got != runs {
			panic(errors.New("a run is not the newest one"))
		}
	}
	i := uint32(len(e.nodes)) //nolint:gosec // bounded by memory
	e.nodes, e.byKey[k] = append(e.nodes, n), i
	return i
}

// rests says that nothing of the session is stuck: it is closed, or no run is
// there, every call has its outcome and the next request is not refused.
func rests(s *aggregate.State) bool {
	if s.Session.Closed {
		return true
	}
	if !s.Exists() || s.Run != nil || s.Answers == 0 {
		return s.Exists() && s.Run == nil
	}
	for i := range s.Calls {
		if s.Calls[i].Status != aggregate.CallSettled {
			return false
		}
	}
	l := s.Loop
	return l == nil || l.Abandoned || !l.Status.Live() && l.Status != events.StatusRecoveryUnsupported && l.Status != events.StatusPaused
}

// waits says that the item waits for a decision.
func (n *node) waits(it item) bool {
	for _, w := range n.waiting {
		if w.call == it.call && w.gen == it.gen {
			return true
		}
	}
	return false
}

// live is the ordinal of the live run, 0 for none.
func (n *node) live(e *engine) uint8 {
	if run := n.s.Run; run != nil && run.Status == "live" {
		return e.runs.number(run.ID)
	}
	return 0
}

// read takes from a result what its receiver acts on.
func read(result any, e *engine) reply {
	var v struct {
		Decision string `json:"decision"`
		Replay   *struct {
			ID         string `json:"tool_call_id"`
			Arguments  string `json:"arguments"`
			Digest     string `json:"arguments_digest"`
			Generation string `json:"generation"`
		} `json:"replay"`
	}
	raw, err := json.Marshal(result)
	if err == nil && result != nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		panic(err)
	}
	out := reply{OK: true, Decision: v.Decision}
	if r := v.Replay; r != nil {
		out.Replay, out.Call, out.Gen = true, callOf(r.ID), e.gens.number(r.Generation)
		out.Bytes = r.Arguments == calls[out.Call].args && events.Hash([]byte(r.Arguments)) == r.Digest
	}
	return out
}
