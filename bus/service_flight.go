package bus

import (
	"context"
	"sync/atomic"
)

// flight counts what was handed over and not answered.
type flight struct {
	maxRequests, maxBytes int64
	requests, bytes       atomic.Int64
	waiting               atomic.Bool
	idle                  chan struct{} // of one: the count fell to 0 while somebody waits
}

func (f *flight) init(requests int, bytes, greatest int64) {
	f.maxRequests, f.maxBytes = int64(requests), bytes
	if requests <= 0 {
		f.maxRequests = defaultInFlight
	}
	if bytes <= 0 {
		f.maxBytes = defaultInFlightBytes
	}
	f.maxBytes = max(f.maxBytes, greatest)
	f.idle = make(chan struct{}, 1)
}

// take reports whether there is room for a request of size bytes; if so, the
// caller owes one give.
func (f *flight) take(size int64) bool {
	n, b := f.requests.Add(1), f.bytes.Add(size)
	if n <= f.maxRequests && b <= f.maxBytes {
		return true
	}
	f.give(size)
	return false
}

func (f *flight) give(size int64) {
	f.bytes.Add(-size)
	if f.requests.Add(-1) == 0 && f.waiting.Load() {
		select {
		case f.idle <- struct{}{}:
		default:
		}
	}
}

// wait returns nil once nothing is in flight, or why it stopped waiting. The
// caller has seen to it that nothing is taken any more.
func (f *flight) wait(ctx context.Context) error {
	f.waiting.Store(true)
	for f.requests.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.idle:
		}
	}
	return nil
}
