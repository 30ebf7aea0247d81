package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
)

// everlasting is a lease that does not run out.
type everlasting struct{}

func (everlasting) Duration() time.Duration                             { return time.Hour }
func (everlasting) Renew(context.Context, string, string) error         { return nil }
func (everlasting) Alive(context.Context, string, string) (bool, error) { return true, nil }
func (everlasting) Release(context.Context, string) error               { return nil }

// longLog is a session of at least n events: runs of rounds with tool calls.
func longLog(n uint64) (events.Log, string, error) {
	log := events.NewMem()
	h := aggregate.NewHandler(aggregate.Options{Log: log, Leases: everlasting{}, Barrier: bus.NopBarrier{}})
	do := func(name, body string) (aggregate.Reply, error) {
		out := make(chan aggregate.Reply, 1)
		h.Handle(context.Background(), aggregate.Request{Actor: "bench", Session: "long", Name: name, Body: []byte(body)}, func(r aggregate.Reply) { out <- r })
		r := <-out
		if !r.OK {
			return r, fmt.Errorf("%s: %s", name, r.Error.Message)
		}
		return r, nil
	}
	r, err := do("session.create", `{"model":{"provider":"p","model":"m"}}`)
	for err == nil && r.Sequence < n {
		r, err = oneRun(do)
	}
	return log, "long", err
}

// oneRun is a run of 50 rounds, each with a tool call.
func oneRun(do func(name, body string) (aggregate.Reply, error)) (aggregate.Reply, error) {
	var run struct {
		ID    string `json:"run_id"`
		Fence uint64 `json:"fence"`
	}
	r, err := do("run.request", `{"prompt":"go on"}`)
	if err == nil {
		err = json.Unmarshal(r.Result, &run)
	}
	if err == nil {
		r, err = do("run.claim", fmt.Sprintf(`{"run_id":%q,"runner":"r"}`, run.ID))
	}
	if err == nil {
		err = json.Unmarshal(r.Result, &run)
	}
	ref := fmt.Sprintf(`"run_id":%q,"fence":%d`, run.ID, run.Fence)
	for round := 0; round < 50 && err == nil; round++ {
		call := fmt.Sprintf(`[{"id":"c%d","name":"grep","arguments":"{\"pattern\":\"needle\",\"path\":\"src\"}"}]`, round)
		for _, c := range [][2]string{
			{"round.start", ""},
			{"round.finish", fmt.Sprintf(`,"round":%d,"message":{"content":%q,"tool_calls":%s},"usage":{"prompt":10,"completion":5,"total":15}`, round, content, call)},
			{"tool.start", fmt.Sprintf(`,"tool_call_id":"c%d"`, round)},
			{"tool.finish", fmt.Sprintf(`,"tool_call_id":"c%d","success":true,"content":%q`, round, content)},
		} {
			if r, err = do(c[0], "{"+ref+c[1]+"}"); err != nil {
				return r, err
			}
		}
	}
	if err != nil {
		return r, err
	}
	return do("run.finish", "{"+ref+`,"outcome":"ok"}`)
}

// liveLoop starts a loop in the session of client c and leaves it running.
func liveLoop(nc *nats.Conn, c int) error {
	ask := func(name, body string) (map[string]any, error) {
		resp, err := nc.Request(fmt.Sprintf("agent.cmd.bench.smem-%d.%s", c, name), []byte(body), 10*time.Second)
		if err != nil {
			return nil, err
		}
		var r struct {
			OK     bool           `json:"ok"`
			Result map[string]any `json:"result"`
		}
		if err := json.Unmarshal(resp.Data, &r); err != nil || !r.OK {
			return nil, fmt.Errorf("%s: %s", name, resp.Data)
		}
		return r.Result, nil
	}
	r, err := ask("run.request", `{"prompt":"go","loop":{"max_iterations":5,"max_total_rounds":10}}`)
	if err != nil {
		return err
	}
	id := r["run_id"]
	if r, err = ask("run.claim", fmt.Sprintf(`{"run_id":%q,"runner":"r"}`, id)); err != nil {
		return err
	}
	_, err = ask("round.start", fmt.Sprintf(`{"run_id":%q,"fence":%v}`, id, r["fence"]))
	return err
}
