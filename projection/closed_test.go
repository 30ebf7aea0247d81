package projection

import (
	"maps"
	"testing"

	"culm/events"
)

// TestProjector_ClosedSessionWaitsForNobody: what the rules refuse to decide
// stands in no inbox. One call is unknown when the session is closed, one
// becomes so by that.
func TestProjector_ClosedSessionWaitsForNobody(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 26)
	call := func(session string) fields {
		h.give(session, "session.create", fields{})
		h.give(session, "run.request", fields{"prompt": "go"})
		h.give(session, "run.claim", fields{"run_id": h.states[session].Run.ID, "runner": "r"})
		run := fields{"run_id": h.states[session].Run.ID, "fence": h.states[session].Run.Fence}
		with := func(f fields) fields { f["run_id"], f["fence"] = run["run_id"], run["fence"]; return f }
		h.give(session, "round.start", with(fields{}))
		h.give(session, "round.finish", with(fields{"round": 0, "message": fields{"content": "", "tool_calls": []fields{{"id": "c", "name": "rm", "arguments": ""}}}}))
		h.give(session, "tool.start", with(fields{"tool_call_id": "c"}))
		return with(fields{"outcome": "error"})
	}
	h.give("before", "run.finish", call("before"))
	call("by")
	o := options(t, log)
	r := start(t, o).awaitReady()
	page, err := r.Approvals(t.Context(), ApprovalsQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Kind != "unknown" {
		t.Fatalf("waiting before: %+v, %v", page.Items, err)
	}
	for _, session := range []string{"before", "by"} {
		if !h.give(session, "session.close", fields{}) {
			t.Fatal("not closed")
		}
		if h.give(session, "tool.resolve", fields{"tool_call_id": "c", "generation": h.states[session].Calls[0].Generation, "success": true, "content": "x"}) {
			t.Error("the rules resolve calls of closed sessions: then these should wait")
		}
	}
	r.await(log)
	if page, err = r.Approvals(t.Context(), ApprovalsQuery{}); err != nil || len(page.Items) != 0 {
		t.Errorf("waiting after: %+v, %v", page.Items, err)
	}
	page, err = r.Approvals(t.Context(), ApprovalsQuery{Status: "decided"})
	got := map[string]string{}
	for _, i := range page.Items {
		got[i.Session] = i.Decision
	}
	if err != nil || !maps.Equal(got, map[string]string{"before": "voided", "by": "session_closed"}) {
		t.Errorf("decided: %v, %v", got, err)
	}
	check(t, o.File, log)
}
