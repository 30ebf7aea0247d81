package blackbox

import (
	"fmt"
	"strings"
	"testing"
)

// TestLoop_RevisionIsTwoKPlusThree: a loop of K plain iterations, by single
// rounds and by admit_next.
func TestLoop_RevisionIsTwoKPlusThree(t *testing.T) {
	c := common(t)
	for _, k := range []int{1, 2, 100} {
		for _, admitNext := range []bool{false, true} {
			s := c.create(fmt.Sprintf("-%d-%t", k, admitNext))
			r := c.beginLoop(s, k, 1000)
			if admitNext {
				r.admit()
			}
			for i := range k {
				n := i
				if !admitNext {
					n = r.admit()
				}
				x := r.must("round.finish", obj{"round": n, "message": obj{"content": "x"}, "admit_next": admitNext})
				if i < k-1 && x.text("decision") != "continue" || i == k-1 && x.text("decision") != "finalize" {
					t.Fatalf("decision %d of %d: %s", i+1, k, x.raw)
				}
				if next, _ := x.Result["next"].(obj); admitNext && i < k-1 && (next["admitted"] != true || next["round"] != float64(n+1) || next["iteration"] != float64(i+2)) {
					t.Fatalf("next: %s", x.raw)
				}
			}
			r.finish("ok")
			l := c.wantLoop(s, "completed", fmt.Sprintf("%d/%d/%d", k, k, k))
			if l["revision"] != float64(2*k+3) {
				t.Errorf("K=%d: revision %v", k, l["revision"])
			}
			events := len(c.audit(s))
			if admitNext && events != k+5 || !admitNext && events != 2*k+4 {
				t.Errorf("K=%d, admit_next %t: %d events", k, admitNext, events)
			}
			if n := c.count(s, "run.finished"); n != 1 {
				t.Errorf("%d run.finished", n)
			}
		}
	}
}

// TestLoop_RepeatsStandAfterTheAnswer: with a tool round in each iteration, the
// next prompt appears only after the answer.
func TestLoop_RepeatsStandAfterTheAnswer(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.beginLoop(s, 2, 10)
	for i := range 2 {
		r.calls(r.admit(), call{"c", "Grep", "{}"})
		r.useTool("c")
		r.answer(r.admit(), fmt.Sprint("answer ", i))
	}
	r.finish("ok")
	c.wantLoop(s, "completed", "2/2/4")
	var roles []string
	for _, m := range objects(c.read(s).State["messages"]) {
		roles = append(roles, m["role"].(string))
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant user assistant tool assistant" {
		t.Errorf("transcript: %s", got)
	}
	c.audit(s)
}

// TestLoop_StartIsRefused: bounds with the run's budget, gold, a prompt that is
// not there, a second loop meanwhile.
func TestLoop_StartIsRefused(t *testing.T) {
	c := common(t)
	s := c.create("")
	loop := obj{"max_iterations": 5, "max_total_rounds": 20}
	c.refused("invalid_bounds", s, "run.request", obj{"prompt": "p", "loop": loop, "budget": obj{"max_rounds": 4}})
	c.refused("invalid_bounds", s, "run.request", obj{"prompt": "p", "loop": loop, "budget": obj{"max_rounds": 0}})
	c.refused("invalid_bounds", s, "run.request", obj{"prompt": "p", "loop": merge(loop, obj{"objective": " \n"})})
	c.refused("prompt_not_current_user", s, "run.request", obj{"loop": loop})
	c.must(s, "message.submit", obj{"content": "q"})
	c.refused("prompt_not_current_user", s, "run.request", obj{"loop": merge(loop, obj{"objective": "p"})})
	c.must(s, "session.configure", obj{"gold": obj{"enabled": true}})
	c.refused("gold_conflict", s, "run.request", obj{"loop": loop})
	c.must(s, "session.configure", obj{"gold": obj{"enabled": false}})
	r := c.begin(s, obj{"loop": loop, "budget": obj{"max_rounds": 7}})
	l := c.wantLoop(s, "running", "0/0/0")
	if l["max_total_rounds"] != 7.0 || l["objective"] != "q" {
		t.Errorf("effective loop: %v", l)
	}
	if x := c.nothing(s, "run.request", obj{"prompt": "p", "loop": loop}); x.Result["outcome"] != "already_running" || x.Result["run_id"] != r.id {
		t.Errorf("a loop while one runs: %s", x.raw)
	}
}

// TestLoop_EndsHaveDistinctReasons: how a loop ended can be read by a program.
func TestLoop_EndsHaveDistinctReasons(t *testing.T) {
	c := common(t)
	ends := map[string]func(*run){
		"failed": func(r *run) { r.answer(r.admit(), "one"); r.finish("ok") },
		"failed 2": func(r *run) {
			r.must("round.fail", obj{"round": r.admit(), "error": obj{"code": "overloaded", "message": "m", "retryable": false}})
			r.finish("error", obj{"error": obj{"code": "overloaded"}})
		},
		"cancelled": func(r *run) { r.admit(); r.c.must(r.session, "run.cancel", nil); r.finish("cancelled") },
		"stopped":   func(r *run) { r.admit(); r.c.must(r.session, "loop.stop", nil); r.answer(0, "one"); r.finish("ok") },
		"budget_exhausted": func(r *run) {
			r.admit()
			r.must("budget.exhaust", obj{"kind": "tokens"})
			r.answer(0, "one")
			r.finish("ok")
		},
		"budget_exhausted 2":   func(r *run) { r.admit(); r.finish("ok", obj{"completion_reason": "max_rounds_reached"}) },
		"recovery_unsupported": func(r *run) { r.admit(); r.finish("ok", obj{"completion_reason": "waiting_for_bash"}) },
	}
	for want, end := range ends {
		s := c.create("-" + strings.ReplaceAll(want, " ", ""))
		r := c.beginLoop(s, 3, 9)
		end(r)
		want, _, _ = strings.Cut(want, " ")
		if l := c.part(s, "loop"); l["status"] != want {
			t.Errorf("want %s: %v", want, l)
		}
		e := c.last(s, "run.finished")
		if loop, _ := e.Data["loop"].(obj); loop["status"] != want {
			t.Errorf("run.finished of %s: %s", want, e.payload)
		}
		r.refused("stale_run", "round.start", nil)
		c.audit(s)
	}
}

// TestLoop_RulesOfTheRound: one round at a time, answers only to the open one,
// a final answer only where an iteration is open.
func TestLoop_RulesOfTheRound(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.beginLoop(s, 2, 9)
	before := c.sequence(s)
	r.refused("round_not_open", "round.finish", obj{"round": 0, "message": obj{"content": "x"}})
	r.refused("round_not_open", "round.fail", obj{"round": 0, "error": obj{"code": "x"}})
	if c.sequence(s) != before {
		t.Error("a refusal wrote")
	}
	r.admit()
	r.refused("round_open", "round.start", nil)
	r.refused("round_not_open", "round.finish", obj{"round": 1, "message": obj{"content": "x"}})
	r.calls(0, call{"c", "Grep", "{}"})
	r.refused("calls_open", "round.start", nil)
	r.refused("no_such_call", "tool.start", obj{"tool_call_id": "d"})
	r.refused("call_not_open", "tool.finish", obj{"tool_call_id": "c", "success": true, "content": "x"})
	r.startTool("c")
	r.refused("call_not_open", "tool.start", obj{"tool_call_id": "c"})
	r.endTool("c", "x")
	r.refused("call_not_open", "tool.finish", obj{"tool_call_id": "c", "success": true, "content": "y"})
	r.admit()
	for _, wrong := range []obj{{"fence": 1}, {"fence": 999}, {"run_id": "nope"}} {
		r.refused("stale_run", "round.finish", merge(obj{"round": 1, "message": obj{"content": "late"}}, wrong))
	}
	c.audit(s)
}

// TestLoop_StopBeforeTheStart: the requested run ends, its claim is refused, and
// the session is free (a stop is idempotent and names a generation at will).
func TestLoop_StopBeforeTheStart(t *testing.T) {
	c := common(t)
	s := c.create("")
	id := c.must(s, "run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5}}).text("run_id")
	c.refused("generation_changed", s, "loop.stop", obj{"generation": "00000000-0000-4000-8000-000000000000"})
	c.must(s, "loop.stop", nil)
	c.nothing(s, "loop.stop", nil)
	c.refused("already_stopped", s, "run.claim", obj{"run_id": id, "runner": "r", "providers": []string{"test"}})
	r := c.beginLoop(s, 1, 1)
	generation := c.part(s, "loop")["generation"]
	c.refused("generation_changed", s, "loop.stop", obj{"generation": "00000000-0000-4000-8000-000000000000"})
	c.must(s, "loop.stop", obj{"generation": generation})
	r.notAdmitted("stopped")
	r.finish("ok")
	c.wantLoop(s, "stopped", "0/0/0")
	c.audit(s)
}

// TestLoop_PendingRepeatWaitsForAPerson: a loop that ended in the middle of
// iteration 2 blocks activations until a person's message is stored; one that
// ended in iteration 1 does not.
func TestLoop_PendingRepeatWaitsForAPerson(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.beginLoop(s, 3, 9)
	r.answer(r.admit(), "one")
	r.calls(r.admit(), call{"c", "Grep", "{}"})
	c.must(s, "loop.stop", nil)
	r.useTool("c")
	r.notAdmitted("stopped")
	r.finish("ok")
	c.wantLoop(s, "stopped", "2/1/2")
	at := c.sequence(s)
	c.refused("recovery_unsupported", s, "run.resume", nil)
	c.refused("recovery_unsupported", s, "run.request", obj{})
	if c.sequence(s) != at {
		t.Errorf("a refusal wrote: %s", c.types(s))
	}
	c.must(s, "message.submit", obj{"content": "go on"})
	c.must(s, "run.resume", nil)
	first := c.create("-first")
	q := c.beginLoop(first, 3, 9)
	q.calls(q.admit(), call{"c", "Grep", "{}"})
	c.must(first, "loop.stop", nil)
	q.useTool("c")
	q.notAdmitted("stopped")
	q.finish("ok")
	c.must(first, "run.resume", nil)
}

// TestLoop_NewLoopStartsAfresh: after a completed loop a new one has a new
// generation at revision 2, and a retry of the old start changes nothing.
func TestLoop_NewLoopStartsAfresh(t *testing.T) {
	c := common(t)
	s := c.create("")
	request := obj{"prompt": "p", "loop": obj{"max_iterations": 1, "max_total_rounds": 2}}
	first := c.must(s, "run.request", request, id("start"))
	r := c.claim(s, first.text("run_id"))
	r.answer(r.admit(), "x")
	r.finish("ok")
	old := c.part(s, "loop")["generation"]
	if again := c.must(s, "run.request", request, id("start")); again.first() != first.first() || c.part(s, "run") != nil {
		t.Errorf("a retry after the end: %s", again.raw)
	}
	c.begin(s, request)
	l := c.wantLoop(s, "running", "0/0/0")
	if l["generation"] == old || l["revision"] != 2.0 {
		t.Errorf("second loop: %v", l)
	}
}
