package main

import (
	"strings"
	"testing"

	"culm/aggregate"
)

// What is said about a loop is what the engine says, with or without the
// acknowledgement; it is wanted only where there is something to acknowledge.
func TestWhatBecomesOfALoop(t *testing.T) {
	lost := `{"run":null,"loop":{"generation":"g1","status":"recovery_unsupported","reason":"owner_lost"},"pending":[{"tool_call_id":"u","kind":"unknown","name":"Bash"}]}`
	parked := `{"run":null,"loop":{"generation":"g1","status":"recovery_unsupported","reason":"parked"}}`
	orphan := `{"run":null,"loop":{"generation":"g1","status":"running","owner_execution_id":"r1"}}`
	live := `{"run":{"run_id":"r1","status":"live"},"loop":{"generation":"g1","status":"running","owner_execution_id":"r1"}}`
	done := `{"run":null,"loop":{"generation":"g1","status":"completed"}}`
	abandoned := `{"run":null,"loop":{"generation":"g1","status":"recovery_unsupported","abandoned":true}}`
	refuse := func(code string) aggregate.Reply {
		return aggregate.Reply{Error: &aggregate.Error{Code: code, Message: "as the engine says"}}
	}
	nothing := aggregate.Reply{OK: true, Sequence: 9}
	stored := aggregate.Reply{OK: true, Sequence: 10, Event: &aggregate.EventRef{Sequence: 10}, Result: []byte(`{"outcome":"requested","run_id":"r2"}`)}
	for name, c := range map[string]struct {
		args, state string
		reply       aggregate.Reply
		status      int
		want        string
		sent        string // how it is sent: "", "as it stands" or "whatever comes"
	}{
		"lost, not acknowledged":     {"loop continue demo", lost, stored, exitUsage, "the loop's runner was lost, and nobody knows how the last step ended: Bash (call u); look at it (culm log demo)", ""},
		"no owner, not acknowledged": {"loop abandon demo", orphan, stored, exitUsage, "the loop's runner was lost", ""},
		"parked, not acknowledged":   {"loop continue demo", parked, stored, exitUsage, "when a call had to wait for a person", ""},
		"lost":                       {"loop continue demo --ack", lost, stored, exitOK, "run requested", "whatever comes"},
		"lost, abandoned":            {"loop abandon demo --acknowledge-unknown", lost, stored, exitOK, "loop abandoned; session demo is free", "whatever comes"},
		"live":                       {"loop continue demo", live, refuse("ownership_not_current"), exitFailed, "ownership_not_current: as the engine says", "as it stands"},
		"completed":                  {"loop continue demo", done, refuse("no_loop"), exitFailed, "no_loop: as the engine says", "as it stands"},
		"completed, abandoned":       {"loop abandon demo --ack", done, nothing, exitOK, "nothing to abandon: the loop is completed and blocks nothing\n", "whatever comes"},
		"abandoned before":           {"loop abandon demo", abandoned, nothing, exitOK, "the loop was abandoned before; nothing changes\n", "as it stands"},
		"no loop":                    {"loop abandon demo", `{}`, nothing, exitFailed, "no_loop: the session has no loop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{state: c.state, replies: []aggregate.Reply{c.reply}}
			r := culm(t, f, strings.Fields(c.args)...)
			if r.status != c.status || !strings.Contains(r.out+r.err, c.want) {
				t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
			}
			if r.status == exitUsage && !strings.Contains(r.err, "see culm loop ") {
				t.Errorf("the hint is another command's: %q", r.err)
			}
			sent := ""
			if len(f.sent) > 0 {
				sent = "whatever comes"
				if e := f.sent[0].opts.Expected; e != nil && *e == 9 {
					sent = "as it stands"
				}
			}
			if sent != c.sent {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
		})
	}
}
