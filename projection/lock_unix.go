//go:build unix

package projection

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// fileLock is held by the process that writes; it ends with the process,
// however that ends.
type fileLock struct{ file *os.File }

// lockFile returns ErrLocked if another process, or this one, holds the lock.
func lockFile(name string) (*fileLock, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (%s is locked)", ErrLocked, name)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return &fileLock{f}, nil
}

func (l *fileLock) release() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
