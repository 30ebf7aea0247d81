package projection

import (
	"context"
	"sync"
	"time"
)

// position is up to where a session is in the views.
type position struct {
	seq   uint64
	stuck string // why it does not move on, "" if it does
}

// positions lets queries wait until a session has reached a sequence.
type positions struct {
	mu      sync.Mutex
	at      map[string]position
	waiting map[string]chan struct{} // closed when the session moves
}

func (p *positions) init() {
	p.at, p.waiting = map[string]position{}, map[string]chan struct{}{}
}

// set tells where a session is now; a zero position is none.
func (p *positions) set(session string, now position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now == (position{}) {
		delete(p.at, session)
	} else {
		p.at[session] = now
	}
	if c := p.waiting[session]; c != nil {
		close(c)
		delete(p.waiting, session)
	}
}

// get returns where the session is, and what is closed when it moves.
func (p *positions) get(session string) (position, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.waiting[session]
	if c == nil {
		c = make(chan struct{})
		p.waiting[session] = c
	}
	return p.at[session], c
}

// Wait lets a query read what its caller has written: it is answered when the
// views hold the sessions up to the sequences, or not_yet.
type Wait struct {
	MinSequence map[string]uint64 `json:"min_sequence,omitzero"` // by session
	WaitMS      *int64            `json:"wait_ms,omitzero"`      // at most this long; 2000 if absent
}

// Bounds of a Wait.
const (
	defaultWait = 2 * time.Second
	maxWait     = 60 * time.Second
	maxWaitFor  = 100 // sessions
)

// for waits as asked. It returns not_yet after the time, or at once for a
// session that is stuck before its sequence.
func (w *Wait) until(ctx context.Context, p *positions) error {
	if len(w.MinSequence) == 0 {
		return nil
	}
	if len(w.MinSequence) > maxWaitFor {
		return invalid("min_sequence names %d sessions, at most %d", len(w.MinSequence), maxWaitFor)
	}
	limit := defaultWait
	if w.WaitMS != nil {
		if limit = time.Duration(*w.WaitMS) * time.Millisecond; *w.WaitMS < 0 || *w.WaitMS > maxWait.Milliseconds() {
			return invalid("wait_ms is %d, allowed are 0 to %d", *w.WaitMS, maxWait.Milliseconds())
		}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for session, seq := range w.MinSequence {
		for {
			at, moved := p.get(session)
			if at.seq >= seq {
				break
			}
			notYet := &Error{Code: CodeNotYet, Message: "the views are not there yet", Details: map[string]any{"session": session, "sequence": at.seq}}
			if at.stuck != "" {
				notYet.Message = "the session is stuck: " + at.stuck
				return notYet
			}
			select {
			case <-moved:
				continue
			case <-timer.C:
				return notYet
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
