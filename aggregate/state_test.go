package aggregate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestState_CloneIsIndependent: folding on does not show in a copy taken at any
// point of a session with a loop, decisions and a remembered one.
func TestState_CloneIsIndependent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 6, "on_park": "pause"}})
	e.must("s", "session.configure", obj{"metadata": obj{"a": "1"}})
	h.callTools(0, "v", "w")
	v, w := h.park("v"), h.park("w")
	e.must("s", "approval.decide", obj{"tool_call_id": "v", "generation": v, "decision": "allow_once"})
	e.must("s", "approval.decide", obj{"tool_call_id": "w", "generation": w, "decision": "deny_once"})
	e.must("s", "session.configure", obj{"metadata": obj{"b": "2"}})
	e.must("s", "session.enter_plan", nil)
	h = e.claim("s", b.fold("s").Run.ID)
	h.must("replay.start", nil)
	h.must("round.start", nil)
	h.must("round.finish", obj{"round": 0, "message": obj{"content": "x"}, "admit_next": true})
	e.must("s", "session.close", nil)
	log := b.records("s")
	for k := range log {
		s := mustFold(t, log[:k])
		c := s.Clone()
		if err := s.FoldOn(sequence(log[k:])); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mustFold(t, log[:k]), c, stateOptions...); diff != "" {
			t.Fatalf("a copy at %d changed (-then +now):\n%s", k, diff)
		}
	}
}

// In a closed session nothing waits for a person, who could not decide it any
// more; a call that ran when it was closed stays listed as unknown.
func TestView_OfAClosedSessionHasNothingPending(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	h.callTools(0, "parked", "started")
	h.park("parked")
	h.must("tool.start", obj{"tool_call_id": "started"})
	if v := b.fold("s").View(); len(v.Pending) != 1 {
		t.Fatalf("%d pending", len(v.Pending))
	}
	e.must("s", "session.close", nil)
	v := b.fold("s").View()
	if len(v.Pending) != 0 || len(v.Unknown) != 1 || v.Unknown[0].ToolCallID != "started" || v.Unknown[0].Generation == "" {
		t.Errorf("pending %+v, unknown %+v", v.Pending, v.Unknown)
	}
	e.refused(CodeSessionClosed, "s", "tool.resolve", obj{"tool_call_id": "started", "success": true, "content": "x"})
	e.refused(CodeSessionClosed, "s", "approval.decide", obj{"tool_call_id": "started", "generation": v.Unknown[0].Generation, "decision": "allow_once"})
}
