package aggregate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"culm/events"
)

// atOnce sends n requests from n goroutines that start together.
func atOnce(n int, send func(i int) Reply) []Reply {
	out := make([]Reply, n)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-gate
			out[i] = send(i)
		})
	}
	close(gate)
	wg.Wait()
	return out
}

func outcomes(t *testing.T, replies []Reply) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, r := range replies {
		switch {
		case !r.OK:
			out[r.Error.Code]++
		case r.Event == nil:
			out["ok without event"]++
		case r.Duplicate:
			out["duplicate"]++
		default:
			out[r.Event.Type]++
		}
	}
	return out
}

func wantOutcomes(t *testing.T, got map[string]int, want map[string]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcomes: got %v, want %v", got, want)
	}
}

// TestHandler_FiftyApprovals is AD01 and AD04: fifty people approve one waiting
// call at once, on two engines. One decision, one run, one execution.
func TestHandler_FiftyApprovals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	h := engines[0].begin("s", obj{"prompt": "p"})
	h.callTools(0, "w")
	generation := h.park("w")
	replies := atOnce(50, func(i int) Reply {
		r := b.request("s", "approval.decide", obj{"tool_call_id": "w", "generation": generation, "decision": "allow_once"}, withID(fmt.Sprint("decide-", i)), as(fmt.Sprint("actor-", i)))
		return engines[i%2].send(r)
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"approval.decided": 1, "ok without event": 49})
	for _, r := range replies {
		if r.Event == nil && result(t, r)["replayed"] != true {
			t.Errorf("a later decider got %s", r.Result)
		}
	}
	h2 := engines[1].claim("s", b.fold("s").Run.ID)
	started := atOnce(2, func(i int) Reply {
		return engines[i].send(b.request("s", "replay.start", h2.body(nil), withID(fmt.Sprint("replay-", i))))
	})
	wantOutcomes(t, outcomes(t, started), map[string]int{"replay.started": 1, "ok without event": 1})
	if n := b.count("s", "approval.decided"); n != 1 {
		t.Errorf("%d decisions are stored", n)
	}
}

// TestHandler_ApproveOrDeny: two people decide differently at once; one wins.
func TestHandler_ApproveOrDeny(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	h := engines[0].begin("s", obj{"prompt": "p"})
	h.callTools(0, "w")
	generation := h.park("w")
	replies := atOnce(2, func(i int) Reply {
		decision := []string{"allow_once", "deny_once"}[i]
		return engines[i].send(b.request("s", "approval.decide", obj{"tool_call_id": "w", "generation": generation, "decision": decision}, withID(decision)))
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"approval.decided": 1, "already_decided": 1})
	for _, r := range replies {
		if !r.OK && (r.Error.Details["actor"] != "tester" || r.Error.Details["sequence"] == nil) {
			t.Errorf("the loser is not told who won: %v", r.Error.Details)
		}
	}
}

// TestHandler_EightClaims: the first claimer has the run, on whatever engine.
func TestHandler_EightClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	engines[0].must("s", "session.create", nil)
	run := text(result(t, engines[0].must("s", "run.request", obj{"prompt": "p"})), "run_id")
	replies := atOnce(8, func(i int) Reply {
		return engines[i%2].send(b.request("s", "run.claim", obj{"run_id": run, "runner": fmt.Sprint("r", i)}, withID(fmt.Sprint("claim-", i))))
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"run.started": 1, "already_claimed": 7})
}

// TestHandler_OneCommandAtOnce is CI11: one command id from many connections and
// two engines at once appends once; everybody gets the first outcome.
func TestHandler_OneCommandAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	engines[0].must("s", "session.create", nil)
	r := b.request("s", "message.submit", obj{"content": "once"}, withID("one"))
	replies := atOnce(16, func(i int) Reply { return engines[i%2].send(r) })
	wantOutcomes(t, outcomes(t, replies), map[string]int{"message.submitted": 1, "duplicate": 15})
	for _, reply := range replies {
		if reply.Sequence != 2 || string(reply.Result) != string(replies[0].Result) {
			t.Errorf("another outcome: %+v", reply)
		}
	}
}

// TestHandler_TwoEnginesContend: what two engines append to one session at once
// is a whole log, each command once.
func TestHandler_TwoEnginesContend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	engines[0].must("s", "session.create", nil)
	replies := atOnce(100, func(i int) Reply {
		return engines[i%2].send(b.request("s", "message.submit", obj{"content": fmt.Sprint(i)}, withID(fmt.Sprint("m-", i))))
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"message.submitted": 100})
	seen := map[uint64]bool{}
	for _, r := range replies {
		seen[r.Sequence] = true
	}
	if len(seen) != 100 || b.fold("s").Head.Seq != 101 {
		t.Errorf("%d sequences, head %d", len(seen), b.fold("s").Head.Seq)
	}
	report, err := Audit(b.log.Read(context.Background(), "s", 0, 0), AuditOptions{})
	if err != nil || !report.OK() {
		t.Errorf("audit: %+v, %v", report.Findings, err)
	}
}

// TestHandler_TwoCreations: of two creations at once one wins.
func TestHandler_TwoCreations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engines := []*engine{b.engine(), b.engine()}
	replies := atOnce(10, func(i int) Reply {
		return engines[i%2].send(b.request("s", "session.create", nil, withID(fmt.Sprint("create-", i))))
	})
	wantOutcomes(t, outcomes(t, replies), map[string]int{"session.created": 1, "session_exists": 9})
}

// TestHandler_ApproveThenStop is AD07: whichever is stored first decides; never
// a replay after the stop.
func TestHandler_ApproveThenStop(t *testing.T) {
	t.Parallel()
	for i := range 40 {
		b := newBench(t)
		engines := []*engine{b.engine(), b.engine()}
		h := engines[0].begin("s", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5, "on_park": "pause"}})
		h.callTools(0, "w")
		engines[0].must("s", "approval.decide", obj{"tool_call_id": "w", "generation": h.park("w"), "decision": "allow_once"})
		h2 := engines[1].claim("s", b.fold("s").Run.ID)
		stop, replay := b.request("s", "loop.stop", nil, withID("stop")), b.request("s", "replay.start", h2.body(nil), withID("replay"))
		atOnce(2, func(n int) Reply { return engines[(n+i)%2].send([]Request{stop, replay}[n]) })
		types := b.types("s")
		if stopAt, startAt := strings.Index(types, "loop.stop_requested"), strings.Index(types, "replay.started"); startAt > stopAt && stopAt >= 0 {
			t.Fatalf("a replay after the stop: %s", types)
		}
	}
}

func (b *bench) types(session string) string {
	var out []string
	for _, r := range b.records(session) {
		out = append(out, r.Type)
	}
	return strings.Join(out, " ")
}

// TestHandler_LostAcknowledgement is CI03: the event is stored and the answer is
// unavailable; the same command again is answered with the first outcome.
func TestHandler_LostAcknowledgement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	for _, c := range []Request{b.request("s", "session.create", nil), b.request("s", "message.submit", obj{"content": "m"})} {
		b.log.FailAppends(events.FailNth(b.log.Appends()+1, events.FaultAfter))
		if r := e.send(c); r.OK || r.Error.Code != CodeUnavailable {
			t.Fatalf("%s: %+v", c.Name, r)
		}
		if r := e.send(c); !r.OK || !r.Duplicate || r.Event == nil {
			t.Fatalf("%s again: %+v", c.Name, r)
		}
		b.log.FailAppends(events.FailNth(b.log.Appends()+1, events.FaultBefore))
		c.ID += "-other"
		c.Session += "2"
		if c.Name == "session.create" {
			e.send(c)
			if r := e.send(c); !r.OK || r.Duplicate {
				t.Fatalf("%s after nothing was stored: %+v", c.Name, r)
			}
		}
	}
	if got := b.types("s"); got != "session.created message.submitted" {
		t.Errorf("stored: %s", got)
	}
}

// TestHandler_LogDown: while the log is away everything is unavailable, reads
// too, and nothing is remembered of it.
func TestHandler_LogDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	b.log.SetUnavailable(true)
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "m"})
	e.refused(CodeUnavailable, "s", "run.resume", nil)
	e.refused(CodeUnavailable, "new", "session.create", nil)
	for _, q := range []ReadQuery{{}, {Transcript: true}, {Events: &EventsQuery{}}} {
		if r := e.read("s", q); r.OK || r.Error.Code != CodeUnavailable {
			t.Errorf("read: %+v", r)
		}
	}
	if _, err := e.h.Next(context.Background(), "s"); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("next: %v", err)
	}
	b.log.SetUnavailable(false)
	e.must("s", "message.submit", obj{"content": "m"})
	e.refused(CodeSessionNotFound, "new", "run.resume", nil)
}

// TestHandler_LeasesDown: whether the run lives is not known, so nothing is
// decided; a runner's own command must not be judged either.
func TestHandler_LeasesDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	b.leases.fail(errors.New("no bucket"))
	h.refused(CodeUnavailable, "round.start", nil)
	e.refused(CodeUnavailable, "s", "run.request", obj{"prompt": "p"})
	b.leases.fail(nil)
	h.must("round.start", nil)
	if n := b.count("s", "run.interrupted"); n != 0 {
		t.Errorf("%d interruptions", n)
	}
}

// TestHandler_LeaseIsRenewed: any accepted command of the holder renews its
// lease, refused ones and those of others do not.
func TestHandler_LeaseIsRenewed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	renewals := func(do func()) int {
		before := b.leases.renewed
		do()
		return b.leases.renewed - before
	}
	for name, c := range map[string]struct {
		do   func()
		want int
	}{
		"round.start":  {func() { h.must("round.start", nil) }, 1},
		"run.renew":    {func() { h.must("run.renew", nil) }, 1},
		"refused":      {func() { h.refused(CodeNoSuchCall, "tool.start", obj{"tool_call_id": "x"}) }, 0},
		"stale":        {func() { e.refused(CodeStaleRun, "s", "run.renew", obj{"run_id": h.id, "fence": 1}) }, 0},
		"of a person":  {func() { e.must("s", "message.submit", obj{"content": "m"}) }, 0},
		"other claim":  {func() { e.refused(CodeAlreadyClaimed, "s", "run.claim", obj{"run_id": h.id, "runner": "r2"}) }, 0},
		"renew result": {func() { wantLease(t, h.must("run.renew", nil)) }, 1},
	} {
		if got := renewals(c.do); got != c.want {
			t.Errorf("%s: %d renewals, want %d", name, got, c.want)
		}
	}
}

func wantLease(t *testing.T, r Reply) {
	t.Helper()
	if got := result(t, r)["lease_ms"]; got != 15000.0 {
		t.Errorf("lease_ms is %v", got)
	}
}

// TestHandler_BarrierFirst: no answer before the sync that began after its
// append, a refusal and a read that rest on it included.
func TestHandler_BarrierFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	barrier := newHeldBarrier()
	b.barrier = barrier
	e := b.engine()
	var answered atomic.Int32
	got := make(chan Reply, 8)
	handle := func(r Request) {
		e.h.Handle(context.Background(), r, func(reply Reply) { answered.Add(1); got <- reply })
		<-barrier.asked
	}
	handle(b.request("s", "session.create", nil))
	handle(b.request("s", "message.submit", obj{"content": "m"}))
	handle(b.request("s", "run.claim", obj{"run_id": "x", "runner": "r"})) // refused
	handle(b.request("s", "message.submit", "nonsense"))                   // refused unread
	e.h.Read(context.Background(), "s", ReadQuery{}, func(r ReadReply) { answered.Add(1); got <- Reply{OK: r.OK} })
	<-barrier.asked
	e.h.Read(context.Background(), "s", ReadQuery{Transcript: true}, func(r ReadReply) { answered.Add(1); got <- Reply{OK: r.OK} })
	<-barrier.asked
	if n := answered.Load(); n != 0 {
		t.Fatalf("%d answers before the sync", n)
	}
	barrier.sync(nil)
	ok := 0
	for range 6 {
		if r := <-got; r.OK {
			ok++
		}
	}
	if ok != 4 {
		t.Errorf("%d of 6 answers are ok, want 4", ok)
	}
}

// TestHandler_BarrierFails: a sync that fails claims nothing: every answer that
// waited is unavailable, and so is every later one.
func TestHandler_BarrierFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	barrier := newHeldBarrier()
	b.barrier = barrier
	e := b.engine()
	got := make(chan Reply, 2)
	e.h.Handle(context.Background(), b.request("s", "session.create", nil), func(r Reply) { got <- r })
	<-barrier.asked
	reads := make(chan ReadReply, 1)
	e.h.Read(context.Background(), "s", ReadQuery{}, func(r ReadReply) { reads <- r })
	<-barrier.asked
	barrier.sync(errors.New("disk on fire"))
	if r := <-got; r.OK || r.Error.Code != CodeUnavailable || r.Event != nil || r.Sequence != 0 {
		t.Errorf("an answer after the failed sync: %+v", r)
	}
	if r := <-reads; r.OK || r.Error.Code != CodeUnavailable || r.State != nil {
		t.Errorf("a read after the failed sync: %+v", r)
	}
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "m"})
}

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

// TestHandler_LogShrank is NS08: a log that ends before what this engine has
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

// TestHandler_DamagedLog is REC-03: a session whose log cannot be folded is
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

// TestHandler_TooLarge is NS12: an event over the server's limit is refused at
// once, the session goes on from where it was.
func TestHandler_TooLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	b.log.SetMaxPayload(2000)
	e.refused(CodePayloadTooLarge, "s", "message.submit", obj{"content": strings.Repeat("x", 2000)})
	e.refused(CodePayloadTooLarge, "t", "session.create", obj{"title": strings.Repeat("x", 2000)})
	e.must("s", "message.submit", obj{"content": "short"})
	e.refused(CodeSessionNotFound, "t", "message.submit", obj{"content": "m"})
	e.must("t", "session.create", nil)
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
	old, _, _ := c.push("s", func(*actor) {})
	old.mu.Lock()
	old.queue, old.running = nil, false
	old.mu.Unlock()
	c.idle(old) // without a state: it goes
	young, start, ok := c.push("s", func(*actor) {})
	if young == old || !start || !ok {
		t.Fatalf("the empty actor stayed")
	}
	c.idle(old) // late
	if again, start, _ := c.push("s", func(*actor) {}); again != young || start {
		t.Error("two actors of one session")
	}
	old.state = &State{}
	c.idle(old)
	if c.order.Len() != 0 {
		t.Error("an actor that was let go is in the order again")
	}
}

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
