package aggregate

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// fakeClock moves on by a millisecond whenever it is looked at; its entropy counts.
type fakeClock struct {
	mu      sync.Mutex
	n       uint64
	stopped uint64 // what the clock shows, if not 0; its entropy goes on
}

func (c *fakeClock) next() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// stop lets the clock show the same from now on.
func (c *fakeClock) stop() {
	n := c.next()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = n
}

func (c *fakeClock) shown() uint64 {
	c.mu.Lock()
	n := c.stopped
	c.mu.Unlock()
	if n > 0 {
		return n
	}
	return c.next()
}

func (c *fakeClock) now() time.Time {
	return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.shown()) * time.Millisecond) //nolint:gosec // small
}

func (c *fakeClock) entropy(b []byte) { binary.BigEndian.PutUint64(b, c.next()) }

// fakeLeases remember who is alive until a test says otherwise.
type fakeLeases struct {
	mu      sync.Mutex
	alive   map[string]string // session -> run
	renewed int
	err     error
}

func newLeases() *fakeLeases { return &fakeLeases{alive: map[string]string{}} }

func (l *fakeLeases) Duration() time.Duration { return 15 * time.Second }

func (l *fakeLeases) Renew(_ context.Context, session, run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.alive[session] = run
	l.renewed++
	return nil
}

func (l *fakeLeases) Alive(_ context.Context, session, run string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive[session] == run, l.err
}

func (l *fakeLeases) Release(_ context.Context, session string) error {
	l.expire(session)
	return nil
}

// expire lets the session's lease run out, as a dead runner does.
func (l *fakeLeases) expire(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.alive, session)
}

func (l *fakeLeases) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// instantBarrier finds everything durable at once.
type instantBarrier struct{}

func (instantBarrier) Mark() uint64                    { return 1 }
func (instantBarrier) Then(_ uint64, done func(error)) { done(nil) }

// heldBarrier keeps answers back until the test lets them go.
type heldBarrier struct {
	mu     sync.Mutex
	marks  uint64
	synced uint64
	err    error
	wait   map[uint64][]func(error)
	asked  chan struct{} // one token for every Then that had to wait
}

func newHeldBarrier() *heldBarrier {
	return &heldBarrier{wait: map[uint64][]func(error){}, asked: make(chan struct{}, 1024)}
}

func (b *heldBarrier) Mark() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks++
	return b.marks
}

func (b *heldBarrier) Then(ticket uint64, done func(error)) {
	b.mu.Lock()
	if b.err == nil && ticket > b.synced {
		b.wait[ticket] = append(b.wait[ticket], done)
		b.mu.Unlock()
		b.asked <- struct{}{}
		return
	}
	err := b.err
	b.mu.Unlock()
	done(err)
}

// sync ends a sync for everything marked so far, well or with err.
func (b *heldBarrier) sync(err error) {
	b.mu.Lock()
	var ready []func(error)
	for ticket, dones := range b.wait {
		ready = append(ready, dones...)
		delete(b.wait, ticket)
	}
	if b.synced = b.marks; err != nil {
		b.err = err
	}
	b.mu.Unlock()
	for _, done := range ready {
		done(err)
	}
}

// env is an Env for decisions without a handler.
func testEnv(command string) Env {
	return Env{Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Actor: "tester", Command: command, Birth: "01KB9ZQ000T8QW2X4Y6Z7A8B9C"}
}

func rawJSON(t testing.TB, v any) jsontext.Value {
	t.Helper()
	raw, err := marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
