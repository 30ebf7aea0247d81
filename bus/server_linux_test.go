package bus

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"culm/events"
)

// smallFiles is set for the process of its own that TestServer_full_disk needs
// where mounts are not permitted: a limit to the size of files holds for all of a
// process.
const smallFiles = "CULM_TEST_SMALL_FILES"

// TestServer_full_disk fills a file system of its own; where mounts are not
// permitted, files may not grow, which the server meets as the same write error.
func TestServer_full_disk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	child := os.Getenv(smallFiles) != ""
	if !child && unix.Mount("tmpfs", disk, "tmpfs", 0, "size=48m") == nil {
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
		ballast := filepath.Join(disk, "ballast")
		fullDisk(t, disk, func() error { return os.WriteFile(ballast, make([]byte, 40<<20), 0o600) }, func() error { return os.Remove(ballast) })
		return
	}
	if child {
		limit := func(bytes uint64) error {
			return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY})
		}
		fullDisk(t, disk, func() error { return limit(4 << 10) }, func() error { return limit(unix.RLIM_INFINITY) })
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServer_full_disk$", "-test.count=1") //nolint:gosec // this test
	again.Env = append(os.Environ(), smallFiles+"=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
}

// fullDisk: appends are refused with ErrUnavailable soon and say why, and
// succeed again when there is room, without a restart of the engine. What was
// acknowledged is there.
func fullDisk(t *testing.T, disk string, fill, free func() error) {
	t.Helper()
	s := startServer(t, ServerOptions{DataDir: filepath.Join(disk, "data"), HealthInterval: 20 * time.Millisecond})
	l := embeddedLog(t, s)
	if _, err := l.Create(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := fill(); err != nil {
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
	if err := free(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
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
