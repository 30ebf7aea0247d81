package projection

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/internal/natstest"
)

// Settings of the child process of TestCrash.
const (
	childURL  = "CULM_TEST_CHILD_URL"
	childFile = "CULM_TEST_CHILD_FILE"
	childSeed = "CULM_TEST_CHILD_SEED"
)

// TestMain is also the process that TestCrash kills.
func TestMain(m *testing.M) {
	if os.Getenv(childURL) == "" {
		os.Exit(m.Run())
	}
	if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild is a projector over a feed that loses, doubles and delays.
func runChild() error {
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	nc, err := connectTest(os.Getenv(childURL))
	if err != nil {
		return err
	}
	defer nc.Close()
	log, err := bus.NewJetStreamLog(ctx, nc, bus.LogOptions{})
	if err != nil {
		return err
	}
	p, err := Open(ctx, Options{
		File: os.Getenv(childFile), Log: log, Feed: faultyFeed{Feed: bus.NewFeed(nc, log, bus.FeedOptions{}), seed: seed, drop: 5, double: 5, delays: 5},
		Sweep: 100 * time.Millisecond, BatchEvents: 50,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	go func() {
		<-p.Ready()
		fmt.Println("ready")
	}()
	return errors.Join(p.Run(ctx), p.Close())
}

// child starts runChild in a process of its own; ready is closed when it has caught up.
func child(t *testing.T, url, file string, seed int) (cmd *exec.Cmd, ready chan struct{}) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childFile+"="+file, childSeed+"="+strconv.Itoa(seed))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready = make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "ready" {
				close(ready)
			}
		}
	}()
	return cmd, ready
}

func busLog(t testing.TB, url string) (*bus.JetStreamLog, *bus.Feed) {
	t.Helper()
	nc, err := connectTest(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	log, err := bus.NewJetStreamLog(t.Context(), nc, bus.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return log, bus.NewFeed(nc, log, bus.FeedOptions{})
}

// TestCrash kills a projector at random points while events come, CULM_CRASHES
// times over many sessions, a few times over a few otherwise. The views then
// are what the log says.
func TestCrash(t *testing.T) {
	t.Parallel()
	crashes, sessions, eventCount := 5, 20, 1000
	if n, err := strconv.Atoi(os.Getenv("CULM_CRASHES")); err == nil {
		crashes, sessions, eventCount = n, 1000, 200_000
	}
	server := natstest.Start(t, nil)
	log, _ := busLog(t, server.ClientURL())
	file := filepath.Join(t.TempDir(), "views.db")
	h := newHistory(t, log, 71)
	for i := range crashes {
		cmd, ready := child(t, server.ClientURL(), file, i)
		if h.chance(50) { // else it is killed in the middle of its start
			within(t, ready, "the child is not ready")
		}
		h.run(sessions, h.Events+1+h.random.IntN(2*eventCount/crashes))
		_ = cmd.Process.Kill() // it may have ended
		if err := cmd.Wait(); err == nil {
			t.Error("the child was not killed")
		}
	}
	cmd, ready := child(t, server.ClientURL(), file, crashes)
	within(t, ready, "the child is not ready")
	h.run(sessions, h.Events+100)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	cmd, ready = child(t, server.ClientURL(), file, crashes)
	within(t, ready, "the child is not ready")
	report := check(t, file, log)
	t.Logf("%d crashes, %+v", crashes, report)
	if report.Behind > 0 {
		t.Error("behind after a start")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func connectTest(url string) (*nats.Conn, error) {
	return nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.Timeout(patience/4))
}
