//go:build unix

package aggregate

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"culm/events"
)

// typicalLog is a session of n events as agents write them: rounds with a tool
// call each, arguments and results of some hundred bytes.
func typicalLog(tb testing.TB, n int) []events.Record {
	tb.Helper()
	s, records := &State{}, make([]events.Record, 0, n)
	clock := &fakeClock{}
	give := func(c Command) {
		env := Env{Now: clock.now(), Actor: "runner-1", Command: fmt.Sprintf("01J%023d", len(records)), Birth: "01KB9ZQ000T8QW2X4Y6Z7A8B9C"}
		d, r := Decide(s, c, env)
		if r != nil || d.Event == nil {
			tb.Fatalf("%T: %v", c, r)
		}
		var entropy [10]byte
		id, err := events.NextID(s.Head.ID, env.Now, entropy)
		if err != nil {
			tb.Fatal(err)
		}
		e := events.Event{
			ID: id, Type: d.Event.EventType(), Session: "s", Time: env.Now, Seq: s.Head.Seq + 1, Birth: env.Birth, Actor: env.Actor,
			Command: env.Command, CommandDigest: events.Hash([]byte(env.Command)), Run: runOf(s, d.Event), Prevhash: s.Head.Hash, Data: d.Event,
		}
		stored, err := events.Encode(e)
		if err != nil {
			tb.Fatal(err)
		}
		s.apply(&e, stored)
		records = append(records, events.Record{Session: "s", Seq: e.Seq, Type: e.Type, Payload: stored})
	}
	give(SessionCreate{Model: &events.Model{Provider: "p", Model: "m"}})
	give(RunRequest{Prompt: ptr("Improve the text until it is good.")})
	give(RunClaim{RunID: s.Run.ID, Runner: "runner-1"})
	ref, output := RunRef{RunID: s.Run.ID, Fence: s.Run.Fence}, strings.Repeat("a line of the file that was read\n", 10)
	for round := uint32(0); len(records) < n; round++ {
		give(RoundStart{ref})
		calls := []CallSpec{{ID: fmt.Sprintf("call_%d", round), Name: "Read", Arguments: `{"path":"internal/engine/engine.go","offset":120,"limit":200}`}}
		give(RoundFinish{RunRef: ref, Round: ptr(round), Message: &AnswerSpec{Content: "Let me look at the next part of the file.", ToolCalls: calls}, Usage: &events.Usage{Prompt: 1200, Completion: 80, Total: 1280}})
		give(ToolStart{RunRef: ref, ToolCallID: calls[0].ID})
		give(ToolFinish{RunRef: ref, ToolCallID: calls[0].ID, Success: ptr(true), Content: &output, ElapsedMS: 12})
	}
	return records[:n]
}

// BenchmarkFold is decoding, checking the chain and folding a whole log.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			records := typicalLog(b, n)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if _, err := Fold(sequence(records)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// cpuTime is what the process has used of processors so far; on a busy machine
// it says more than the clock.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAudit is an audit of the same log.
func BenchmarkAudit(b *testing.B) {
	records := typicalLog(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if report, err := Audit(sequence(records), AuditOptions{}); err != nil || !report.OK() {
			b.Fatal(report.Findings, err)
		}
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkDecide is one decision, its event folded into a copy of nothing.
func BenchmarkDecide(b *testing.B) {
	s := &State{}
	if err := s.FoldOn(sequence(typicalLog(b, 10_000)[:9_999])); err != nil {
		b.Fatal(err)
	}
	env := testEnv("cmd")
	b.ReportAllocs()
	for b.Loop() {
		if d, r := Decide(s, MessageSubmit{Content: "words"}, env); r != nil || d.Event == nil {
			b.Fatal(r)
		}
	}
}

// BenchmarkHandle is one command through the handler over the log in memory.
func BenchmarkHandle(b *testing.B) {
	w := newBench(b)
	e := w.engine()
	e.must("s", "session.create", nil)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		id := fmt.Sprintf("01J%023d", n)
		r := e.send(Request{Actor: "a", Session: "s", Name: "message.submit", ID: id, Digest: id, Body: []byte(`{"content":"a few words of a message"}`)})
		if !r.OK {
			b.Fatal(r.Error)
		}
	}
}

// BenchmarkHandleCold is the first command to a session of 10 000 events.
func BenchmarkHandleCold(b *testing.B) {
	records := typicalLog(b, 10_000)
	w := newBench(b)
	ctx := context.Background()
	if _, err := w.log.Create(ctx, "s"); err != nil {
		b.Fatal(err)
	}
	for _, r := range records {
		if err := w.log.Append(ctx, "s", r.Seq-1, r.Type, r.Payload); err != nil {
			b.Fatal(err)
		}
	}
	w.leases.alive["s"] = mustFold(b, records).Run.ID
	for b.Loop() {
		w.engine().refused(CodeNoSuchRun, "s", "run.cancel", obj{"run_id": "none"})
	}
}
