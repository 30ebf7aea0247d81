package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
)

// listed is how many sessions there are to list.
const listed = 10_000

// manySessions is a log in memory of sessions, every third with a requested run.
func manySessions(n int) (*events.Mem, error) {
	log := events.NewMem()
	h := aggregate.NewHandler(aggregate.Options{Log: log, Leases: everlasting{}, Barrier: bus.NopBarrier{}})
	do := func(session, name, body string) error {
		out := make(chan aggregate.Reply, 1)
		h.Handle(context.Background(), aggregate.Request{Actor: "bench", Session: session, Name: name, Body: []byte(body)}, func(r aggregate.Reply) { out <- r })
		if r := <-out; !r.OK {
			return fmt.Errorf("%s: %s", name, r.Error.Message)
		}
		return nil
	}
	for i := range n {
		session := fmt.Sprintf("session-%d", i)
		err := do(session, "session.create", fmt.Sprintf(`{"title":"number %d"}`, i))
		if err == nil && i%3 == 0 {
			err = do(session, "run.request", `{"prompt":"go","loop":{"max_iterations":3,"max_total_rounds":9}}`)
		}
		if err != nil {
			return nil, err
		}
	}
	return log, h.Close(context.Background())
}

// lists measures sessions.list over NATS, its first page and one far behind.
func lists(ctx context.Context, o options) error {
	log, err := manySessions(listed)
	if err != nil {
		return err
	}
	v, err := startViews(ctx, o, log, log)
	if err != nil {
		return err
	}
	defer func() { _ = v.end() }()
	<-v.Ready()
	server, err := rawServer(o, bus.SyncNone)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	conns, err := connect(server.URL(), 2)
	if err != nil {
		return err
	}
	subjects, err := bus.NewSubjects("agent")
	if err != nil {
		return err
	}
	service, err := bus.StartQueries(bus.QueriesOptions{Conn: conns[0], Subjects: subjects, Answer: v.Answer})
	if err != nil {
		return err
	}
	defer func() { _ = service.Stop(ctx) }()
	ask := func(body string) (next string, err error) {
		m, err := conns[1].Request("agent.query.sessions.list", []byte(body), 10*time.Second)
		if err != nil {
			return "", err
		}
		var r struct {
			OK   bool   `json:"ok"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal(m.Data, &r); err != nil || !r.OK {
			return "", fmt.Errorf("sessions.list %s: %s", body, m.Data)
		}
		return r.Next, nil
	}
	far := ""
	for range listed / 500 / 2 {
		if far, err = ask(fmt.Sprintf(`{"limit":500,"cursor":%q}`, far)); err != nil {
			return err
		}
	}
	fmt.Printf("sessions.list over NATS, 50 of %d sessions\n\n", listed)
	for _, q := range [][2]string{
		{"the first", `{}`}, {"from the middle", fmt.Sprintf(`{"cursor":%q}`, far)}, {"by status", `{"status":"requested"}`},
		{"by text", `{"text":"number 99"}`}, {"by status, none", `{"status":"blocked"}`},
	} {
		f, err := measure(1, o.length/3, func(int) error { _, err := ask(q[1]); return err })
		if err != nil {
			return err
		}
		fmt.Printf("  %-20s median %10s, p99 %10s (median at most 10ms)\n", q[0], f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond))
	}
	fmt.Println()
	return nil
}

// idleWindow is long enough to have the sweeps and comparisons in it that come
// every 10 and 30 seconds.
const idleWindow = 60 * time.Second

// idle measures an engine with runner, views and page on which nothing happens.
func idle(ctx context.Context, o options) error {
	p, _, err := startProcess(ctx, o, filepath.Join(o.dir, "idle"), "--http", "127.0.0.1:0", "--no-runner=false")
	if err != nil {
		return err
	}
	defer func() { _ = p.stop() }()
	const sessions = 100
	do, done, err := submitter(p.url, sessions, "idle")
	if err != nil {
		return err
	}
	for c := range sessions {
		for range 5 {
			if err := do(c); err != nil {
				return err
			}
		}
	}
	done()
	server, err := bareServer(ctx, o, sessions, 6)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	// What the last commands left to do is not idleness: the server's write buffers
	// expire after ten seconds, the collector's rounds after them take thirty.
	time.Sleep(45 * time.Second)
	own := cpuTime()
	before, err := p.cpu()
	if err != nil {
		return err
	}
	time.Sleep(idleWindow)
	own = cpuTime() - own
	after, err := p.cpu()
	if err != nil {
		return err
	}
	fmt.Printf("Idle engine with views and page, %d sessions, over %s\n", sessions, idleWindow)
	fmt.Printf("\n  share of a core  %.2f %% (at most 1 %%)\n", 100*(after-before).Seconds()/idleWindow.Seconds())
	fmt.Printf("  its server alone %.2f %%, in this process at the same time\n\n", 100*own.Seconds()/idleWindow.Seconds())
	return nil
}

// bareServer holds what an engine with so many sessions of so many events would
// hold, and nobody uses it.
func bareServer(ctx context.Context, o options, sessions, length int) (*bus.Server, error) {
	server, err := rawServer(o, bus.DefaultSync())
	if err != nil {
		return nil, err
	}
	fill := func() error {
		nc, err := server.Connect()
		if err != nil {
			return err
		}
		defer nc.Close()
		log, err := bus.NewJetStreamLog(ctx, nc, bus.LogOptions{Embedded: true})
		for i := 0; i < sessions && err == nil; i++ {
			session := fmt.Sprintf("bare-%d", i)
			_, err = log.Create(ctx, session)
			for seq := 0; seq < length && err == nil; seq++ {
				err = log.Append(ctx, session, uint64(seq), "message.submitted", []byte(content)) //nolint:gosec // small
			}
		}
		return err
	}
	if err := fill(); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// cpu is what the process has used so far, in user and system mode, in steps
// of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name may hold spaces
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum, nil
}
