package engine

import (
	"context"
	"errors"
	"testing"

	"culm/aggregate"
	"culm/bus"
)

// TestLook: after a sweep that met nobody with a run, nor waiting, none is due;
// after any other one is, for time alone may change what it finds.
func TestLook(t *testing.T) {
	t.Parallel()
	server, err := bus.StartServer(bus.ServerOptions{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	rest := bus.NewRest(server)
	failed := errors.New("failed")
	for _, c := range []struct {
		name  string
		steps []aggregate.StepKind
		err   error
		due   bool
	}{
		{"no session", nil, nil, false},
		{"nothing to do", []aggregate.StepKind{aggregate.StepNothing, aggregate.StepNothing}, nil, false},
		{"one waits", []aggregate.StepKind{aggregate.StepWait, aggregate.StepNothing}, nil, true},
		{"one has a run", []aggregate.StepKind{aggregate.StepNothing, aggregate.StepModel}, nil, true},
		{"one could not be looked at", []aggregate.StepKind{aggregate.StepNothing}, failed, true},
	} {
		told := 0
		err := look(t.Context(), rest, func(_ context.Context, owed func(aggregate.Step)) error {
			for _, kind := range c.steps {
				owed(aggregate.Step{Kind: kind})
			}
			return c.err
		}, func(aggregate.Step) { told++ })
		if !errors.Is(err, c.err) || told != len(c.steps) {
			t.Errorf("%s: %v, told of %d steps", c.name, err, told)
		}
		if due := rest.Due(0); due != c.due {
			t.Errorf("%s: due is %t, want %t", c.name, due, c.due)
		}
	}
}
