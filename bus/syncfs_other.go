//go:build !linux

package bus

import "errors"

const haveSyncfs = false

func openSyncfs(string) (sync func() error, closeDir func() error, err error) {
	return nil, nil, errors.ErrUnsupported
}
