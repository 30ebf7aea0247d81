package blackbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestExpiry_ByTheConfigurationIsNoDecision: an item that nobody decides within
// permissions.question_lifetime expires by the engine's own fact, also where it
// was parked before a restart. That is neither an approval nor a denial: nothing
// runs, the call has a failed result, a late decision finds nothing, and the
// round goes on in a successor run.
func TestExpiry_ByTheConfigurationIsNoDecision(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "engine.yaml")
	must(t, os.WriteFile(file, []byte("permissions:\n  question_lifetime: 10s\n"), 0o600))
	e := start(t, "--config", file)
	s := e.create("")
	r := e.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"w", "Write", "{}"}, call{"q", "Ask", "{}"})
	r.park("w")
	r.ask("q", "A", "B")
	waiting := e.pending(s)
	if len(waiting) != 2 {
		t.Fatalf("pending: %v", waiting)
	}
	generation := waiting[0]["generation"]
	for _, item := range waiting {
		if item["expires_at"] == nil {
			t.Errorf("waits without an end: %v", item)
		}
	}
	e.kill()
	e.up(t)
	if x := e.awaitMany(s, "question.expired", 2); x.Actor != "_engine" || x.Data["run_id"] == nil {
		t.Errorf("expired: %s", x.payload)
	}
	e.refused("no_pending_question", s, "approval.decide", obj{"tool_call_id": "w", "generation": generation, "decision": "allow_once"})
	e.refused("no_pending_question", s, "question.answer", obj{"tool_call_id": "q", "answer": "A"})
	q := e.claimNext(s)
	if x := q.must("replay.start", nil); x.Result["replay"] != nil {
		t.Errorf("an expired call is replayed: %s", x.raw)
	}
	q.answer(q.admit(), "done")
	q.finish("ok")
	for _, kind := range []string{"approval.decided", "question.answered", "tool.denied", "tool.started", "replay.started"} {
		if n := e.count(s, kind); n != 0 {
			t.Errorf("%d %s", n, kind)
		}
	}
	for _, m := range objects(e.read(s).State["messages"]) {
		if m["role"] == "tool" && m["success"] != false {
			t.Errorf("result: %v", m)
		}
	}
	e.audit(s)
}
