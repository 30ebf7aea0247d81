package bus

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

const (
	maxLaterSessions = 100_000 // hints beyond are forgotten; the server repeats them
	laterBackoffBase = 50 * time.Millisecond
	laterBackoffMax  = 10 * time.Second
)

// laterKey names what is handled in order: a session, or, for a subject that
// SessionLater would not find, "#" and the sequence of the single message.
func laterKey(s Subjects, subject string, seq uint64) string {
	if _, session, name := s.split(kindLater, subject); ValidToken(session) && name != "" {
		return session
	}
	return "#" + strconv.FormatUint(seq, 10)
}

// laterVerdict says what to do with a session after a turn.
type laterVerdict int

const (
	laterIdle  laterVerdict = iota // nothing was left in the stream
	laterMore                      // there may be more: let others have a turn first
	laterAgain                     // could not be handled now: again after a pause
)

// laterQueue says which session has the next turn. A session is in it while it
// may have messages in the stream; one that waits for another attempt takes no
// worker. Safe for concurrent use.
type laterQueue struct {
	mu       sync.Mutex
	filled   sync.Cond
	sessions map[string]*laterSession
	ready    []string
	closed   bool
}

type laterSession struct {
	failures int    // in a row
	hinted   bool   // something came since the turn began
	told     string // identity of the message whose refusal was told and that may still be there
}

func newLaterQueue() *laterQueue {
	q := &laterQueue{sessions: map[string]*laterSession{}}
	q.filled.L = &q.mu
	return q
}

// wake notes that the session has a message in the stream.
func (q *laterQueue) wake(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, found := q.sessions[session]; found {
		s.hinted = true
		return
	}
	if len(q.sessions) >= maxLaterSessions {
		return
	}
	q.sessions[session] = &laterSession{}
	q.push(session)
}

func (q *laterQueue) push(session string) {
	q.ready = append(q.ready, session)
	q.filled.Signal()
}

// next waits for a session to have its turn; ok is false once it is closed.
func (q *laterQueue) next() (session string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready) == 0 && !q.closed {
		q.filled.Wait()
	}
	if q.closed {
		return "", false
	}
	session = q.ready[0]
	q.ready = q.ready[1:]
	q.sessions[session].hinted = false
	return session, true
}

// done ends the turn of a session that next returned. A hint that came during
// the turn may stand for a message that the turn did not see.
func (q *laterQueue) done(session string, v laterVerdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sessions[session]
	switch {
	case v == laterAgain:
		pause := min(laterBackoffBase<<min(s.failures, 20), laterBackoffMax)
		s.failures++
		time.AfterFunc(rand.N(pause), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.push(session)
		})
		return
	case v == laterIdle && !s.hinted:
		delete(q.sessions, session)
		return
	}
	s.failures = 0
	q.push(session)
}

// tell notes, within the session's turn, that the refusal of a message was told.
func (q *laterQueue) tell(session, message string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sessions[session].told = message
}

// told says whether that was noted; only the last message is remembered.
func (q *laterQueue) told(session, message string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sessions[session].told == message
}

// close wakes all workers and gives no further turns.
func (q *laterQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}

func (q *laterQueue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
