package projection

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"culm/events"
)

const catchUpEvents = 100_000

// BenchmarkCatchUp starts a projector on a log of 100 000 events, all views on.
func BenchmarkCatchUp(b *testing.B) {
	for _, sessions := range []int{50, 1000} {
		b.Run(fmt.Sprint("sessions=", sessions), func(b *testing.B) {
			log := events.NewMem()
			h := newHistory(b, log, 7)
			h.noClose = true
			h.run(sessions, catchUpEvents)
			for b.Loop() {
				b.StopTimer()
				o := options(b, log)
				o.File = filepath.Join(b.TempDir(), "views.db")
				b.StartTimer()
				began, cpu := time.Now(), cpuTime(b)
				r := start(b, o).awaitReady()
				b.ReportMetric(float64(h.Events)/time.Since(began).Seconds(), "events/s")
				b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(h.Events), "cpu-µs/event")
				b.ReportMetric(float64(h.Events)/float64(r.stats.batches.Load()), "events/batch")
				b.StopTimer()
				r.stop()
				b.StartTimer()
			}
		})
	}
}

// cpuTime is what the process has used of the processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
