package bus

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"culm/events"
)

func startServer(t testing.TB, opts ServerOptions) *Server {
	t.Helper()
	if opts.DataDir == "" {
		opts.DataDir = t.TempDir()
	}
	s, err := StartServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connectTo(t testing.TB, s *Server) *nats.Conn {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func embeddedLog(t testing.TB, s *Server) *JetStreamLog {
	t.Helper()
	l, err := NewJetStreamLog(inTime(t), connectTo(t, s), LogOptions{Health: s.Healthy, Embedded: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestServer_keeps_the_log_over_a_restart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	s := startServer(t, ServerOptions{DataDir: dir})
	fillLog(t, embeddedLog(t, s), "s", 5)
	if s.Sync() != DefaultSync() {
		t.Errorf("Sync() = %s", s.Sync())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	again := startServer(t, ServerOptions{DataDir: dir})
	if last, err := embeddedLog(t, again).Last(t.Context(), "s"); err != nil || last != 5 {
		t.Errorf("Last = %d, %v; want 5", last, err)
	}
}

func TestServer_listens_for_clients(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{Listen: "127.0.0.1:0", MaxPayload: 2 << 20})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if nc.MaxPayload() != 2<<20 {
		t.Errorf("MaxPayload() = %d", nc.MaxPayload())
	}
}

func TestStartServer_refusals(t *testing.T) {
	t.Parallel()
	t.Run("data folder in use", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		first := startServer(t, ServerOptions{DataDir: dir})
		if _, err := StartServer(ServerOptions{DataDir: dir}); !errors.Is(err, ErrDataInUse) || !strings.Contains(err.Error(), dir) {
			t.Errorf("second engine: %v, want ErrDataInUse", err)
		}
		if err := first.Healthy(); err != nil {
			t.Errorf("the first engine: %v", err)
		}
	})
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		dir := t.TempDir()
		if _, err := StartServer(ServerOptions{DataDir: dir, Listen: l.Addr().String()}); !errors.Is(err, ErrPortInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("StartServer: %v, want ErrPortInUse", err)
		}
		// The folder is free again.
		startServer(t, ServerOptions{DataDir: dir})
	})
	for name, opts := range map[string]ServerOptions{
		"no data folder":    {},
		"bad address":       {DataDir: "x", Listen: "nowhere"},
		"bad port":          {DataDir: "x", Listen: "127.0.0.1:99999"},
		"unknown sync mode": {DataDir: "x", Sync: "sometimes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if opts.DataDir != "" {
				opts.DataDir = t.TempDir()
			}
			if s, err := StartServer(opts); err == nil {
				t.Errorf("started")
				_ = s.Close()
			}
		})
	}
	t.Run("data folder is a file", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := StartServer(ServerOptions{DataDir: file}); err == nil {
			t.Error("started")
		}
	})
}

// A stream that can not be written any more makes the server unhealthy; when
// the cause is gone it restarts by itself, and nothing is lost.
func TestServer_heals_after_a_write_error(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{HealthInterval: 20 * time.Millisecond})
	l := embeddedLog(t, s)
	fillLog(t, l, "s", 3)
	// What a full disk does: the server shuts JetStream down.
	if err := s.ns.Load().ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	// The append waits out the restart or is refused; it never half succeeds.
	for end := time.Now().Add(testPatience); ; {
		err := l.Append(t.Context(), "s", 3, noted, []byte(`{"n":4}`))
		if err == nil {
			break
		}
		if !errors.Is(err, events.ErrUnavailable) || time.Now().After(end) {
			t.Fatalf("Append: %v", err)
		}
	}
	if last, err := l.Last(t.Context(), "s"); err != nil || last != 4 {
		t.Errorf("Last = %d, %v; want 4", last, err)
	}
}

func TestHealthWatch_judge(t *testing.T) {
	t.Parallel()
	lost := server.HealthzError{Type: server.HealthzErrorStream, Stream: "SESSION_a", Error: "JetStream stream '$G > SESSION_a' could not be recovered"}
	frozen := server.HealthzError{Type: server.HealthzErrorStream, Stream: "SESSION_b", Error: "JetStream stream '$G > SESSION_b' write error: no space left on device"}
	log := startLogCapture()
	var w healthWatch
	for range 5 {
		if fault := w.judge(&server.HealthStatus{Errors: []server.HealthzError{lost}}, log.Logger); fault != "" {
			t.Errorf("one lost stream: %q", fault)
		}
	}
	if n := log.count("stream not recovered"); n != 1 {
		t.Errorf("logged %d times, want 1", n)
	}
	if fault := w.judge(&server.HealthStatus{Errors: []server.HealthzError{lost, frozen}}, log.Logger); !strings.Contains(fault, "no space") {
		t.Errorf("a frozen stream: %q", fault)
	}
	if fault := w.judge(&server.HealthStatus{}, log.Logger); fault != "" {
		t.Errorf("healthy: %q", fault)
	}
}

// The server must leave standard output to the engine.
func TestServer_prints_nothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = w
	s := startServer(t, ServerOptions{})
	fillLog(t, embeddedLog(t, s), "s", 1)
	err = errors.Join(s.Close(), w.Close())
	os.Stdout = out
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("printed %q, %v", b, err)
	}
}
