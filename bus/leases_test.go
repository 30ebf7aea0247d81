package bus

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"culm/internal/natstest"
)

func newTestLeases(t *testing.T, s *natstest.Server, d time.Duration) *Leases {
	t.Helper()
	l, err := NewLeases(inTime(t), s.Connect(t), LeaseOptions{Duration: d})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// endGrace makes l an engine that has been up for long.
func endGrace(l *Leases) *Leases {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grace = time.Now()
	return l
}

func wantAlive(t *testing.T, l *Leases, session, run string, want bool) {
	t.Helper()
	got, err := l.Alive(t.Context(), session, run)
	if err != nil || got != want {
		t.Errorf("Alive(%s, %s) = %v, %v; want %v", session, run, got, err, want)
	}
}

func renew(t *testing.T, l *Leases, session, run string) {
	t.Helper()
	if err := l.Renew(t.Context(), session, run); err != nil {
		t.Fatalf("Renew(%s, %s): %v", session, run, err)
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	a, b := endGrace(newTestLeases(t, s, time.Minute)), endGrace(newTestLeases(t, s, time.Minute))
	wantAlive(t, a, "s", "r1", false)
	renew(t, a, "s", "r1")
	for _, l := range []*Leases{a, b} {
		wantAlive(t, l, "s", "r1", true)
		wantAlive(t, l, "s", "r2", false)
		wantAlive(t, l, "other", "r1", false)
	}
	renew(t, a, "s", "r2")
	wantAlive(t, b, "s", "r1", false)
	wantAlive(t, b, "s", "r2", true)
	for range 2 { // the second has nothing to release
		if err := b.Release(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	wantAlive(t, b, "s", "r2", false)
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	wantAlive(t, a, "s", "r2", false)
	if a.Duration() != time.Minute {
		t.Errorf("Duration() = %s", a.Duration())
	}
}

// A renewal that is not written leaves the run its whole lease: the entry
// outlives the lease by the time in which none is written.
func TestLeases_lastWholeFromTheLastSign(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLeases(t, s, 3*time.Second)
	js, err := jetstream.New(s.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(t.Context(), leaseBucket)
	if err != nil {
		t.Fatal(err)
	}
	status, err := bucket.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ttl, unwritten := status.TTL(), l.opts.unwritten(); ttl-unwritten < l.Duration() {
		t.Errorf("an entry lives %s, and for %s no renewal is written: less than a lease of %s is left", ttl, unwritten, l.Duration())
	}
}

func TestLeases_run_out(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	const lease = 3 * time.Second
	a, b := newTestLeases(t, s, lease), endGrace(newTestLeases(t, s, lease))
	began := time.Now() // before the server's clock does
	renew(t, a, "s", "r")
	endGrace(a)
	for _, l := range []*Leases{b, a} {
		for {
			alive, err := l.Alive(t.Context(), "s", "r")
			if err == nil && !alive {
				break
			}
			if time.Since(began) > testPatience {
				t.Fatalf("the lease does not run out: %v", err)
			}
			time.Sleep(20 * time.Millisecond) // the server's clock is the one waited for
		}
	}
	if d := time.Since(began); d < lease-lease/10 {
		t.Errorf("ran out after %s", d)
	}
}

func TestLeases_written_only_when_a_third_is_spent(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := endGrace(newTestLeases(t, s, time.Minute))
	writes := func() uint64 {
		info, err := l.api.streamInfo(t.Context(), "KV_"+leaseBucket)
		if err != nil {
			t.Fatal(err)
		}
		return info.State.LastSeq
	}
	for range 10 {
		renew(t, l, "s", "r")
	}
	if n := writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	l.mu.Lock()
	w := l.written["s"]
	w.at = w.at.Add(-20 * time.Second)
	l.written["s"] = w
	l.mu.Unlock()
	renew(t, l, "s", "r")
	renew(t, l, "s", "r2")
	if n := writes(); n != 3 {
		t.Errorf("%d writes, want 3", n)
	}
}

func TestLeases_an_engine_that_starts_grants_a_fresh_lease(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	first := newTestLeases(t, s, time.Minute)
	renew(t, first, "released", "r")
	if err := first.Release(t.Context(), "released"); err != nil {
		t.Fatal(err)
	}
	l := newTestLeases(t, s, time.Minute)
	wantAlive(t, l, "s", "r", true)
	wantAlive(t, l, "released", "r", false)
	endGrace(l)
	wantAlive(t, l, "s", "r", false)
	// The server was away: nobody could renew.
	s.Restart(t)
	wantAlive(t, l, "s", "r", true)
}

func TestLeases_memory_is_bounded(t *testing.T) {
	t.Parallel()
	l := &Leases{opts: LeaseOptions{Duration: time.Minute}, written: map[string]leaseWrite{}, sweepAt: minSweep}
	long := time.Now().Add(-time.Hour)
	for i := range 20 * minSweep {
		l.remember(fmt.Sprint(i), leaseWrite{run: "r", at: long})
	}
	if n := len(l.written); n > minSweep {
		t.Errorf("%d remembered, want at most %d", n, minSweep)
	}
}
