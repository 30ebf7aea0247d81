package aggregate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
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

// TestHandler_FiftyApprovals: fifty people approve one waiting
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

// TestHandler_OneCommandAtOnce: one command id from many connections and
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

// TestHandler_ApproveThenStop: whichever is stored first decides; never
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
