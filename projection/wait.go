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
	waiting map[string]*waiters
}

// waiters are n queries that wait for a session; moved is closed when it moves.
type waiters struct {
	moved chan struct{}
	n     int
}

func (p *positions) init() {
	p.at, p.waiting = map[string]position{}, map[string]*waiters{}
}

// replace tells where all sessions are now, in another database.
func (p *positions) replace(now map[string]position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = now
	for session, w := range p.waiting {
		close(w.moved)
		delete(p.waiting, session)
	}
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
	if w := p.waiting[session]; w != nil {
		close(w.moved)
		delete(p.waiting, session)
	}
}

// await returns where the session is and, if that is before seq and it moves,
// what is closed when it does; the caller gives that back with leave.
func (p *positions) await(session string, seq uint64) (position, *waiters) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.at[session]
	if at.seq >= seq || at.stuck != "" {
		return at, nil
	}
	w := p.waiting[session]
	if w == nil {
		w = &waiters{moved: make(chan struct{})}
		p.waiting[session] = w
	}
	w.n++
	return at, w
}

// leave forgets who waits for a session when nobody does: its name came from a
// client, and there may be no such session.
func (p *positions) leave(session string, w *waiters) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.n--; w.n == 0 && p.waiting[session] == w {
		delete(p.waiting, session)
	}
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

// reached says whether nothing is to be waited for any more.
func (w *Wait) reached(p *positions) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for session, seq := range w.MinSequence {
		if p.at[session].seq < seq {
			return false
		}
	}
	return true
}

// until waits as asked. It returns not_yet after the time, or at once for a
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
		if err := p.reach(ctx, session, seq, timer.C); err != nil {
			return err
		}
	}
	return nil
}

// reach waits until the views have the session up to seq, or time comes.
func (p *positions) reach(ctx context.Context, session string, seq uint64, end <-chan time.Time) error {
	for {
		at, w := p.await(session, seq)
		if at.seq >= seq {
			return nil
		}
		notYet := &Error{Code: CodeNotYet, Message: "the views are not there yet", Details: map[string]any{"session": session, "sequence": at.seq}}
		if w == nil {
			notYet.Message = "the session is stuck: " + at.stuck
			return notYet
		}
		var err error
		select {
		case <-w.moved:
		case <-end:
			err = notYet
		case <-ctx.Done():
			err = ctx.Err()
		}
		if p.leave(session, w); err != nil {
			return err
		}
	}
}
