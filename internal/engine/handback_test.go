package engine

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/internal/natstest"
	"culm/provider"
	"culm/provider/recorded"
	"culm/runner"
)

// handing is the part of an engine with provider p that takes runs over.
func handing(t *testing.T, nc *nats.Conn, p string) (*handBacks, *runner.Config) {
	t.Helper()
	e := &engine{cfg: Config{Lease: time.Hour}, nc: nc, log: slog.New(slog.DiscardHandler)}
	rc := runner.Config{Providers: &provider.Registry{}}
	if err := rc.Providers.Add(p, recorded.New(nil, recorded.Options{})); err != nil {
		t.Fatal(err)
	}
	if err := e.startHandBack(t.Context(), &rc); err != nil {
		t.Fatal(err)
	}
	return e.handBacks, &rc
}

// offers is what h finds.
func offers(t *testing.T, h *handBacks) []string {
	t.Helper()
	names, err := h.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestHandBacks_GoWhereTheirProviderIs: an engine takes the runs that it can go
// on with, once, and leaves the others.
func TestHandBacks_GoWhereTheirProviderIs(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	a, stopping := handing(t, s.Connect(t), "p")
	b, other := handing(t, s.Connect(t), "q")
	for session, p := range map[string]string{"any": "", "mine": "p", "theirs": "q"} {
		stopping.HandBack(session, runner.Held{RunID: "r-" + session, Fence: 7, Provider: p})
	}
	if got := offers(t, a); !slices.Equal(got, []string{"any", "mine"}) {
		t.Errorf("offered to p: %v", got)
	}
	if got := offers(t, b); !slices.Equal(got, []string{"any", "theirs"}) {
		t.Errorf("offered to q: %v", got)
	}
	if run, ok := other.Adopt("mine"); ok {
		t.Errorf("q took %+v", run)
	}
	for n, rc := range []*runner.Config{stopping, other, stopping} {
		if run, ok := rc.Adopt("any"); ok != (n == 0) || ok && run != (runner.Held{RunID: "r-any", Fence: 7}) {
			t.Errorf("adopting %d: %+v, %t", n, run, ok)
		}
	}
	if got := offers(t, a); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("left for p: %v", got)
	}
}

// TestKeepOn: the runner is woken for what was there at the start, for what is
// given back while the engine runs, without waiting for a sweep, and with each
// sweep for what rests.
func TestKeepOn(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	_, stopping := handing(t, s.Connect(t), "p")
	stopping.HandBack("early", runner.Held{RunID: "r", Fence: 7})
	h, rc := handing(t, s.Connect(t), "p")
	w := &wakeUps{names: make(chan string)}
	resting := make(chan []string, 1)
	sweep := make(chan time.Time)
	go func() { _ = h.keepOnWith(t.Context(), w, func() []string { return <-resting }, sweep) }()
	woken := func(want string) {
		t.Helper()
		select {
		case got := <-w.names:
			if got != want {
				t.Errorf("woken for %s, want %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("not woken for %s", want)
		}
	}
	woken("early")
	if run, ok := rc.Adopt("early"); !ok || run.RunID != "r" {
		t.Errorf("adopted %+v, %t", run, ok)
	}
	late, err := bus.NewHandBacks(t.Context(), s.Connect(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Put(t.Context(), "late", bus.Held{RunID: "r2", Fence: 8}); err != nil {
		t.Fatal(err)
	}
	resting <- []string{"rests"}
	select {
	case got := <-w.names: // by the announcement
		if got != "late" {
			t.Errorf("woken for %s", got)
		}
		sweep <- time.Time{}
		woken("rests")
	case sweep <- time.Time{}: // it was announced before it could be listed
		woken("rests")
	}
	woken("late") // nobody has taken it
}
