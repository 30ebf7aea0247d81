package bus

import (
	"fmt"
	"sync"
	"time"

	"culm/events"
)

// descriptorReserve is how many descriptors stay free for streams that exist
// already: a stream that finds none fails for good.
const descriptorReserve = 256

// descriptors remembers a count for a second: counting is a walk over all of
// them.
var descriptors struct {
	sync.Mutex
	at          time.Time
	open, limit int
	err         error
}

// CheckDescriptors returns an error that wraps events.ErrUnavailable when the
// process is so close to its limit of open files that no session should be
// added. Each call counts as one descriptor until the next real count, a
// second later at most. Where descriptors can not be counted it returns nil.
func CheckDescriptors() error {
	open, limit, err := Descriptors()
	if countable := err == nil; !countable || open+max(descriptorReserve, limit/20) < limit {
		return nil
	}
	return fmt.Errorf("%w: %d of %d file descriptors are open: raise the limit (ulimit -n, LimitNOFILE) or delete sessions", events.ErrUnavailable, open, limit)
}

// Descriptors is how many descriptors the process has open (at most a second
// ago, plus one for each call since) and how many it may.
func Descriptors() (open, limit int, err error) {
	d := &descriptors
	d.Lock()
	defer d.Unlock()
	if d.at.IsZero() || time.Since(d.at) > time.Second {
		d.open, d.limit, d.err = countDescriptors()
		d.at = time.Now()
	}
	d.open++
	return d.open, d.limit, d.err
}
