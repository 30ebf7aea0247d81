package aggregate

import (
	"fmt"
	"testing"
)

// The same remembered decision again, without a matcher: it means the exact
// resource, also where the call suggested that under an id of its own.
func TestApproval_AgainWithoutAMatcher(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"allow_session", "deny_session", "allow_workspace", "allow_global"} {
		for _, kind := range []string{"exact_resource", "path_subtree"} {
			b := newBench(t)
			e := b.engine()
			e.must("s", "session.create", obj{"workspace": "/w"})
			h := e.start("s", obj{"prompt": "p"})
			h.callTools(0, "a")
			matchers := []obj{{"id": "m1", "kind": "exact_resource", "pattern": "/w/a"}, {"id": "m2", "kind": "path_subtree", "pattern": "/w"}}
			r := h.must("tool.park", obj{"tool_call_id": "a", "question": "May it?", "request": obj{
				"tool_name": "Write", "permission_type": "write_file", "resource": "/w/a", "suggested_matchers": matchers,
				"allowed_decisions": []string{"allow_once", "deny_once", decision},
			}})
			body := obj{"tool_call_id": "a", "generation": text(result(t, r), "generation"), "decision": decision, "expected_policy_revision": b.fold("s").call("a").Parked.Request.PolicyRevision, "confirm_global": true}
			first := obj{}
			for k, v := range body {
				first[k] = v
			}
			if kind == "path_subtree" {
				first["matcher_id"] = "m2"
			}
			e.must("s", "approval.decide", first)
			again := e.do("s", "approval.decide", body)
			if kind == "exact_resource" {
				if !again.OK || again.Event != nil || result(t, again)["replayed"] != true {
					t.Errorf("%s of %s: %s %s", decision, kind, again.Result, fmt.Sprint(again.Error))
				}
			} else if again.OK || again.Error.Code != CodeAlreadyDecided {
				t.Errorf("%s of %s: %+v", decision, kind, again)
			}
		}
	}
}
