package bus

import (
	"context"
	"fmt"
	"strconv"
)

// ID tells this log from that of any other installation: the same for every
// process that uses it, at every start, and in a copy of the server's folder. It
// is "" before the first log that writes has made its bucket, and another one
// where the server's folder was emptied.
//
// It is the moment in which the server made the bucket of tombstones, to the
// nanosecond. Nothing has to be written for it, so two engines that start at the
// same time cannot disagree, and older installations have one, too.
func (l *JetStreamLog) ID(ctx context.Context) (string, error) {
	info, err := l.api.streamInfo(ctx, "KV_"+tombstoneBucket)
	switch {
	case errCode(err) == codeStreamNotFound:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("identity of the log: %w", err)
	}
	return strconv.FormatInt(info.Created.UnixNano(), 36), nil
}
