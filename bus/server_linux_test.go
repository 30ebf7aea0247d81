package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"culm/events"
)

// A full disk: appends are refused with ErrUnavailable soon and say why, and
// succeed again when there is room, without a restart of the engine. What was
// acknowledged is there.
func TestServer_full_disk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	s := startServer(t, ServerOptions{DataDir: filepath.Join(disk, "data"), HealthInterval: 20 * time.Millisecond})
	l := embeddedLog(t, s)
	if _, err := l.Create(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 512<<10)
	seq, refused := uint64(0), error(nil)
	for refused == nil && seq < 100 {
		if refused = l.Append(t.Context(), "s", seq, noted, payload); refused == nil {
			seq++
		}
	}
	if !errors.Is(refused, events.ErrUnavailable) {
		t.Fatalf("append %d on a full disk: %v, want ErrUnavailable", seq, refused)
	}
	t.Logf("after %d appends: %v", seq, refused)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := l.Append(ctx, "s", seq, noted, payload)
		if err == nil {
			break
		}
		if !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil {
			t.Fatalf("append %d with room again: %v", seq, err)
		}
		time.Sleep(10 * time.Millisecond) // a refusal comes at once
	}
	if last, err := l.Last(t.Context(), "s"); err != nil || last != seq+1 {
		t.Errorf("Last = %d, %v; want %d", last, err, seq+1)
	}
}
