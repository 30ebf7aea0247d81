//go:build !unix

package bus

import (
	"errors"
	"strings"
)

// dirLock does nothing here: the operator sees to it that one engine uses a
// data folder.
type dirLock struct{}

func lockDir(string) (*dirLock, error) { return &dirLock{}, nil }

func (*dirLock) release() error { return nil }

func raiseDescriptorLimit() error { return nil }

func countDescriptors() (open, limit int, err error) {
	return 0, 0, errors.ErrUnsupported
}

func isAddrInUse(err error) bool { return err != nil && strings.Contains(err.Error(), "in use") }
