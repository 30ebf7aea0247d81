package projection

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"culm/events"
)

// BenchmarkCatchUp starts a projector on a log of 100 000 events, all views on.
func BenchmarkCatchUp(b *testing.B) {
	for _, sessions := range []int{50, 1000} {
		b.Run(fmt.Sprint("sessions=", sessions), func(b *testing.B) {
			log := events.NewMem()
			h := newHistory(b, log, 7)
			h.noClose = true
			h.run(sessions, 100_000)
			for b.Loop() {
				b.StopTimer()
				o := options(b, log)
				o.File = filepath.Join(b.TempDir(), "views.db")
				b.StartTimer()
				began := time.Now()
				r := start(b, o).awaitReady()
				b.ReportMetric(float64(h.Events)/time.Since(began).Seconds(), "events/s")
				b.StopTimer()
				r.stop()
				b.StartTimer()
			}
		})
	}
}
