package engine

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		what          string
		live, scanned uint64
		want          int
	}{
		{"nothing yet", 0, 0, 1000},
		{"a small engine", 16 * mb, 8 * mb, 500},
		{"as the runtime would", 96 * mb, 96 * mb, 100},
		{"hardly anything but buffers", 320 * mb, 30 * mb, 25},
		{"much of both", 400 * mb, 200 * mb, 50},
	} {
		if got := percent(c.live, c.scanned); got != c.want {
			t.Errorf("%s: %d MB alive, %d MB of it scanned: GOGC %d, want %d", c.what, c.live/mb, c.scanned/mb, got, c.want)
		}
	}
}

// Buffers that are alive leave garbage no more room; afterwards all is as it was.
func TestKeepPace(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- keepPace(ctx) }()
	buffers := make([]byte, 500*mb) // never touched: no real memory
	if got := paceUntil(t, func(is int) bool { return is < 50 }); got < 1 {
		t.Errorf("GOGC is %d", got)
	}
	runtime.KeepAlive(buffers)
	paceUntil(t, func(is int) bool { return is > 100 }) // they are gone
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := pace(); got != 100 {
		t.Errorf("GOGC is %d afterwards", got)
	}
}

// Who set the pace keeps it.
func TestKeepPace_IsSetFromOutside(t *testing.T) {
	t.Setenv("GOGC", "70")
	if err := keepPace(t.Context()); err != nil { // returns at once
		t.Error(err)
	}
}

// paceUntil collects until the pace is as wanted, and returns it.
func paceUntil(t *testing.T, good func(int) bool) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		runtime.GC()
		if is := pace(); good(is) {
			return is
		} else if time.Now().After(end) {
			t.Fatalf("GOGC stays %d", is)
		}
		time.Sleep(time.Millisecond) // the collector tells of its round later
	}
}

func pace() int {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	return int(now[0].Value.Uint64())
}
