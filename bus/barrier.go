package bus

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"culm/events"
)

// SyncBarrier is an events.Barrier over one sync function: all tickets that
// wait when a sync begins share it.
//
// Syncs are numbered from 1. A ticket is the number of the next sync to begin,
// so a sync that runs while Mark is called never counts for it. At most one
// sync runs at a time. A sync that failed is final: the kernel may have thrown
// away what it could not write, so a later success would prove nothing. Every
// ticket not covered by then gets the error, and Failed is closed.
type SyncBarrier struct {
	sync func() error

	mu      sync.Mutex
	wake    *sync.Cond
	begun   uint64 // number of the newest sync that began
	ended   uint64 // number of the newest sync that ended well
	waiting []waiter
	err     error // ends all syncs
	closing bool

	calls  callQueue
	failed chan struct{}
	done   sync.WaitGroup
	free   func() error
}

type waiter struct {
	ticket uint64
	done   func(error)
}

var _ events.Barrier = (*SyncBarrier)(nil)

// errUnanswered marks a sync whose outcome is unknown; those that waited for it
// get it, the next sync may succeed.
var errUnanswered = errors.New("no answer")

var errBarrierClosed = fmt.Errorf("%w: the engine is stopping", events.ErrUnavailable)

// NewSyncfsBarrier shares syncs of the whole file system that dir lies on. Open
// it before the first write to dir, so that no write error can slip by.
func NewSyncfsBarrier(dir string) (*SyncBarrier, error) {
	syncfs, free, err := openSyncfs(dir)
	if err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	b := NewSyncBarrier(syncfs)
	b.free = free
	return b, nil
}

// NewSyncBarrier shares calls of syncAll, which must return only when everything
// written before its call is durable.
func NewSyncBarrier(syncAll func() error) *SyncBarrier {
	b := &SyncBarrier{sync: syncAll, failed: make(chan struct{}), free: func() error { return nil }}
	b.wake = sync.NewCond(&b.mu)
	b.calls.init()
	b.done.Go(b.run)
	b.done.Go(b.calls.run)
	return b
}

// Mark implements events.Barrier.
func (b *SyncBarrier) Mark() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun + 1
}

// Then implements events.Barrier. After Close it gives ErrUnavailable.
func (b *SyncBarrier) Then(ticket uint64, done func(error)) {
	b.mu.Lock()
	switch {
	case ticket <= b.ended:
		b.mu.Unlock()
		done(nil)
		return
	case b.err != nil:
		err := b.err
		b.mu.Unlock()
		go done(err)
		return
	}
	b.waiting = append(b.waiting, waiter{ticket: ticket, done: done})
	b.wake.Signal()
	b.mu.Unlock()
}

// Failed is closed when a sync has failed: the engine must stop.
func (b *SyncBarrier) Failed() <-chan struct{} { return b.failed }

// Err is what ended all syncs, or nil.
func (b *SyncBarrier) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Close ends the barrier: those who wait are served by a last sync. It returns
// when all of them have been called.
func (b *SyncBarrier) Close() error {
	b.mu.Lock()
	again := b.closing
	b.closing = true
	b.wake.Signal()
	b.mu.Unlock()
	b.done.Wait()
	if again {
		return nil
	}
	return b.free()
}

// run syncs as long as somebody waits.
func (b *SyncBarrier) run() {
	defer b.calls.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil {
		if len(b.waiting) == 0 {
			if b.closing {
				b.err = errBarrierClosed
				return
			}
			b.wake.Wait()
			continue
		}
		b.begun++
		b.mu.Unlock()
		err := b.sync()
		b.mu.Lock()
		b.finish(err)
	}
}

// finish settles the sync that just ended; mu is held.
func (b *SyncBarrier) finish(err error) {
	upTo := b.begun // tickets that are settled now
	switch {
	case err == nil:
		b.ended = b.begun
	case errors.Is(err, errUnanswered):
		err = fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	default:
		err = fmt.Errorf("%w: sync of the data folder, restart the engine when its cause is gone: %w", events.ErrUnavailable, err)
		b.err, upTo = err, math.MaxUint64
		close(b.failed)
	}
	kept := b.waiting[:0]
	for _, w := range b.waiting {
		if w.ticket <= upTo {
			b.calls.put(call{w.done, err})
		} else {
			kept = append(kept, w)
		}
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
}

// NopBarrier is an events.Barrier for a server that syncs by itself before it
// acknowledges (always), or that is not to be waited for (none).
type NopBarrier struct{}

var _ events.Barrier = NopBarrier{}

// Mark implements events.Barrier.
func (NopBarrier) Mark() uint64 { return 0 }

// Then implements events.Barrier; done has been called when it returns.
func (NopBarrier) Then(_ uint64, done func(error)) { done(nil) }

// isBarrierClosed tells a stopping engine from a failed disk.
func isBarrierClosed(err error) bool { return errors.Is(err, errBarrierClosed) }
