package blackbox

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// ledger is what the clients of a crash test were told.
type ledger struct {
	// verifying stops the clients while what is stored is compared: they hold it
	// for reading from a command's first attempt to its answer.
	verifying sync.RWMutex

	mu       sync.Mutex
	acked    map[string][]sent   // by session
	later    map[string][]string // ids that the queue has taken, by session, in order
	touched  map[string]bool     // since the last verify
	answers  chan struct{}       // one for each answer
	count    int
	repeated int
}

func newLedger() *ledger {
	return &ledger{acked: map[string][]sent{}, later: map[string][]string{}, touched: map[string]bool{}, answers: make(chan struct{}, 1<<16)}
}

func (l *ledger) note(session string, s sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[session] = append(l.acked[session], s)
	l.touched[session] = true
	l.count++
	if s.first.Duplicate {
		l.repeated++
	}
	select {
	case l.answers <- struct{}{}:
	default:
	}
}

func (l *ledger) queued(session, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later[session] = append(l.later[session], id)
	l.touched[session] = true
}

// awaitAnswers waits until n more commands have been answered.
func (l *ledger) awaitAnswers(t *testing.T, n int) {
	t.Helper()
	for len(l.answers) > 0 {
		<-l.answers
	}
	for range n {
		select {
		case <-l.answers:
		case <-time.After(patience):
			t.Fatal("no client is answered")
		}
	}
}

func (l *ledger) total() int { l.mu.Lock(); defer l.mu.Unlock(); return l.count }

func (l *ledger) duplicates() int { l.mu.Lock(); defer l.mu.Unlock(); return l.repeated }

func (l *ledger) sessions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return keys(l.acked)
}

// verify compares the sessions that were written to since the last time, or
// all, with what is stored. What was under way at the kill has been sent again
// by then.
func (l *ledger) verify(c *client, random *rand.Rand, all bool) {
	c.t.Helper()
	l.verifying.Lock()
	defer l.verifying.Unlock()
	sessions := l.sessions()
	slices.Sort(sessions) // the seed decides
	for _, session := range sessions {
		l.mu.Lock()
		acked, later := slices.Clone(l.acked[session]), slices.Clone(l.later[session])
		check := all || l.touched[session]
		delete(l.touched, session)
		l.mu.Unlock()
		if check {
			l.compare(c, session, acked, later, random, all)
		}
	}
}

// compare checks one session: what was known to be acknowledged before the
// stream was read must be in it.
func (l *ledger) compare(c *client, session string, acked []sent, later []string, random *rand.Rand, all bool) {
	c.t.Helper()
	at := map[string]uint64{}
	for _, e := range c.audit(session) {
		if at[e.Command] != 0 && e.Command != "" {
			c.t.Errorf("%s: command %s is stored at %d and at %d", session, e.Command, at[e.Command], e.Seq)
		}
		at[e.Command] = e.Seq
		if e.Type == "run.interrupted" {
			c.t.Errorf("%s: a live run was interrupted: %s", session, e.payload)
		}
	}
	for _, s := range acked {
		if s.first.Event != nil && at[s.first.Command] != s.first.Event.Sequence {
			c.t.Errorf("%s: %s is stored at %d (0: lost), acknowledged as %s", session, s.first.Command, at[s.first.Command], s.first.raw)
		}
	}
	for range min(1, len(acked)) {
		s := acked[random.IntN(len(acked))]
		if again := c.request(s.msg); !again.Duplicate || again.first() != s.first.first() {
			c.t.Errorf("%s again:\nfirst %s\nagain %s", s.msg.Subject, s.first.raw, again.raw)
		}
	}
	var before uint64
	for _, id := range later {
		if all && at[id] == 0 {
			c.t.Errorf("%s: queued command %s is lost", session, id)
		}
		if at[id] != 0 && at[id] < before {
			c.t.Errorf("%s: queued command %s overtook another", session, id)
		}
		before = max(before, at[id])
	}
}
