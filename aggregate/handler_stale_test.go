package aggregate

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"culm/events"
)

// TestHandler_OldCopyDoesNotAnswer: an engine that holds an old copy of a
// session must not refuse, or find nothing to do, from it: the newest event of
// another engine decides. Without the look at the log's end before such an
// answer, each of these is wrong.
func TestHandler_OldCopyDoesNotAnswer(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*bench, *engine, *engine) {
		b := newBench(t)
		mine, other := b.engine(), b.engine()
		other.must("s", "session.create", nil)
		mine.refused(CodeNoSuchRun, "s", "run.cancel", nil) // now it holds a copy
		return b, mine, other
	}
	t.Run("refusal", func(t *testing.T) {
		t.Parallel()
		_, mine, other := setup(t)
		run := text(result(t, other.must("s", "run.request", obj{"prompt": "p"})), "run_id")
		mine.must("s", "run.claim", obj{"run_id": run, "runner": "r"})
	})
	t.Run("nothing to do", func(t *testing.T) {
		t.Parallel()
		_, mine, other := setup(t)
		other.must("s", "message.submit", obj{"content": "m"})
		if r := mine.must("s", "run.resume", nil); eventType(r) != "run.requested" {
			t.Errorf("a resume found %s", r.Result)
		}
	})
	t.Run("expected sequence", func(t *testing.T) {
		t.Parallel()
		_, mine, other := setup(t)
		other.must("s", "message.submit", obj{"content": "m"})
		mine.must("s", "message.submit", obj{"content": "n"}, expecting(2))
	})
	t.Run("read", func(t *testing.T) {
		t.Parallel()
		_, mine, other := setup(t)
		other.must("s", "message.submit", obj{"content": "m"})
		if r := mine.read("s", ReadQuery{}); r.Sequence != 2 {
			t.Errorf("a read at %d", r.Sequence)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		b, mine, other := setup(t)
		other.must("s", "session.delete", obj{"birth": b.fold("s").Head.Birth})
		mine.refused(CodeSessionNotFound, "s", "run.cancel", nil)
		if r := mine.read("s", ReadQuery{}); r.OK || r.Error.Code != CodeSessionNotFound {
			t.Errorf("a read of it: %+v", r)
		}
	})
	t.Run("born again", func(t *testing.T) {
		t.Parallel()
		b, mine, other := setup(t)
		seen := b.request("s", "message.submit", obj{"content": "m"}, withID("seen"))
		mine.send(seen)
		other.must("s", "session.delete", obj{"birth": b.fold("s").Head.Birth})
		other.must("s", "session.create", nil)
		if r := mine.send(seen); r.Duplicate || eventType(r) != "message.submitted" {
			t.Errorf("a command of the old life in the new one: %+v", r)
		}
		if r := mine.read("s", ReadQuery{}); !r.OK || r.Birth != b.fold("s").Head.Birth {
			t.Errorf("a read of the new life: %+v", r)
		}
	})
}

// TestHandler_LogShrank: a log that ends before what this engine has
// seen in it is refused, not built upon, until the engine starts anew; the
// session can still be deleted.
func TestHandler_LogShrank(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	e.must("s", "message.submit", obj{"content": "m"})
	e.must("other", "session.create", nil)
	writes, sweeps := b.engine(), b.engine()
	writes.refused(CodeNoSuchRun, "s", "run.cancel", nil)
	h := sweeps.start("s", obj{"prompt": "p"})
	b.log.Rewrite("s", func(r []events.Record) []events.Record { return r[:1] })
	e.refused(CodeMalformedState, "s", "run.cancel", nil)
	e.refused(CodeMalformedState, "s", "message.submit", obj{"content": "n"})
	writes.refused(CodeMalformedState, "s", "message.submit", obj{"content": "n"})
	b.leases.expire("s")
	if err := sweeps.h.Sweep(context.Background(), func(st Step) {
		if st.Session == "s" {
			t.Errorf("a broken session owes %+v", st)
		}
	}); err != nil {
		t.Errorf("sweep: %v", err)
	}
	h.refused(CodeMalformedState, "round.start", nil)
	if n := len(b.records("s")); n != 1 {
		t.Errorf("%d events after the refusal", n)
	}
	e.must("other", "message.submit", obj{"content": "m"})
	e.must("s", "session.delete", obj{"birth": b.fold("s").Head.Birth})
	e.must("s", "session.create", nil)
}

// behind is a log whose end is answered, a number of times, as it was before: by
// a replica that has just become leader and has not caught up.
type behind struct {
	*events.Mem
	answers atomic.Int32
}

func (l *behind) Last(ctx context.Context, session string) (uint64, error) {
	last, err := l.Mem.Last(ctx, session)
	if l.answers.Add(-1) >= 0 {
		last--
	}
	return last, err
}

// TestHandler_LogBehind: one look that ends too early breaks no session.
func TestHandler_LogBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := &behind{Mem: b.log}
	b.opts.Log = l
	e := b.engine()
	e.must("s", "session.create", nil)
	e.must("s", "message.submit", obj{"content": "m"})
	for _, act := range []func(){
		func() { e.refused(CodeNoSuchRun, "s", "run.cancel", nil) },
		func() {
			if r := e.read("s", ReadQuery{}); !r.OK || r.Sequence != 2 {
				t.Errorf("read: %+v", r)
			}
		},
	} {
		l.answers.Store(1)
		act()
	}
	e.must("s", "message.submit", obj{"content": "n"})
}

// vanishing is a log whose session is deleted while a run of it is interrupted:
// the append meets a conflict, nothing new can be read, then there is no session.
type vanishing struct {
	*events.Mem
	gone atomic.Bool
}

func (l *vanishing) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	if eventType != "run.interrupted" {
		return l.Mem.Append(ctx, session, expected, eventType, payload)
	}
	l.gone.Store(true)
	return &events.WrongSequenceError{Session: session, Expected: expected}
}

func (l *vanishing) Last(ctx context.Context, session string) (uint64, error) {
	if l.gone.Load() {
		return 0, events.ErrNotFound
	}
	return l.Mem.Last(ctx, session)
}

// TestHandler_SessionGoesDuringASweep: a sweep that loses its session goes on
// to the next.
func TestHandler_SessionGoesDuringASweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := &vanishing{Mem: b.log}
	b.opts.Log = l
	e := b.engine()
	e.begin("s", obj{"prompt": "p"})
	b.leases.expire("s")
	if err := e.h.Sweep(t.Context(), func(st Step) { t.Errorf("owed: %+v", st) }); err != nil || !l.gone.Load() {
		t.Errorf("sweep: %v, the append was tried: %t", err, l.gone.Load())
	}
}

// TestHandler_DamagedLog: a session whose log cannot be folded is
// refused with every command, with and without loop, and read; other sessions
// are fine, and it can be deleted.
func TestHandler_DamagedLog(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]events.Record) []events.Record{
		"no JSON":         payload(2, "not JSON", 0),
		"unknown field":   payload(2, `"content":`, `"extra":1,"content":`),
		"unknown type":    payload(2, `message.submitted`, `message.uttered`),
		"newer version":   payload(2, `message.submitted:1`, `message.submitted:2`),
		"changed":         payload(2, "words", "swords"),
		"missing":         func(r []events.Record) []events.Record { return append(r[:1:1], r[2:]...) },
		"broken counters": payload(4, `"iterations_completed":0`, `"iterations_completed":3`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			first := b.engine()
			first.must("s", "session.create", nil)
			first.must("s", "message.submit", obj{"content": "words"})
			first.start("s", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5}})
			first.must("fine", "session.create", nil)
			birth := b.fold("s").Head.Birth
			b.log.Rewrite("s", change)
			e := b.engine()
			for _, body := range []any{obj{"prompt": "p"}, obj{"prompt": "p", "loop": obj{"max_iterations": 1, "max_total_rounds": 1}}} {
				e.refused(CodeMalformedState, "s", "run.request", body)
			}
			e.refused(CodeMalformedState, "s", "run.resume", nil)
			e.refused(CodeMalformedState, "s", "session.create", nil)
			for _, q := range []ReadQuery{{}, {Transcript: true}} {
				if r := e.read("s", q); r.OK || r.Error.Code != CodeMalformedState {
					t.Errorf("read: %+v", r)
				}
			}
			e.must("fine", "message.submit", obj{"content": "m"})
			e.refused(CodeBirthChanged, "s", "session.delete", obj{"birth": "01KB9ZQ000T8QW2X4Y6Z7A8B9C"})
			e.must("s", "session.delete", obj{"birth": birth})
		})
	}
}

// payload changes the payload of the event at seq: old becomes new, or all of
// it becomes old.
func payload(seq uint64, old string, replacement any) func([]events.Record) []events.Record {
	return func(records []events.Record) []events.Record {
		for i, r := range records {
			if r.Seq != seq {
				continue
			}
			if s, ok := replacement.(string); ok {
				records[i].Payload = []byte(strings.ReplaceAll(string(r.Payload), old, s))
			} else {
				records[i].Payload = []byte(old)
			}
		}
		return records
	}
}
