package blackbox

import (
	"fmt"
	"sync"
	"testing"
)

// TestRun_RequestResumeCancel: their outcomes in every state of a run.
func TestRun_RequestResumeCancel(t *testing.T) {
	c := common(t)
	s := c.create("")
	if x := c.nothing(s, "run.request", obj{}); x.Result["outcome"] != "nothing_pending" {
		t.Errorf("an empty session: %s", x.raw)
	}
	c.refused("no_such_run", s, "run.cancel", nil)
	c.must(s, "message.submit", obj{"content": "a"})
	x := c.must(s, "run.resume", nil)
	if c.last(s, "run.requested").Data["cause"] != "retry" {
		t.Error("cause of a resume")
	}
	c.refused("no_such_run", s, "run.cancel", obj{"run_id": "other"})
	c.must(s, "run.cancel", obj{"run_id": x.text("run_id")})
	if e := c.last(s, "run.finished"); e.Data["outcome"] != "cancelled" || c.part(s, "run") != nil {
		t.Errorf("a requested run was cancelled: %s", e.payload)
	}
	c.refused("no_such_run", s, "run.claim", obj{"run_id": x.text("run_id"), "runner": "r"})
	r := c.begin(s, obj{})
	c.must(s, "run.cancel", nil)
	c.nothing(s, "run.cancel", nil)
	if x := r.must("run.renew", nil); x.Result["cancel_requested"] != true || x.Event != nil {
		t.Errorf("renew: %s", x.raw)
	}
	r.finish("cancelled")
	if n := c.count(s, "run.finished"); n != 2 {
		t.Errorf("%d run.finished", n)
	}
	c.audit(s)
}

// TestRun_CancelLetsNothingStart: after run.cancel is accepted no round, no tool
// and no replay starts; the call that runs may end.
func TestRun_CancelLetsNothingStart(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"a", "Grep", "{}"}, call{"b", "Grep", "{}"})
	r.startTool("a")
	c.must(s, "run.cancel", nil)
	r.refused("cancel_requested", "tool.start", obj{"tool_call_id": "b"})
	r.refused("cancel_requested", "replay.start", nil)
	r.endTool("a", "x")
	x := r.do("round.start", nil)
	if x.OK && x.Result["reason"] != "cancel_requested" || !x.OK && x.code() != "cancel_requested" && x.code() != "calls_open" {
		t.Errorf("round.start: %s", x.raw)
	}
	r.finish("cancelled")
	e := c.last(s, "run.finished")
	if v := objects(e.Data["voided"]); len(v) != 1 || v[0]["tool_call_id"] != "b" {
		t.Errorf("voided: %s", e.payload)
	}
	c.audit(s)
}

// TestRun_CancelAgainstAdmission: whatever comes first wins; there is never a
// start behind an accepted cancellation.
func TestRun_CancelAgainstAdmission(t *testing.T) {
	c := common(t)
	for i := range 60 {
		s := c.create(fmt.Sprint("-", i))
		r := c.beginLoop(s, 2, 4)
		var both sync.WaitGroup
		both.Go(func() { c.do(s, "run.cancel", nil) })
		both.Go(func() { r.do("round.start", nil) })
		both.Wait()
		cancelled := false
		for _, e := range c.stream(s) {
			cancelled = cancelled || e.Type == "run.cancel_requested"
			if cancelled && e.Type == "round.started" {
				t.Fatalf("%s: a round behind the cancellation: %s", s, c.types(s))
			}
		}
	}
}

// TestRun_StaysTheClaimersAlone: claims of a run, and who may claim.
func TestRun_StaysTheClaimersAlone(t *testing.T) {
	c := common(t)
	s := c.create("")
	id := c.must(s, "run.request", obj{"prompt": "p"}).text("run_id")
	c.refused("provider_not_held", s, "run.claim", obj{"run_id": id, "runner": "r", "providers": []string{"other"}})
	c.refused("provider_not_held", s, "run.claim", obj{"run_id": id, "runner": "r", "providers": []string{}})
	c.refused("invalid_command", s, "run.claim", obj{"run_id": id, "runner": "a b"})
	r := c.claim(s, id)
	for _, field := range []string{"fence", "lease_ms", "cause", "roster", "replays"} {
		if _, ok := r.claimed.Result[field]; !ok {
			t.Errorf("claim has no %s: %s", field, r.claimed.raw)
		}
	}
	if r.fence != float64(r.claimed.Event.Sequence) {
		t.Errorf("the fence is the sequence of run.started: %s", r.claimed.raw)
	}
	if x := c.refused("already_claimed", s, "run.claim", obj{"run_id": id, "runner": "r2", "providers": []string{"test"}}); x.Event != nil {
		t.Errorf("%s", x.raw)
	}
	r.must("run.refuse", obj{"code": "no_disk", "message": "m"})
	if c.part(s, "run") != nil {
		t.Error("a refused run is still there")
	}
	r.refused("stale_run", "round.start", nil)
	c.audit(s)
}

// TestRun_BudgetOfAPlainRun: when it is spent exactly one summary round follows.
func TestRun_BudgetOfAPlainRun(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p", "budget": obj{"max_rounds": 2}})
	for range 2 {
		r.calls(r.admit(), call{"c", "Grep", "{}"})
		r.useTool("c")
	}
	rounds := 0
	for ; rounds < 5; rounds++ {
		x := r.must("round.start", nil)
		if x.Result["admitted"] != true {
			if x.Result["reason"] != "budget_exhausted" {
				t.Errorf("reason: %s", x.raw)
			}
			break
		}
		r.answer(int(x.Result["round"].(float64)), "summary")
	}
	if rounds > 1 {
		t.Errorf("%d rounds behind the budget: %s", rounds, c.types(s))
	}
	r.finish("ok")
	if e := c.last(s, "run.finished"); e.Data["completion_reason"] == nil {
		t.Errorf("the reason is told: %s", e.payload)
	}
	c.audit(s)
}

// TestRun_ExhaustedByTheRunner: budget.exhaust of a plain run leaves one summary
// round, of a loop none.
func TestRun_ExhaustedByTheRunner(t *testing.T) {
	c := common(t)
	plain := c.create("-plain")
	r := c.begin(plain, obj{"prompt": "p"})
	r.calls(r.admit(), call{"c", "Grep", "{}"})
	r.useTool("c")
	if x := r.must("budget.exhaust", obj{"kind": "tokens"}); x.event() != "run.budget_exhausted" {
		t.Errorf("exhaust: %s", x.raw)
	}
	r.answer(r.admit(), "summary")
	r.notAdmitted("budget_exhausted")
	r.finish("ok")
	loop := c.create("-loop")
	q := c.beginLoop(loop, 2, 9)
	q.calls(q.admit(), call{"c", "Grep", "{}"})
	q.useTool("c")
	if x := q.must("budget.exhaust", obj{"kind": "tokens"}); x.event() != "loop.budget_exhausted" {
		t.Errorf("exhaust: %s", x.raw)
	}
	x := q.must("round.start", nil)
	if x.Result["admitted"] != false {
		t.Errorf("a round of a spent loop: %s", x.raw)
	}
	q.refused("invalid_command", "budget.exhaust", obj{"kind": "money"})
	q.finish("ok")
	c.wantLoop(loop, "budget_exhausted", "1/0/1")
	c.audit(plain)
	c.audit(loop)
}

// TestRun_UsageAddsUp: tokens of all rounds, in the state and at the end.
func TestRun_UsageAddsUp(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	for range 3 {
		r.must("round.finish", obj{"round": r.admit(), "message": obj{"content": "", "tool_calls": []obj{{"id": "c", "name": "Grep", "arguments": "{}"}}}, "usage": obj{"prompt": 10, "completion": 5, "total": 15}, "attempts": 2, "finish_reason": "tool_calls"})
		r.useTool("c")
	}
	r.answer(r.admit(), "done")
	r.finish("ok")
	if u, _ := c.last(s, "run.finished").Data["usage"].(obj); u["total"] != 45.0 {
		t.Errorf("usage: %v", u)
	}
	if u := c.part(s, "usage"); u["total"] != 45.0 {
		t.Errorf("usage of the session: %v", u)
	}
}
