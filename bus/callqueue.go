package bus

import "sync"

// call is a callback and what it is called with.
type call struct {
	done func(error)
	err  error
}

// callQueue runs callbacks in order on a goroutine of its own, so that who
// puts them there (with locks held) never waits for them.
type callQueue struct {
	mu     sync.Mutex
	wake   *sync.Cond
	calls  []call
	closed bool
}

func (q *callQueue) init() { q.wake = sync.NewCond(&q.mu) }

func (q *callQueue) put(c call) {
	q.mu.Lock()
	q.calls = append(q.calls, c)
	q.wake.Signal()
	q.mu.Unlock()
}

// close lets run return when it has called everything.
func (q *callQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.wake.Signal()
	q.mu.Unlock()
}

func (q *callQueue) run() {
	var batch []call
	for {
		q.mu.Lock()
		for len(q.calls) == 0 && !q.closed {
			q.wake.Wait()
		}
		batch, q.calls = q.calls, batch[:0]
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, c := range batch {
			c.done(c.err)
		}
		clear(batch)
	}
}
