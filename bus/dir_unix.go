//go:build unix

package bus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirLock holds a data folder for this process. The kernel gives it free when
// the process ends, however it ends.
type dirLock struct{ f *os.File }

// lockDir takes the folder or returns ErrDataInUse at once.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "culm.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		pid := make([]byte, 16)
		n, _ := f.Read(pid)
		return nil, fmt.Errorf("%w: %s (process %s)", ErrDataInUse, dir, strings.TrimSpace(string(pid[:n])))
	}
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder %s: %w", dir, err), f.Close())
	}
	return &dirLock{f: f}, nil
}

func (l *dirLock) release() error { return l.f.Close() }

// raiseDescriptorLimit lifts the soft limit to the hard one.
func raiseDescriptorLimit() error {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return err
	}
	if lim.Cur >= lim.Max {
		return nil
	}
	lim.Cur = lim.Max
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
}

// countDescriptors is the number of open descriptors and the most that may be open.
func countDescriptors() (open, limit int, err error) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 0, 0, err
	}
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return 0, 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, 0, err
	}
	return len(names), int(min(uint64(lim.Cur), 1<<30)), nil //nolint:unconvert // signed on some systems
}

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
