package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
)

// figure is what one measurement gave.
type figure struct {
	rate     float64 // a second
	p50, p99 time.Duration
	cpu      time.Duration // of the whole process, clients included, per request
}

// content is the text of every submitted message: the stored event then has
// about 700 bytes.
var content = strings.Repeat("a line of some agent's text. ", 10)

// measure runs n clients, each with one request under way, for the length.
func measure(n int, length time.Duration, do func(client int) error) (figure, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	begin, used := time.Now(), cpuTime()
	for c := range n {
		wg.Go(func() {
			var took []time.Duration
			var err error
			for time.Since(begin) < length && err == nil {
				t := time.Now()
				err = do(c)
				took = append(took, time.Since(t))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	elapsed := time.Since(begin)
	used = cpuTime() - used
	slices.Sort(all)
	return figure{float64(len(all)) / elapsed.Seconds(), all[len(all)/2], all[len(all)*99/100], used / time.Duration(len(all))}, errors.Join(errs...)
}

// connect opens a few TCP connections to share among the clients.
func connect(url string, n int) ([]*nats.Conn, error) {
	var out []*nats.Conn
	for range min(n, 8) {
		nc, err := nats.Connect(url)
		if err != nil {
			return nil, err
		}
		out = append(out, nc)
	}
	return out, nil
}

// publisher makes a client that publishes payload with the expected sequence
// and checks every acknowledgement.
func publisher(ctx context.Context, url string, n int, payload []byte, round string) (func(int) error, func(), error) {
	conns, err := connect(url, n)
	if err != nil {
		return nil, nil, err
	}
	if err := rawStreams(ctx, conns[0], round, n); err != nil {
		return nil, nil, err
	}
	last := make([]uint64, n)
	closeAll := func() {
		for _, nc := range conns {
			nc.Close()
		}
	}
	return func(c int) error {
		m := nats.NewMsg(fmt.Sprintf("raw.%s.%d.message.submitted", round, c))
		m.Data = payload
		m.Header.Set("Nats-Expected-Last-Sequence", strconv.FormatUint(last[c], 10))
		resp, err := conns[c%len(conns)].RequestMsg(m, 10*time.Second)
		if err != nil {
			return err
		}
		var ack struct {
			Seq   uint64          `json:"seq"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(resp.Data, &ack); err != nil || ack.Seq != last[c]+1 {
			return fmt.Errorf("raw publish: %s", resp.Data)
		}
		last[c] = ack.Seq
		return nil
	}, closeAll, nil
}

// submitter makes a client that submits messages and checks every reply.
func submitter(url string, n int, round string) (func(int) error, func(), error) {
	conns, err := connect(url, n)
	if err != nil {
		return nil, nil, err
	}
	request := func(c int, name, body string) (uint64, error) {
		resp, err := conns[c%len(conns)].Request(fmt.Sprintf("agent.cmd.bench.s%s-%d.%s", round, c, name), []byte(body), 10*time.Second)
		if err != nil {
			return 0, err
		}
		var r struct {
			OK       bool   `json:"ok"`
			Sequence uint64 `json:"sequence"`
		}
		if err := json.Unmarshal(resp.Data, &r); err != nil || !r.OK {
			return 0, fmt.Errorf("%s: %s", name, resp.Data)
		}
		return r.Sequence, nil
	}
	for c := range n {
		if _, err := request(c, "session.create", `{"model":{"provider":"instant","model":"m"}}`); err != nil {
			return nil, nil, err
		}
	}
	body := fmt.Sprintf(`{"content":%q}`, content)
	last := make([]uint64, n)
	for c := range last {
		last[c] = 1
	}
	closeAll := func() {
		for _, nc := range conns {
			nc.Close()
		}
	}
	return func(c int) error {
		seq, err := request(c, "message.submit", body)
		if err == nil && seq != last[c]+1 {
			err = fmt.Errorf("sequence %d after %d", seq, last[c])
		}
		last[c] = seq
		return err
	}, closeAll, nil
}

// storedPayload is one event as an engine stores it.
func storedPayload(ctx context.Context, o options) ([]byte, error) {
	e, err := startEngine(ctx, o, bus.SyncNone, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.stop() }()
	do, done, err := submitter(e.url, 1, "payload")
	if err != nil {
		return nil, err
	}
	defer done()
	nc, err := nats.Connect(e.url)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync("agent.event.*.message.submitted")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(nc.Flush(), do(0)); err != nil {
		return nil, err
	}
	m, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// contender is one line of the comparison.
type contender struct {
	name    string
	url     string
	raw     bool
	clients int
	figures []figure
}

// commands compares commands end to end with raw publishes.
func commands(ctx context.Context, o options) error {
	payload, err := storedPayload(ctx, o)
	if err != nil {
		return err
	}
	var lines []*contender
	add := func(name string, url string, raw bool) {
		for _, n := range []int{1, 16, 64} {
			lines = append(lines, &contender{name: name, url: url, raw: raw, clients: n})
		}
	}
	for _, mode := range []bus.SyncMode{bus.SyncAlways, bus.SyncNone} {
		s, err := rawServer(o, mode)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		add("raw "+string(mode), s.URL(), true)
	}
	for _, mode := range []bus.SyncMode{bus.SyncGroup, bus.SyncAlways, bus.SyncNone} {
		e, err := startEngine(ctx, o, mode, nil)
		if err != nil {
			return err
		}
		defer func() { _ = e.stop() }()
		add("command "+string(mode), e.url, false)
	}
	for round := range o.rounds {
		for _, l := range lines {
			if o.line != "" && o.line != fmt.Sprintf("%s/%d", l.name, l.clients) {
				continue
			}
			if err := l.measure(ctx, o, payload, round); err != nil {
				return fmt.Errorf("%s, %d clients: %w", l.name, l.clients, err)
			}
		}
	}
	by := reportCommands(lines, len(payload))
	if len(by) == 0 {
		return fmt.Errorf("there is no line %q", o.line)
	}
	if o.line == "" {
		reportRatios(by)
	}
	return nil
}

func (l *contender) measure(ctx context.Context, o options, payload []byte, round int) error {
	tag := fmt.Sprintf("%d-%d", round, l.clients)
	var do func(int) error
	var done func()
	var err error
	if l.raw {
		do, done, err = publisher(ctx, l.url, l.clients, payload, tag)
	} else {
		do, done, err = submitter(l.url, l.clients, tag)
	}
	if err != nil {
		return err
	}
	defer done()
	if _, err := measure(l.clients, o.length/10, do); err != nil {
		return err
	}
	f, err := measure(l.clients, o.length, do)
	l.figures = append(l.figures, f)
	return err
}

func (l *contender) median() figure {
	var rates []float64
	var p50, p99, cpu []time.Duration
	for _, f := range l.figures {
		rates, p50, p99 = append(rates, f.rate), append(p50, f.p50), append(p99, f.p99)
		cpu = append(cpu, f.cpu)
	}
	return figure{median(rates), median(p50), median(p99), median(cpu)}
}

// reportCommands prints what was measured and returns it by name and clients.
func reportCommands(lines []*contender, size int) map[string]figure {
	fmt.Printf("Commands end to end and raw publishes of the same %d bytes, over loopback TCP\n\n", size)
	fmt.Printf("  %-16s %8s %10s %10s %10s %10s\n", "", "clients", "a second", "p50", "p99", "CPU each")
	by := map[string]figure{}
	for _, l := range lines {
		if len(l.figures) == 0 {
			continue
		}
		f := l.median()
		by[fmt.Sprintf("%s/%d", l.name, l.clients)] = f
		fmt.Printf("  %-16s %8d %10.0f %10s %10s %10s\n", l.name, l.clients, f.rate, f.p50.Round(time.Microsecond), f.p99.Round(time.Microsecond), f.cpu.Round(time.Microsecond))
	}
	fmt.Println()
	return by
}

func reportRatios(by map[string]figure) {
	ratio := func(a, b string) float64 { return by[a].rate / by[b].rate }
	fmt.Println("Ratios")
	verdict("group, 64 sessions, to raw always", ratio("command group/64", "raw always/64"), 1.4)
	verdict("group, 16 sessions, to raw always", ratio("command group/16", "raw always/16"), 0.9)
	verdict("always, 64 sessions, to raw always", ratio("command always/64", "raw always/64"), 0.75)
	verdict("none, 64 sessions, to raw default", ratio("command none/64", "raw none/64"), 0.45)
	extra := by["command none/1"].p50 - by["raw none/1"].p50
	fmt.Printf("  %-58s %s  (at most 150µs)\n\n", "none, 1 session, median latency above raw", extra.Round(time.Microsecond))
}
