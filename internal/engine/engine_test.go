package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/internal/config"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// lines takes what an engine prints, and gives on the URL of its server when it
// is ready.
type lines struct{ ready chan string }

func (l lines) Write(b []byte) (int, error) {
	if said, ready := strings.CutSuffix(string(b), "\nready\n"); ready {
		l.ready <- strings.TrimPrefix(said, "nats: ")
	}
	return len(b), nil
}

// TestRun: from start to graceful stop, and once more on the same data. Queries
// are answered once it is ready, and the log says how to open the page.
func TestRun(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: t.TempDir(), HTTP: "127.0.0.1:0", Sync: "none"}
	for range 2 {
		var log strings.Builder // of one handler at a time, which locks
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		ctx, stop := context.WithCancel(t.Context())
		out, ended := lines{make(chan string, 1)}, make(chan error, 1)
		go func() { ended <- Run(ctx, cfg, out) }()
		select {
		case url := <-out.ready:
			wantViews(t, url)
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(patience):
			t.Fatal("it is not ready")
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		_, url, _ := strings.Cut(log.String(), "msg=page url=http://")
		address, how, _ := strings.Cut(url, "/ ")
		if how, _, _ = strings.Cut(how, "\n"); how != `with_token="culm page --http `+address+` --data `+cfg.Data+`"` {
			t.Errorf("the page at %s is opened by %s", address, how)
		}
	}
}

func wantViews(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(patience))
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	reply, err := nc.Request("agent.query.sessions.list", []byte(`{"wait_ms":60000}`), patience)
	if err != nil {
		t.Errorf("queries when it is ready: %v", err)
	} else if !strings.HasPrefix(string(reply.Data), `{"ok":true`) {
		t.Errorf("queries when it is ready: %s", reply.Data)
	}
}

// full refuses to print.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestRun_WhatDoesNotStartEndsTheRest: a part that cannot start is an error, the
// parts that had started have ended when Run returns: the folder is free again.
func TestRun_WhatDoesNotStartEndsTheRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := Config{Data: dir, Sync: "none", HTTP: "127.0.0.1:0", Rules: config.Rules{Providers: []config.Provider{{ID: "a", Type: "recorded", Enabled: true, File: "/nowhere"}}}}
	if err := Run(t.Context(), bad, io.Discard); err == nil || !strings.Contains(err.Error(), "provider a") {
		t.Errorf("without its recording: %v", err)
	}
	if err := Run(t.Context(), Config{Data: dir, Sync: "none"}, full{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("without standard output: %v", err)
	}
}

// TestTogether: it waits for every part, whatever ended them, and says why.
func TestTogether(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		begin, part error // what they return; a nil part waits for the end
		stop        bool
	}{
		"asked to end":                        {stop: true},
		"a part fails":                        {part: broken},
		"one does not start, others have":     {begin: broken},
		"the end is asked for, one says so":   {part: context.Canceled, stop: true},
		"the end is asked for, and one fails": {part: broken, stop: true},
	} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := false
		err := together(ctx, func(ctx context.Context, g *errgroup.Group) error {
			g.Go(func() error {
				<-ctx.Done()
				ended = true
				return nil
			})
			if c.part != nil {
				g.Go(func() error { return c.part })
			}
			if c.stop {
				stop()
			}
			return c.begin
		})
		if failed := c.begin != nil || c.part == broken; errors.Is(err, broken) != failed || err != nil != failed || !ended { //nolint:errorlint // the very error
			t.Errorf("%s: %v, ended: %t", name, err, ended)
		}
	}
}

// TestWakeUps: which events wake the runner, and that a full channel does not
// outlast the engine.
func TestWakeUps(t *testing.T) {
	t.Parallel()
	w := &wakeUps{names: make(chan string, 8)}
	for name, wakes := range map[string]bool{"run.requested": true, "approval.decided": true, "run.finished": true, "message.submitted": false, "round.started": false} {
		if err := w.event(t.Context(), events.Record{Session: "s", Type: name}); err != nil || (len(w.names) == 1) != wakes {
			t.Errorf("%s: %v, wakes %t", name, err, len(w.names) == 1)
		}
		if wakes {
			<-w.names
		}
	}
	for kind, wakes := range map[aggregate.StepKind]bool{aggregate.StepClaim: true, aggregate.StepNothing: false} {
		w.owed(t.Context(), aggregate.Step{Session: "s", Kind: kind})
		if (len(w.names) == 1) != wakes {
			t.Errorf("step %v wakes %t", kind, !wakes)
		}
		if wakes {
			<-w.names
		}
	}
	blocked := &wakeUps{names: make(chan string)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	blocked.wake(ctx, "s") // returns
}

// TestSnapshot_ProtectsTheDataFolder: what an agent runs may not touch the logs
// and the views, nor read the token by which a person decides.
func TestSnapshot_ProtectsTheDataFolder(t *testing.T) {
	t.Parallel()
	e := &engine{cfg: Config{Data: t.TempDir(), Sync: "none"}, log: slog.New(slog.DiscardHandler)}
	if err := e.cfg.complete(); err != nil {
		t.Fatal(err)
	}
	if err := e.startServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	}()
	c, err := e.snapshot()
	if err != nil || c.LeaseMS != 15000 {
		t.Fatalf("%+v, %v", c, err)
	}
	token := filepath.Join(e.cfg.Data, tokenFile)
	for r, want := range map[policy.Request]string{
		{Type: policy.WriteFile, Resource: filepath.Join(e.server.StoreDir(), "x")}: policy.Deny,
		{Type: policy.WriteFile, Resource: filepath.Join(e.cfg.Data, viewsFile)}:    policy.Deny,
		{Type: policy.Read, Resource: token}:                                        policy.Deny,
		{Type: policy.ExecuteCommand, Resource: "cat " + token}:                     policy.Deny,
		{Type: policy.WriteFile, Resource: filepath.Join(e.cfg.Data, "notes")}:      policy.Allow,
		{Type: policy.Read, Resource: "/elsewhere/x"}:                               policy.Allow,
	} {
		d := policy.Evaluate(policy.Input{Policy: c.Policy, Session: policy.Session{RequestedMode: policy.ModeAuto}, Request: r})
		if d.Decision != want {
			t.Errorf("%+v: %+v, want %s", r, d, want)
		}
	}
}

// TestUnlessCanceled: the end that was asked for is none, anything else is.
func TestUnlessCanceled(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{nil: false, context.Canceled: false, fmt.Errorf("part: %w", context.Canceled): false, io.EOF: true, context.DeadlineExceeded: true} {
		if got := unlessCanceled(err) != nil; got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
