package engine

import (
	"context"
	"testing"
	"time"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
	"culm/runner"
)

// quiet is a lease that never runs out and a disk that needs no sync.
type quiet struct{}

func (quiet) Duration() time.Duration                             { return time.Minute }
func (quiet) Renew(context.Context, string, string) error         { return nil }
func (quiet) Alive(context.Context, string, string) (bool, error) { return true, nil }
func (quiet) Release(context.Context, string) error               { return nil }
func (quiet) Mark() uint64                                        { return 1 }
func (quiet) Then(_ uint64, done func(error))                     { done(nil) }

// TestDirect_NextShowsWhatAnotherEngineStored: a copy of the session from before
// it does not hide from the runner what it was woken for.
func TestDirect_NextShowsWhatAnotherEngineStored(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	over := func() direct {
		h := aggregate.NewHandler(aggregate.Options{Log: log, Leases: quiet{}, Barrier: quiet{}, Config: func() aggregate.Config { return aggregate.Config{} }})
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		subjects, _ := bus.NewSubjects("agent")
		return direct{h, h, subjects, &wakeUps{names: make(chan string, 8)}}
	}
	here, there := over(), over()
	do := func(d direct, name string, data map[string]any) {
		t.Helper()
		if r, err := d.Do(t.Context(), "s", runner.Command{Name: name, Data: data}); err != nil || !r.OK {
			t.Fatalf("%s: %+v, %v", name, r.Error, err)
		}
	}
	want := func(kind aggregate.StepKind, cancelled bool) {
		t.Helper()
		if st, err := here.Next(t.Context(), "s"); err != nil || st.Kind != kind || st.Cancelled != cancelled {
			t.Errorf("next: %+v, %v", st, err)
		}
	}
	do(here, "session.create", map[string]any{})
	do(there, "run.request", map[string]any{"prompt": "p"})
	want(aggregate.StepNothing, false) // it has not heard
	if err := here.wake.event(t.Context(), events.Record{Session: "s", Type: "run.requested"}); err != nil {
		t.Fatal(err)
	}
	want(aggregate.StepClaim, false)
	st, err := here.Next(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	do(here, "run.claim", map[string]any{"run_id": st.RunID, "runner": "r", "providers": []string{"p"}})
	do(there, "run.cancel", map[string]any{})
	if err := here.wake.event(t.Context(), events.Record{Session: "s", Type: "run.cancel_requested"}); err != nil {
		t.Fatal(err)
	}
	want(aggregate.StepFinish, true)
}
