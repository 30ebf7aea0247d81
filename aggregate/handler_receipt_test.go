package aggregate

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"culm/events"
)

// readCounter counts the events that are read from the log.
type readCounter struct {
	events.Log
	n *int
}

// Read implements events.Log.
func (c readCounter) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for r, err := range c.Log.Read(ctx, session, after, through) {
			*c.n++
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestHandler_DuplicateReadsOneEvent: in a session that is in memory a retry
// costs one event, however long the session is.
func TestHandler_DuplicateReadsOneEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read := 0
	b.opts.Log = readCounter{b.log, &read}
	e := b.engine()
	e.must("s", "session.create", nil)
	for i := range 200 {
		e.must("s", "message.submit", obj{"content": "m"}, withID(fmt.Sprint("m-", i)))
	}
	first := b.request("s", "message.submit", obj{"content": "m"}, withID("m-150"))
	read = 0
	if r := e.send(first); !r.OK || !r.Duplicate || r.Sequence != 152 || string(r.Result) == "{}" {
		t.Errorf("%+v", r)
	}
	if read != 1 {
		t.Errorf("%d events were read", read)
	}
	reused := first
	reused.Digest = "another"
	if r := e.send(reused); r.Error == nil || r.Error.Code != CodeCommandIDReused {
		t.Errorf("%+v", r)
	}
}

// TestHandler_DuplicateOfADamagedEvent: what does not hold the command any more
// answers for nobody.
func TestHandler_DuplicateOfADamagedEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	e.must("s", "message.submit", obj{"content": "m"}, withID("m"))
	e.must("s", "message.submit", obj{"content": "n"}, withID("n"))
	b.log.Rewrite("s", payload(2, `"command":"m"`, `"command":"x"`))
	e.refused(CodeMalformedState, "s", "message.submit", obj{"content": "m"}, withID("m"))
}

// TestOutcome_NeedsState: an event that needs no state has its outcome without
// one, for every command; the list is not longer than it must be.
func TestOutcome_NeedsState(t *testing.T) {
	t.Parallel()
	without := func(d events.Data) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		for name := range commandTypes {
			_, _ = Outcome(name, nil, &events.Event{Seq: 2, Data: d}, 1)
		}
		return false
	}
	needs := 0
	for _, def := range events.Definitions() {
		d, _ := reflect.Zero(def.GoType()).Interface().(events.Data)
		if outcomeNeedsState(d) {
			needs++
		} else if without(d) {
			t.Errorf("the outcome of %s needs the state", def.Type)
		}
	}
	if needs == 0 || needs > 9 {
		t.Errorf("%d types need the state", needs)
	}
}

// BenchmarkHandler_Duplicate is a retry in a session of n events.
func BenchmarkHandler_Duplicate(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bench := newBench(b)
			e := bench.engine()
			e.must("s", "session.create", nil)
			for i := range n {
				e.must("s", "message.submit", obj{"content": "m"}, withID(fmt.Sprint("m-", i)))
			}
			r := bench.request("s", "message.submit", obj{"content": "m"}, withID(fmt.Sprint("m-", n-1)))
			for b.Loop() {
				if reply := e.send(r); !reply.Duplicate {
					b.Fatalf("%+v", reply)
				}
			}
		})
	}
}
