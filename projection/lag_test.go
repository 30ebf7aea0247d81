package projection

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"culm/events"
)

// BenchmarkLag measures the time from an append to the commit of its rows, at
// 500 events a second over 20 sessions.
func BenchmarkLag(b *testing.B) {
	log := events.NewMem()
	source := events.NewMem()
	h := newHistory(b, source, 81)
	h.noClose = true
	h.run(20, 2000)
	r := start(b, options(b, log)).awaitReady()
	var backlog []events.Record
	for session := range heads(b, source) {
		for rec, err := range source.Read(b.Context(), session, 0, 0) {
			if err != nil {
				b.Fatal(err)
			}
			backlog = append(backlog, rec)
		}
		if _, err := log.Create(b.Context(), session); err != nil {
			b.Fatal(err)
		}
	}
	slices.SortStableFunc(backlog, func(x, y events.Record) int { return int(x.Seq) - int(y.Seq) })
	var lags []time.Duration
	var mu sync.Mutex
	var waits sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for b.Loop() {
		for _, rec := range backlog {
			<-tick.C
			if last, err := log.Last(b.Context(), rec.Session); err == nil && last >= rec.Seq {
				continue // of an earlier pass
			}
			began := time.Now()
			if err := log.Append(b.Context(), rec.Session, rec.Seq-1, rec.Type, rec.Payload); err != nil {
				b.Fatal(err)
			}
			waits.Go(func() {
				w := Wait{MinSequence: map[string]uint64{rec.Session: rec.Seq}, WaitMS: ptr(int64(60000))}
				if w.until(b.Context(), &r.pos) == nil {
					mu.Lock()
					lags = append(lags, time.Since(began))
					mu.Unlock()
				}
			})
		}
		waits.Wait()
	}
	slices.Sort(lags)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(lags[len(lags)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkSessions lists 50 of 10 000 sessions.
func BenchmarkSessions(b *testing.B) {
	log := events.NewMem()
	h := newHistory(b, log, 83)
	for i := range 10_000 {
		session := fmt.Sprint("session-", i)
		h.give(session, "session.create", fields{"title": fmt.Sprint("number ", i), "kind": "root"})
		if i%3 == 0 {
			h.give(session, "run.request", fields{"prompt": "go", "loop": fields{"max_iterations": 3, "max_total_rounds": 9}})
		}
	}
	r := start(b, options(b, log)).awaitReady()
	for name, q := range map[string]SessionsQuery{
		"all": {}, "status": {Status: "requested"}, "none": {Status: "blocked"}, "kind": {Kind: "root"}, "text": {Text: "number 99"},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := r.Sessions(b.Context(), q); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
