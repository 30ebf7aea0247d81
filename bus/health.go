package bus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"culm/events"
)

// Healthy is nil while the server can store; else it wraps
// events.ErrUnavailable and says what to do. It costs one atomic load.
//
// A failed write (disk full, no descriptors) freezes a stream, or all of
// JetStream, until the server restarts, and clients would see timeouts only.
// The watch notices it within two health intervals of the message that met it,
// or within twenty seconds where no client sent one, and restarts the server by
// itself once a probe file can be written again.
func (s *Server) Healthy() error {
	if p := s.health.Load(); p != nil {
		return *p
	}
	return nil
}

// watch polls the server's health until ctx ends.
func (s *Server) watch(ctx context.Context) {
	defer close(s.done)
	var w healthWatch
	timer := time.NewTimer(s.opts.HealthInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.check(ctx, &w)
		// With many streams a look takes long; keep it at a hundredth of the time.
		timer.Reset(max(s.opts.HealthInterval, min(100*w.took, maxHealthInterval)))
	}
}

const (
	maxHealthInterval = 20 * time.Second
	// looksAfter a message: what it was stored in is written to the disk later.
	looksAfter = 2
)

// healthWatch is what one check leaves for the next.
type healthWatch struct {
	took     time.Duration  // time for the server to look at its streams, see spent
	looked   time.Time      // when it last did
	received uint64         // messages by then
	owed     int            // looks until the server counts as unused
	missing  map[string]int // streams not found, by how many checks in a row
	wait     int            // checks to pass before the next restart
	restarts int            // since the server was last well
}

func (s *Server) check(ctx context.Context, w *healthWatch) {
	if ctx.Err() != nil {
		return
	}
	fault := "it did not start again"
	if ns := s.ns.Load(); ns != nil {
		if s.health.Load() == nil && w.unused(ns) {
			return
		}
		w.looked = time.Now()
		h := patiently(func() *server.HealthStatus { return ns.Healthz(&server.HealthzOptions{Details: true}) })
		w.spent(time.Since(w.looked))
		fault = w.judge(h, s.log)
	}
	if fault == "" {
		s.health.Store(nil)
		w.restarts, w.wait = 0, 0
		return
	}
	err := fmt.Errorf("%w: the server can not store (%s): free disk space or descriptors; it restarts by itself then", events.ErrUnavailable, fault)
	if s.health.Swap(&err) == nil {
		s.log.Error("server can not store", "err", err)
	}
	if w.wait--; w.wait > 0 || s.probe() != nil {
		return
	}
	w.restarts++
	w.wait = 1 << min(w.restarts, 8)
	s.log.Warn("restarting the embedded server", "fault", fault)
	if err := s.restart(ctx); err != nil {
		s.log.Error("restart of the embedded server", "err", err)
	}
}

// patiently asks for the server's health. Before anything else the server gives
// its listeners a millisecond to be there, and where the machine is busy that may
// have gone before it came to look: this says nothing unless it lasts.
func patiently(ask func() *server.HealthStatus) *server.HealthStatus {
	for pause := time.Millisecond; ; pause *= 2 {
		h := ask()
		listens := !slices.ContainsFunc(h.Errors, func(e server.HealthzError) bool { return e.Type == server.HealthzErrorConn })
		if listens || pause > 256*time.Millisecond {
			return h
		}
		time.Sleep(pause)
	}
}

// spent notes what a look took. One that had to wait for something else must not
// put the next off by a hundred times as long, so took grows step by step only.
func (w *healthWatch) spent(took time.Duration) {
	w.took = min(took, 2*w.took+time.Millisecond)
}

// unused says that a look would find a server that was well as well as before:
// no client has sent a message that it could have failed to store.
func (w *healthWatch) unused(ns *server.Server) bool {
	received, err := received(ns)
	if err != nil || received != w.received || !ns.JetStreamEnabled() || len(w.missing) > 0 {
		w.received, w.owed = received, looksAfter
	}
	w.owed--
	return w.owed < 0 && time.Since(w.looked) < maxHealthInterval
}

// received is how many messages clients have sent to the server.
func received(ns *server.Server) (uint64, error) {
	all, err := ns.AccountStatz(&server.AccountStatzOptions{IncludeUnused: true})
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, a := range all.Accounts {
		sum += a.Received.Msgs
	}
	return uint64(sum), nil //nolint:gosec // a count
}

// judge names the fault that keeps the server from storing, or "". A stream
// that could not be recovered is its own session's trouble, and is reported
// also while it is being made or deleted: it is logged, once, when it lasts.
func (w *healthWatch) judge(h *server.HealthStatus, log *slog.Logger) string {
	missing := map[string]int{}
	var fault string
	for _, e := range h.Errors {
		if e.Type != server.HealthzErrorStream || !strings.Contains(e.Error, "could not be recovered") {
			fault = e.Error
			continue
		}
		if missing[e.Stream] = w.missing[e.Stream] + 1; missing[e.Stream] == 3 {
			log.Error("stream not recovered", "stream", e.Stream, "err", e.Error)
		}
	}
	w.missing = missing
	return fault
}

// probe reports whether the data folder takes new files again. It writes as
// much as a few stream buffers, so that a nearly full disk does not pass.
func (s *Server) probe() error {
	if err := CheckDescriptors(); err != nil {
		return err
	}
	name := filepath.Join(s.opts.DataDir, "probe.tmp")
	err := os.WriteFile(name, make([]byte, 4<<20), 0o600)
	if rmErr := os.Remove(name); err == nil {
		err = rmErr
	}
	return err
}

// restart ends the server and runs it again on the same address; connections
// of Connect find it again by themselves.
func (s *Server) restart(ctx context.Context) error {
	if err := shutdown(s.ns.Swap(nil)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.start()
}

// serverLogger passes the server's log on and remembers a fatal message, on
// which the server itself just goes on in an unusable state.
type serverLogger struct {
	log   *slog.Logger
	fatal *atomic.Pointer[string]
}

func (l serverLogger) Noticef(format string, v ...any) { l.put(slog.LevelDebug, format, v) }
func (l serverLogger) Warnf(format string, v ...any)   { l.put(slog.LevelWarn, format, v) }
func (l serverLogger) Errorf(format string, v ...any)  { l.put(slog.LevelError, format, v) }
func (l serverLogger) Debugf(string, ...any)           {}
func (l serverLogger) Tracef(string, ...any)           {}
func (l serverLogger) Fatalf(format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &msg)
	l.put(slog.LevelError, format, v)
}

func (l serverLogger) put(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, v...), "from", "nats-server")
	}
}
