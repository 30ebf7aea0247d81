package aggregate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"culm/events"
)

// TestHandler_QueueIsBounded: commands beyond the bound are refused at once.
func TestHandler_QueueIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	release, entered := make(chan struct{}), make(chan struct{})
	e.h.submit("s", func(*actor) { close(entered); <-release }, func(*Rejection) {})
	<-entered
	var refused, answered atomic.Int32
	var wg sync.WaitGroup
	for i := range maxQueued + 10 {
		wg.Add(1)
		e.h.Handle(context.Background(), b.request("s", "run.cancel", nil, withID(fmt.Sprint(i))), func(r Reply) {
			if r.Error != nil && r.Error.Code == CodeUnavailable {
				refused.Add(1)
			}
			answered.Add(1)
			wg.Done()
		})
	}
	if refused.Load() != 10 || answered.Load() != 10 {
		t.Errorf("%d refused, %d answered, want 10", refused.Load(), answered.Load())
	}
	close(release)
	wg.Wait()
}

// TestHandler_CloseDrains: what was accepted is judged and answered, what comes
// after is unavailable, and Close may be called again.
func TestHandler_CloseDrains(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	release, entered := make(chan struct{}), make(chan struct{})
	e.h.submit("s", func(*actor) { close(entered); <-release }, func(*Rejection) {})
	<-entered
	got := make(chan Reply, 20)
	for i := range 20 {
		e.h.Handle(context.Background(), b.request("s", "message.submit", obj{"content": "m"}, withID(fmt.Sprint("m-", i))), func(r Reply) { got <- r })
	}
	closed := make(chan error, 1)
	go func() { closed <- e.h.Close(context.Background()) }()
	for !e.isDown() {
		runtime.Gosched()
	}
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "late"})
	if r := e.read("s", ReadQuery{Transcript: true}); r.OK || r.Error.Code != CodeUnavailable {
		t.Errorf("a read while closing: %+v", r)
	}
	close(release)
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	for range 20 {
		if r := <-got; !r.OK {
			t.Errorf("an accepted command was dropped: %+v", r.Error)
		}
	}
	if err := e.h.Close(context.Background()); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func (e *engine) isDown() bool {
	e.h.closed.RLock()
	defer e.h.closed.RUnlock()
	return e.h.down
}

// TestHandler_CloseGivesUp: a Close whose time is over ends what hangs.
func TestHandler_CloseGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hang := &hangingLog{Log: b.log, entered: make(chan struct{})}
	b.opts.Log = hang
	e := b.engine()
	got := make(chan Reply, 1)
	e.h.Handle(context.Background(), b.request("s", "session.create", nil), func(r Reply) { got <- r })
	<-hang.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.h.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	if r := <-got; r.OK || r.Error.Code != CodeUnavailable {
		t.Errorf("what hung: %+v", r)
	}
}

// TestHandler_Timeout: a command that takes too long is unavailable, not lost.
func TestHandler_Timeout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hang := &hangingLog{Log: b.log, entered: make(chan struct{})}
	b.opts.Log, b.opts.Timeout = hang, time.Millisecond
	e := b.engine()
	e.refused(CodeUnavailable, "s", "session.create", nil)
}

// hangingLog does not answer an append before its context ends.
type hangingLog struct {
	events.Log
	once    sync.Once
	entered chan struct{}
}

func (l *hangingLog) Append(ctx context.Context, _ string, _ uint64, _ string, _ []byte) error {
	l.once.Do(func() { close(l.entered) })
	<-ctx.Done()
	return fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
}

// TestHandler_NeverEndingConflict: a command against a writer that is always
// first is given up as unavailable, not tried for ever.
func TestHandler_NeverEndingConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine().must("s", "session.create", nil)
	rival := &rivalLog{Log: b.log}
	b.opts.Log, b.opts.Timeout = rival, time.Minute
	e := b.engine()
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "m"})
	if n := rival.tries.Load(); n != maxAttempts {
		t.Errorf("%d attempts, want %d", n, maxAttempts)
	}
}

// rivalLog has somebody else append first, always.
type rivalLog struct {
	events.Log
	tries atomic.Int32
}

func (l *rivalLog) Append(_ context.Context, session string, expected uint64, _ string, _ []byte) error {
	l.tries.Add(1)
	return &events.WrongSequenceError{Session: session, Expected: expected}
}

func (l *rivalLog) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return l.Log.Read(ctx, session, after, through)
}

// TestHandler_Survey: after a start every session is looked at: dead runs are
// interrupted, and what is owed is told, damaged sessions passed over.
func TestHandler_Survey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.begin("live", obj{"prompt": "p"})
	e.begin("dead", obj{"prompt": "p"})
	e.must("idle", "session.create", nil)
	e.must("asked", "session.create", nil)
	e.must("asked", "run.request", obj{"prompt": "p"})
	e.must("damaged", "session.create", nil)
	b.log.Rewrite("damaged", payload(1, "not JSON", 0))
	b.leases.expire("dead")
	var mu sync.Mutex
	got := map[string]StepKind{}
	err := b.engine().h.Survey(context.Background(), func(st Step) {
		mu.Lock()
		defer mu.Unlock()
		got[st.Session] = st.Kind
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]StepKind{"live": StepAdmit, "dead": StepNothing, "idle": StepNothing, "asked": StepClaim}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := b.count("dead", "run.interrupted"); n != 1 {
		t.Errorf("%d interruptions", n)
	}
}

// TestHandler_ClaimTellsTheRunner: what a claim answers, the first time and again.
func TestHandler_ClaimTellsTheRunner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", obj{"model": obj{"provider": "test", "model": "m1"}, "reasoning_effort": "high"})
	run := text(result(t, e.must("s", "run.request", obj{"prompt": "p"})), "run_id")
	c := b.request("s", "run.claim", obj{"run_id": run, "runner": "r1"})
	want := `{"fence":3,"lease_ms":15000,"cause":"user","roster":{"primary":{"provider":"test","model":"m1","type":"test"}},"replays":0}`
	for range 2 {
		if r := e.send(c); string(r.Result) != want {
			t.Errorf("got  %s\nwant %s", r.Result, want)
		}
	}
}

// TestHandler_NobodyWaitsForTheLate: what has waited longer than the timeout is
// refused at its turn, without work; what comes then is judged.
func TestHandler_NobodyWaitsForTheLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opts.Timeout = 20 * time.Millisecond
	e := b.engine()
	release, entered := make(chan struct{}), make(chan struct{})
	e.h.submit("s", func(*actor) { close(entered); <-release }, func(*Rejection) {})
	<-entered
	got := make(chan Reply, 1)
	e.h.Handle(context.Background(), b.request("s", "session.create", nil), func(r Reply) { got <- r })
	<-time.After(2 * b.opts.Timeout)
	close(release)
	if r := <-got; r.OK || r.Error.Code != CodeUnavailable {
		t.Errorf("a command that came too late: %+v", r)
	}
	if _, err := b.log.Last(context.Background(), "s"); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("it was carried out all the same: %v", err)
	}
}
