package bus

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const haveSyncfs = true

// openSyncfs returns a function that writes everything of dir's file system to
// disk and reports write errors since the call of openSyncfs (Linux 5.8 and
// newer), and one that gives the folder free.
func openSyncfs(dir string) (sync func() error, closeDir func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open data folder: %w", err)
	}
	fd := int(f.Fd())
	sync = func() error {
		for {
			if err := unix.Syncfs(fd); err != unix.EINTR {
				return err
			}
		}
	}
	return sync, f.Close, nil
}
