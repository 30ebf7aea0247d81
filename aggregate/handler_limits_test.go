package aggregate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"culm/events"
)

// TestHandler_TooLarge: an event over the server's limit is refused at
// once, the session goes on from where it was.
func TestHandler_TooLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	b.log.SetMaxPayload(2000)
	e.refused(CodePayloadTooLarge, "s", "message.submit", obj{"content": strings.Repeat("x", 2000)})
	made := false
	b.opts.Log = createWatch{b.log, &made}
	watched := b.engine()
	watched.refused(CodePayloadTooLarge, "t", "session.create", obj{"title": strings.Repeat("x", 2000)})
	if made {
		t.Error("a log was made for a session that cannot begin")
	}
	e.must("s", "message.submit", obj{"content": "short"})
	e.refused(CodeSessionNotFound, "t", "message.submit", obj{"content": "m"})
	e.must("t", "session.create", nil)
}

// createWatch notes that a log is made.
type createWatch struct {
	events.Log
	made *bool
}

// Create implements events.Log.
func (w createWatch) Create(ctx context.Context, session string) (uint64, error) {
	*w.made = true
	return w.Log.Create(ctx, session)
}

// TestHandler_DeletesTheLifeItJudged: the session is deleted and born again by
// another engine after this one has compared births; the new life stays.
func TestHandler_DeletesTheLifeItJudged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.engine()
	other.must("s", "session.create", nil)
	first := b.fold("s").Head.Birth
	b.opts.Log = deletedFirst{b.log, func() {
		other.must("s", "session.delete", obj{"birth": first})
		other.must("s", "session.create", nil)
	}}
	b.engine().refused(CodeBirthChanged, "s", "session.delete", obj{"birth": first})
	if now := b.fold("s").Head.Birth; now == "" || now == first {
		t.Errorf("the session's birth is %q, the former was %q", now, first)
	}
}

// TestHandler_CreatesWhatAnotherEngineDeleted: an engine that still has the
// deleted life in memory makes a new one.
func TestHandler_CreatesWhatAnotherEngineDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, other := b.engine(), b.engine()
	e.must("s", "session.create", nil)
	other.must("s", "session.delete", obj{"birth": b.fold("s").Head.Birth})
	e.must("s", "session.create", nil)
	other.must("s", "message.submit", obj{"content": "a"})
}

// deletedFirst lets others go first where a log is deleted.
type deletedFirst struct {
	events.Log
	first func()
}

// Delete implements events.Log.
func (o deletedFirst) Delete(ctx context.Context, session, birth string) error {
	o.first()
	return o.Log.Delete(ctx, session, birth)
}

// TestHandler_NoHeadroom: a session is refused before anything is made of it.
func TestHandler_NoHeadroom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	full := errors.New("no descriptors left")
	b.opts.Headroom = func() error { return full }
	e := b.engine()
	e.refused(CodeUnavailable, "s", "session.create", nil)
	if last, err := b.log.Last(context.Background(), "s"); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("a log was made: %d %v", last, err)
	}
}

// TestHandler_Eviction: the least recently used states go, and nothing is lost
// by it: order within a session, receipts, answers.
func TestHandler_Eviction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opts.MaxSessions = 3
	e := b.engine()
	for i := range 10 {
		e.must(fmt.Sprint("s", i), "session.create", nil, withID("create"))
	}
	e.waitIdle(t)
	if n := len(e.h.cache.names()); n > 3 {
		t.Errorf("%d states in memory, want at most 3", n)
	}
	for i := range 10 {
		name := fmt.Sprint("s", i)
		if r := e.must(name, "session.create", nil, withID("create")); !r.Duplicate {
			t.Errorf("%s: %+v", name, r)
		}
		e.must(name, "message.submit", obj{"content": "m"})
	}
	replies := atOnce(200, func(i int) Reply {
		return e.send(Request{Actor: "a", Session: fmt.Sprint("s", i%10), Name: "message.submit", ID: fmt.Sprint("m-", i), Digest: fmt.Sprint(i), Body: []byte(`{"content":"m"}`)})
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"message.submitted": 200})
	if n := b.fold("s3").Head.Seq; n != 22 {
		t.Errorf("s3 ends at %d, want 22", n)
	}
}

// waitIdle returns when no session has a job: each one's next job has run.
func (e *engine) waitIdle(t *testing.T) {
	t.Helper()
	e.h.work.Wait()
}

// TestCache_IdleTwice: an actor that is made idle by two goroutines, one of them
// late, does not push a newer actor of its session out, nor come back itself.
func TestCache_IdleTwice(t *testing.T) {
	t.Parallel()
	c := newCache(8)
	old, _, _ := c.push("s", job{run: func(*actor) {}})
	old.mu.Lock()
	old.queue, old.running = nil, false
	old.mu.Unlock()
	c.idle(old) // without a state: it goes
	young, start, ok := c.push("s", job{run: func(*actor) {}})
	if young == old || !start || !ok {
		t.Fatalf("the empty actor stayed")
	}
	c.idle(old) // late
	if again, start, _ := c.push("s", job{run: func(*actor) {}}); again != young || start {
		t.Error("two actors of one session")
	}
	old.state = &State{}
	c.idle(old)
	if c.order.Len() != 0 {
		t.Error("an actor that was let go is in the order again")
	}
}

// crowded is a log whose end is not told until the test says so.
type crowded struct {
	*events.Mem
	inside, most atomic.Int32
	once         sync.Once
	full         chan struct{} // closed when as many reads are inside as may be
	release      chan struct{}
}

func (l *crowded) Last(ctx context.Context, session string) (uint64, error) {
	n := l.inside.Add(1)
	defer l.inside.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	if n == maxReads {
		l.once.Do(func() { close(l.full) })
	}
	select {
	case <-l.release:
	case <-ctx.Done():
	}
	return l.Mem.Last(ctx, session)
}

// TestHandler_ReadsOfWholeLogsAreBounded: more of them wait in line, and are
// unavailable when their time is up.
func TestHandler_ReadsOfWholeLogsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine().must("s", "session.create", nil)
	l := &crowded{Mem: b.log, full: make(chan struct{}), release: make(chan struct{})}
	b.opts.Log = l
	e := b.engine()
	const reads = 5 * maxReads
	got := make(chan ReadReply, reads)
	for range reads {
		e.h.Read(t.Context(), "s", ReadQuery{Transcript: true}, func(r ReadReply) { got <- r })
	}
	<-l.full
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late := make(chan ReadReply, 1)
	e.h.Read(ended, "s", ReadQuery{Events: &EventsQuery{}}, func(r ReadReply) { late <- r })
	if r := <-late; r.OK || r.Error.Code != CodeUnavailable {
		t.Errorf("a read whose time was up: %+v", r)
	}
	close(l.release)
	for range reads {
		if r := <-got; !r.OK {
			t.Fatalf("a read that waited: %+v", r)
		}
	}
	if n := l.most.Load(); n != maxReads {
		t.Errorf("%d reads at once", n)
	}
}

// TestHandler_RefusalNamesTheMintedID also where the command never has its turn.
func TestHandler_RefusalNamesTheMintedID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	if err := e.h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := e.do("s", "session.create", nil, withID("")); codeOf(r) != CodeUnavailable || r.Command == "" {
		t.Errorf("%+v", r)
	}
}

// TestMint_FactsHaveIDsOfTheirOwn: what a fact of the engine mints its ids from
// is no command id, so no client gets the same.
func TestMint_FactsHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, seq := range []uint64{0, 7, 1 << 60} {
		if command := factCommand(seq); ValidCommandID(command) {
			t.Errorf("a client may send %q", command)
		}
	}
}

// TestCache_IdleWhileRunning: an actor that runs again is left alone, its state
// too, which its goroutine is writing. The race detector is the judge.
func TestCache_IdleWhileRunning(t *testing.T) {
	t.Parallel()
	c := newCache(1)
	a, _, _ := c.push("s", job{})
	var w sync.WaitGroup
	w.Go(func() { a.state = &State{} })
	c.idle(a)
	w.Wait()
	if c.all["s"] != a || a.element != nil {
		t.Error("a running actor was let go")
	}
}
