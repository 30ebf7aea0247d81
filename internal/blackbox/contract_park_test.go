package blackbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestPark_SeveralCallsAreDecidedOneByOne: the run is suspended when the last
// open call waits, each decision is its own, the successor replays what was
// allowed and the denied call has its result already.
func TestPark_SeveralCallsAreDecidedOneByOne(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"free", "Grep", "{}"}, call{"w1", "Write", `{"a":1}`}, call{"w2", "Write", `{"a":2}`}, call{"w3", "Write", `{"a":3}`})
	r.startTool("free")
	r.park("w1")
	r.park("w2")
	if r.park("w3"); c.last(s, "tool.parked").Data["suspends"] != nil {
		t.Error("suspended while a call runs")
	}
	r.endTool("free", "found")
	if e := c.last(s, "tool.finished"); e.Data["suspends"] != true {
		t.Errorf("the last open call suspends: %s", e.payload)
	}
	r.refused("stale_run", "round.start", nil)
	c.refused("calls_open", s, "run.request", obj{"prompt": "q"})
	if x := c.nothing(s, "run.resume", nil); x.Result["outcome"] != "nothing_pending" {
		t.Errorf("resume: %s", x.raw)
	}
	first := c.decide(s, "w2", "allow_once", as("alice"))
	if c.last(s, "approval.decided").Data["run_id"] == nil || c.last(s, "approval.decided").Actor != "alice" {
		t.Errorf("decision: %s", first.raw)
	}
	c.decide(s, "w1", "deny_once")
	if e := c.last(s, "approval.decided"); e.Data["run_id"] != nil {
		t.Errorf("a second successor: %s", e.payload)
	}
	q := c.claimNext(s)
	rep, _ := q.must("replay.start", nil).Result["replay"].(obj)
	if rep["tool_call_id"] != "w2" || rep["arguments"] != `{"a":2}` {
		t.Errorf("replay: %v", rep)
	}
	if x := q.endTool("w2", "written"); c.last(s, "replay.finished").Data["suspends"] != true {
		t.Errorf("w3 still waits: %s", x.raw)
	}
	c.decide(s, "w3", "allow_once")
	p := c.claimNext(s)
	p.must("replay.start", nil)
	p.endTool("w3", "written")
	p.answer(p.admit(), "done")
	p.finish("ok")
	results := map[any]string{}
	for _, m := range objects(c.read(s).State["messages"]) {
		if m["role"] == "tool" {
			results[m["tool_call_id"]] += fmt.Sprint(m["success"])
		}
	}
	if got := jsonText(byName(results)); got != `{"free":"true","w1":"false","w2":"true","w3":"true"}` {
		t.Errorf("results: %s", got)
	}
	c.audit(s)
}

func byName(m map[any]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[fmt.Sprint(k)] = v
	}
	return out
}

// TestPark_FiftyDecidersOneDecision: of many at once one decides; the same
// decision again changes nothing, another is refused.
func TestPark_FiftyDecidersOneDecision(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"w", "Write", "{}"})
	r.park("w")
	generation := c.pending(s)[0]["generation"]
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for i := range 50 {
		decision := []string{"allow_once", "deny_once"}[i%2]
		wg.Go(func() {
			x := c.do(s, "approval.decide", obj{"tool_call_id": "w", "generation": generation, "decision": decision}, as(fmt.Sprint("person", i)))
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprint(x.event(), x.code(), x.Result["replayed"])]++
		})
	}
	wg.Wait()
	if outcomes["approval.decided<nil>"] != 1 || outcomes["true"] != 24 || outcomes["already_decided<nil>"] != 25 {
		t.Errorf("outcomes: %v", outcomes)
	}
	if n := c.count(s, "approval.decided"); n != 1 {
		t.Errorf("%d decisions", n)
	}
	c.audit(s)
}

// TestPark_DecisionsNameTheirItem: unknown calls, generations, kinds.
func TestPark_DecisionsNameTheirItem(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"w", "Write", "{}"})
	r.park("w")
	g := c.pending(s)[0]["generation"]
	at := c.sequence(s)
	c.refused("pending_question_mismatch", s, "approval.decide", obj{"tool_call_id": "x", "generation": g, "decision": "allow_once"})
	c.refused("generation_changed", s, "approval.decide", obj{"tool_call_id": "w", "generation": "00000000-0000-4000-8000-000000000000", "decision": "allow_once"})
	c.refused("decision_not_allowed", s, "approval.decide", obj{"tool_call_id": "w", "generation": g, "decision": "allow_global"})
	c.refused("invalid_command", s, "approval.decide", obj{"tool_call_id": "w", "generation": g, "decision": "maybe"})
	c.refused("typed_decision_required", s, "question.answer", obj{"tool_call_id": "w", "answer": "Approve"})
	if now := c.sequence(s); now != at {
		t.Errorf("refusals wrote: %s", c.types(s))
	}
}

// TestPark_CancelVoidsWhatWaits: the calls have failed results, late decisions
// find nothing, the session goes on.
func TestPark_CancelVoidsWhatWaits(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.beginLoop(s, 2, 5, obj{"on_park": "pause"})
	r.calls(r.admit(), call{"w", "Write", "{}"}, call{"q", "Ask", "{}"})
	r.park("w")
	r.ask("q")
	c.wantLoop(s, "paused", "1/0/1")
	g := c.pending(s)[0]["generation"]
	c.must(s, "run.cancel", nil)
	c.wantLoop(s, "cancelled", "1/0/1")
	if e := c.last(s, "run.finished"); e.Data["outcome"] != "cancelled" || len(objects(e.Data["voided"])) != 2 {
		t.Errorf("finished: %s", e.payload)
	}
	c.refused("no_pending_question", s, "approval.decide", obj{"tool_call_id": "w", "generation": g, "decision": "allow_once"})
	c.refused("no_pending_question", s, "question.answer", obj{"tool_call_id": "q", "answer": "a"})
	if strings.Contains(c.types(s), "approval.decided") {
		t.Error("a cancellation is no denial")
	}
	c.begin(s, obj{"prompt": "next"})
	c.audit(s)
}

// TestPark_LoopEndsOrPauses: on_park end ends the loop and its decisions go on
// as a plain run; pause keeps the counts for the successor.
func TestPark_LoopEndsOrPauses(t *testing.T) {
	c := common(t)
	for _, mode := range []string{"end", "pause"} {
		s := c.create("-" + mode)
		r := c.beginLoop(s, 3, 9, obj{"on_park": mode})
		r.answer(r.admit(), "one")
		r.calls(r.admit(), call{"w", "Write", "{}"})
		r.park("w")
		want := map[string]string{"end": "recovery_unsupported", "pause": "paused"}[mode]
		before := c.wantLoop(s, want, "2/1/2")
		c.decide(s, "w", "allow_once")
		q := c.claimNext(s)
		q.must("replay.start", nil)
		q.endTool("w", "ok")
		if mode == "end" {
			q.answer(q.admit(), "done")
			q.finish("ok")
			c.wantLoop(s, "recovery_unsupported", "2/1/2")
			c.audit(s)
			continue
		}
		l := c.wantLoop(s, "running", "2/1/2")
		if l["generation"] != before["generation"] || l["revision"] != before["revision"].(float64)+1 {
			t.Errorf("taken over: %v after %v", l, before)
		}
		if d := q.answer(q.admit(), "two"); d != "continue" {
			t.Errorf("decision %s", d)
		}
		q.answer(q.admit(), "three")
		q.finish("ok")
		c.wantLoop(s, "completed", "3/3/4")
		c.audit(s)
	}
}

// TestPark_QuestionsAreAnsweredOnce: by one of the options where no other answer
// is allowed; the loser of two learns it.
func TestPark_QuestionsAreAnsweredOnce(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"q", "Ask", "{}"})
	r.ask("q", "A", "B")
	c.refused("option_not_allowed", s, "question.answer", obj{"answer": "a"})
	c.refused("option_not_allowed", s, "question.answer", obj{"answer": "C"})
	c.refused("pending_question_mismatch", s, "question.answer", obj{"tool_call_id": "x", "answer": "A"})
	answers := make(chan string, 2)
	for _, a := range []string{"A", "B"} {
		go func() { x := c.do(s, "question.answer", obj{"answer": a}); answers <- x.event() + x.code() }()
	}
	if got := []string{<-answers, <-answers}; strings.Count(strings.Join(got, " "), "question.answered") != 1 || strings.Count(strings.Join(got, " "), "no_pending_question") != 1 {
		t.Errorf("two answers: %v", got)
	}
	q := c.claimNext(s)
	q.answer(q.admit(), "done")
	q.finish("ok")
	c.audit(s)
}

// TestPark_StopLetsNoReplayStart: after loop.stop the decided call of a paused
// loop is not handed out.
func TestPark_StopLetsNoReplayStart(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.beginLoop(s, 2, 5, obj{"on_park": "pause"})
	r.calls(r.admit(), call{"w", "Write", "{}"})
	r.park("w")
	c.decide(s, "w", "allow_once")
	q := c.claimNext(s)
	c.must(s, "loop.stop", nil)
	x := q.do("replay.start", nil)
	if x.OK && x.Result["replay"] != nil {
		t.Errorf("a replay behind the stop: %s", x.raw)
	}
	if n := c.count(s, "replay.started"); n != 0 {
		t.Errorf("%d replays", n)
	}
	q.finish("ok")
	c.wantLoop(s, "stopped", "1/0/1")
	c.audit(s)
}
