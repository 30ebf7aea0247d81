package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/provider"
	"culm/tool"
)

// asking is a model that wants one file written and then is content.
type asking struct{}

// Generate implements provider.Provider.
func (asking) Generate(_ context.Context, r provider.Request, _ func(provider.Delta)) (provider.Answer, error) {
	if r.Answers%2 == 1 {
		return provider.Answer{Content: "done", FinishReason: "stop"}, nil
	}
	return provider.Answer{FinishReason: "tool_use", ToolCalls: []provider.ToolCall{{ID: "w", Name: "Write", Arguments: `{"path":"/bench/file.md","text":"x"}`}}}, nil
}

// clocked tells when each session's call is started.
type clocked struct{ started map[string]chan time.Time }

// Describe implements tool.Tools.
func (clocked) Describe(c tool.Call) tool.Access { return tool.Describe(c.Name, c.Arguments) }

// Execute implements tool.Tools. The replay's start is stored by now.
func (k clocked) Execute(_ context.Context, c tool.Call, _ func(string)) tool.Result {
	k.started[c.Session] <- time.Now()
	return tool.Result{Success: true, Content: "written"}
}

// approvalSessions are the numbers of sessions that are decided at once, and the times from the acknowledgement of the decision to the start of
// the tool that are aimed at.
var approvalSessions = []struct {
	n      int
	atMost time.Duration
}{{1, 3 * time.Millisecond}, {64, 25 * time.Millisecond}}

// approvals measures the time from the acknowledged decision of a person to the
// start of the approved tool: run.claim and replay.start, both durable. Raw
// publishes are measured beside them.
func approvals(ctx context.Context, o options) error {
	payload, err := storedPayload(ctx, o)
	if err != nil {
		return err
	}
	raw, err := rawServer(o, bus.SyncAlways)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	tools := clocked{map[string]chan time.Time{}}
	for _, s := range approvalSessions {
		for c := range s.n {
			tools.started[approvalSession(s.n, c)] = make(chan time.Time, 1)
		}
	}
	e, err := startEngineWith(ctx, o, bus.SyncGroup, map[string]provider.Provider{"asking": asking{}}, tools)
	if err != nil {
		return err
	}
	defer func() { _ = e.stop() }()
	fmt.Printf("From the acknowledged decision to the start of the tool, engine and runner in one process, group sync\n\n")
	fmt.Printf("  %8s %10s %10s %10s %10s %24s\n", "sessions", "p50", "p99", "CPU each", "decisions", "raw publish always, p50")
	var verdicts []func()
	for _, s := range approvalSessions {
		f, publish, err := measureApprovals(ctx, o, e.url, raw.URL(), payload, tools, s.n)
		if err != nil {
			return fmt.Errorf("%d sessions: %w", s.n, err)
		}
		fmt.Printf("  %8d %10s %10s %10s %10.0f %24s\n", s.n, f.p50.Round(time.Microsecond), f.p99.Round(time.Microsecond), f.cpu.Round(time.Microsecond), f.rate, publish.Round(time.Microsecond))
		verdicts = append(verdicts, func() {
			mark := "ok"
			if f.p50 > s.atMost {
				mark = "ABOVE"
			}
			fmt.Printf("  %-58s %5s  (at most %s) %s\n", fmt.Sprintf("median at %d sessions", s.n), f.p50.Round(10*time.Microsecond), s.atMost, mark)
		})
	}
	fmt.Println()
	for _, v := range verdicts {
		v()
	}
	fmt.Println()
	return nil
}

func approvalSession(n, c int) string { return fmt.Sprintf("ask%d-%d", n, c) }

// measureApprovals interleaves approvals with raw publishes. All sessions wait
// first; then all are decided at the same moment, again and again. rate is the
// number of decisions.
func measureApprovals(ctx context.Context, o options, url, rawURL string, payload []byte, tools clocked, n int) (f figure, publish time.Duration, err error) {
	a, err := newApprover(url, tools, n)
	if err != nil {
		return f, 0, err
	}
	defer a.nc.Close()
	var p50, p99, published []time.Duration
	for round := range o.rounds {
		do, done, err := publisher(ctx, rawURL, n, payload, fmt.Sprintf("a%d-%d", n, round))
		if err != nil {
			return f, 0, err
		}
		raw, err := measure(n, o.length/3, do)
		done()
		if err != nil {
			return f, 0, err
		}
		published = append(published, raw.p50)
		a.took = nil
		for begin := time.Now(); time.Since(begin) < o.length; {
			err := a.all(a.ask)
			used := cpuTime()
			err = errors.Join(err, a.all(a.approve))
			f.cpu += cpuTime() - used
			if err := errors.Join(err, a.all(a.end)); err != nil {
				return f, 0, err
			}
		}
		p50, p99 = append(p50, median(a.took)), append(p99, quantile(a.took, 99))
		f.rate += float64(len(a.took))
	}
	f.p50, f.p99, f.cpu = median(p50), median(p99), f.cpu/time.Duration(f.rate)
	return f, median(published), nil
}

// all does a step in every session at once.
func (a *approver) all(step func(c int) error) error {
	errs := make([]error, a.n)
	var wg sync.WaitGroup
	for c := range a.n {
		wg.Go(func() { errs[c] = step(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// approver is a person who approves in n sessions.
type approver struct {
	nc      *nats.Conn
	tools   clocked
	n       int
	parked  []chan string // the generation that waits, by session
	ended   []chan struct{}
	waiting []string

	mu   sync.Mutex
	took []time.Duration
}

func newApprover(url string, tools clocked, n int) (*approver, error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	a := &approver{nc: nc, tools: tools, n: n, waiting: make([]string, n)}
	for c := range n {
		parked, ended, session := make(chan string, 1), make(chan struct{}, 1), approvalSession(n, c)
		a.parked, a.ended = append(a.parked, parked), append(a.ended, ended)
		_, e1 := nc.Subscribe("agent.event."+session+".tool.parked", func(m *nats.Msg) { parked <- generationOf(m.Data) })
		_, e2 := nc.Subscribe("agent.event."+session+".run.finished", func(*nats.Msg) { ended <- struct{}{} })
		_, e3 := a.request(session, "session.create", `{"model":{"provider":"asking","model":"m"}}`)
		if err := errors.Join(e1, e2, e3); err != nil {
			return nil, err
		}
	}
	return a, nc.Flush()
}

func generationOf(event []byte) string {
	var e struct {
		Data struct {
			Request struct {
				Generation string `json:"generation"`
			} `json:"request"`
		} `json:"data"`
	}
	_ = json.Unmarshal(event, &e)
	return e.Data.Request.Generation
}

// request gives a command and returns when its answer was there.
func (a *approver) request(session, name, body string) (time.Time, error) {
	resp, err := a.nc.Request("agent.cmd.bench."+session+"."+name, []byte(body), 10*time.Second)
	at := time.Now()
	if err == nil && !strings.Contains(string(resp.Data), `"ok":true`) {
		err = fmt.Errorf("%s: %s", name, resp.Data)
	}
	return at, err
}

// ask has a run stop at its call.
func (a *approver) ask(c int) error {
	session := approvalSession(a.n, c)
	if _, err := a.request(session, "run.request", `{"prompt":"go"}`); err != nil {
		return err
	}
	var err error
	a.waiting[c], err = receive(a.parked[c], session+": nothing was parked")
	return err
}

// approve decides, and notes how long it took until the tool was started.
func (a *approver) approve(c int) error {
	session := approvalSession(a.n, c)
	acknowledged, err := a.request(session, "approval.decide", fmt.Sprintf(`{"tool_call_id":"w","generation":%q,"decision":"allow_once"}`, a.waiting[c]))
	if err != nil {
		return err
	}
	started, err := receive(a.tools.started[session], session+": the tool was not started")
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, max(0, started.Sub(acknowledged)))
	return nil
}

func (a *approver) end(c int) error {
	_, err := receive(a.ended[c], approvalSession(a.n, c)+": the run did not end")
	return err
}

func receive[T any](from <-chan T, otherwise string) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-time.After(30 * time.Second):
		return v, errors.New(otherwise)
	}
}
