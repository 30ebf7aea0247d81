package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"culm/bus"
	"culm/internal/engine"
	"culm/provider"
	"culm/tool"
)

// syncTime is the median time of an fdatasync after a write of 4 KiB.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	var took []time.Duration
	block := make([]byte, 4096)
	for range 200 {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	return median(took), nil
}

// cpuTime is what this process has used so far, in user and system mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer func() { _ = f.Close() }()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if name, ok := strings.CutPrefix(sc.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return "unknown CPU"
}

// rawServer is a NATS server without an engine.
func rawServer(o options, sync bus.SyncMode) (*bus.Server, error) {
	dir, err := os.MkdirTemp(o.dir, "raw-")
	if err != nil {
		return nil, err
	}
	return bus.StartServer(bus.ServerOptions{DataDir: dir, Listen: "127.0.0.1:0", Sync: sync})
}

// rawStreams makes one stream for each session, as an engine lays them out but
// without republishing.
func rawStreams(ctx context.Context, nc *nats.Conn, prefix string, n int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for i := range n {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{
			Name: fmt.Sprintf("RAW_%s_%d", prefix, i), Subjects: []string{fmt.Sprintf("raw.%s.%d.>", prefix, i)},
			Storage: jetstream.FileStorage, DenyDelete: true, DenyPurge: true, Duplicates: 100 * time.Millisecond,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// running is an engine inside this process.
type running struct {
	url  string
	stop func() error
}

// startEngine runs an engine and returns once it is ready.
func startEngine(ctx context.Context, o options, sync bus.SyncMode, live map[string]provider.Provider) (*running, error) {
	return startEngineWith(ctx, o, sync, live, nil)
}

func startEngineWith(ctx context.Context, o options, sync bus.SyncMode, live map[string]provider.Provider, tools tool.Tools) (*running, error) {
	dir, err := os.MkdirTemp(o.dir, "engine-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := engine.Run(ctx, engine.Config{
			Listen: "127.0.0.1:0", Data: filepath.Join(dir, "data"), Sync: string(sync), NoRunner: live == nil, NoProjector: true, Live: live, Tools: tools, Sessions: 256,
		}, w)
		_ = w.CloseWithError(err)
		done <- err
	}()
	e := &running{stop: func() error { cancel(); return <-done }}
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		if url, ok := strings.CutPrefix(sc.Text(), "nats: "); ok {
			e.url = url
		}
		if sc.Text() == "ready" {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return e, nil
		}
	}
	cancel()
	return nil, fmt.Errorf("engine did not start: %w", <-done)
}
