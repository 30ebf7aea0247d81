package projection

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"culm/events"
)

// patience bounds every wait of a test; reaching it is a failure.
const patience = 3 * time.Minute

// running is a projector that runs until the test, or stop, ends it.
type running struct {
	*Projector
	t      testing.TB
	cancel context.CancelFunc
	ended  chan error
}

func options(t testing.TB, log *events.Mem) Options {
	return Options{File: filepath.Join(t.TempDir(), "views.db"), Log: log, Feed: log, Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelError}))}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(b))
	}
	return len(b), nil
}

// start opens and runs a projector.
func start(t testing.TB, o Options) *running {
	t.Helper()
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Projector: p, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- p.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

// stop ends the projector gracefully; it may be called twice.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("Run: %v", err)
		}
		if err := r.Close(); err != nil {
			r.t.Errorf("Close: %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		r.t.Error("Run does not end")
	}
}

func (r *running) awaitReady() *running {
	r.t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.ended:
		r.ended <- nil
		r.t.Fatalf("Run ended: %v", err)
	case <-time.After(patience):
		r.t.Fatal("never ready")
	}
	return r
}

// await waits until the views hold every event of the log.
func (r *running) await(log events.Log) *running {
	r.t.Helper()
	wait := int64(60000) // as long as a query may wait
	for session, seq := range heads(r.t, log) {
		w := Wait{MinSequence: map[string]uint64{session: seq}, WaitMS: &wait}
		for end := time.Now().Add(patience); ; {
			err := w.until(r.t.Context(), &r.pos)
			if err == nil {
				break
			}
			if AsError(err).Code != CodeNotYet || strings.Contains(err.Error(), "stuck") || time.Now().After(end) {
				r.t.Fatalf("%s@%d: %v", session, seq, err)
			}
		}
	}
	return r
}

func TestProjector_FirstLight(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 1).run(20, 3000)
	t.Log(h.Events, "events by", h.n, "commands")
	o := options(t, log)
	start(t, o).awaitReady().await(log)
	t.Logf("%+v", check(t, o.File, log))
}

// check fails the test for every difference between the views and the log.
func check(t testing.TB, file string, log events.Log) CheckReport {
	t.Helper()
	n := 0
	report, err := Check(t.Context(), CheckOptions{File: file, Log: log, Settle: patience / 3}, func(d Difference) {
		if n++; n <= 20 {
			t.Error(d)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
