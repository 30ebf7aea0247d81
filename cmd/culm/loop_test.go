package main

import (
	"strings"
	"testing"

	"culm/aggregate"
	"culm/events"
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
		"lost, not acknowledged":     {"loop continue demo", lost, stored, exitUsage, "the loop blocks the session: its run was interrupted, and nobody knows how the last step ended: Bash (call u); look at it (culm log demo)", ""},
		"no owner, not acknowledged": {"loop abandon demo", orphan, stored, exitUsage, "its run was interrupted", ""},
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

// How a loop stands, and the next step, in the words of its reason: a call that
// had to wait is no lost runner.
func TestHowALoopStands(t *testing.T) {
	const bounds = `"generation":"g1","max_iterations":3,"max_total_rounds":30,"iterations_started":1,"rounds_started":1`
	waits := `,"pending":[{"tool_call_id":"c1","kind":"approval","name":"Write"}]`
	out := "culm loop continue demo --ack or culm loop abandon demo --ack"
	for name, c := range map[string]struct{ state, stand, status string }{
		"parked": {
			`{"run":null,"loop":{` + bounds + `,"status":"recovery_unsupported","reason":"parked"}}`,
			"loop blocked at 0 of 3 iterations: it ended in the middle of an iteration, when a call had to wait for a person; next: " + out, "loop       blocked: iteration 1 of 3, round 1 of 30, 0 done (parked)\nblocked    it ended",
		},
		"parked, and it waits": {
			`{"run":null,"loop":{` + bounds + `,"status":"recovery_unsupported","reason":"parked"}` + waits + `}`,
			"next: culm pending demo, then " + out, "; culm pending demo, then " + out,
		},
		"interrupted": {
			`{"run":null,"loop":{` + bounds + `,"status":"running","owner_execution_id":"r1"}}`,
			"loop blocked at 0 of 3 iterations: its run was interrupted, ", "loop       blocked: iteration 1 of 3, round 1 of 30, 0 done\nblocked    its run was interrupted, and nobody knows how the last step ended; " + out + "\n",
		},
		"paused": {
			`{"run":{"run_id":"r1","status":"suspended"},"loop":{` + bounds + `,"status":"paused","reason":"parked"}` + waits + `}`,
			"loop paused at 0 of 3 iterations; next: culm pending demo", "loop       paused: ",
		},
		"paused, decided": {
			`{"run":null,"loop":{` + bounds + `,"status":"paused","reason":"parked"}}`,
			"loop paused at 0 of 3 iterations; next: culm resume demo", "loop       paused: ",
		},
		"live":      {`{"run":{"run_id":"r1","status":"live"},"loop":{` + bounds + `,"status":"running","owner_execution_id":"r1"}}`, "", "loop       running: "},
		"abandoned": {`{"run":null,"loop":{` + bounds + `,"status":"recovery_unsupported","reason":"parked","abandoned":true}}`, "", "loop       recovery unsupported: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{state: c.state, live: loopOfOne(t, events.RunFinished{RunID: "r1", Outcome: "failed"}), replies: []aggregate.Reply{{
				OK: true, Sequence: 2, Event: &aggregate.EventRef{Sequence: 2}, Result: []byte(`{"outcome":"requested","run_id":"r1"}`),
			}}}
			r := culm(t, f, "loop", "start", "demo", "go", "-n", "3", "--follow")
			last := r.out[strings.LastIndex(strings.TrimSuffix(r.out, "\n"), "\n")+1:]
			if c.stand == "" && strings.HasPrefix(last, "loop ") || !strings.Contains(last, c.stand) {
				t.Errorf("followed, the last line is %q", last)
			}
			for _, text := range []string{culm(t, f, "loop", "status", "demo").out, culm(t, f, "session", "show", "demo").out} {
				if !strings.Contains(text, c.status) || strings.Contains(text, "runner was lost") {
					t.Errorf("it says\n%s", text)
				}
			}
		})
	}
}

// A stop that changes nothing says that a blocked loop wants another word.
func TestStoppingALoopThatDoesNotGoOn(t *testing.T) {
	for state, want := range map[string]string{
		`{"loop":{"generation":"g1","status":"recovery_unsupported","reason":"parked","max_iterations":3}}`: "nothing to stop: loop blocked at 0 of 3 iterations: it ended in the middle of an iteration, when a call had to wait for a person; " +
			"next: culm loop continue demo --ack or culm loop abandon demo --ack\n",
		`{"loop":{"generation":"g1","status":"completed"}}`: "the loop is stopping or has ended already\n",
	} {
		r := culm(t, &fake{state: state, replies: []aggregate.Reply{{OK: true}}}, "loop", "stop", "demo")
		if r.status != exitOK || r.out != want || r.err != "" {
			t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
		}
	}
}

// A refusal that a loop stands in the way is told by what became of the loop.
func TestARunThatABlockedLoopRefuses(t *testing.T) {
	no := aggregate.Reply{Error: &aggregate.Error{Code: aggregate.CodeRecoveryUnsupported, Message: "as the engine says"}}
	for state, want := range map[string]string{
		`{"loop":{"generation":"g1","status":"recovery_unsupported","reason":"parked"}}`: "culm: refused, recovery_unsupported: the loop blocks the session: it ended in the middle of an iteration, when a call had to wait for a person\n" +
			"      culm loop continue demo --ack or culm loop abandon demo --ack\n",
		`{"loop":{"generation":"g1","status":"cancelled"}}`: "culm: refused, recovery_unsupported: as the engine says\n      culm run demo \"…\" does both\n",
	} {
		if r := culm(t, &fake{state: state, replies: []aggregate.Reply{no}}, "resume", "demo"); r.status != exitFailed || r.err != want {
			t.Errorf("status %d, %q", r.status, r.err)
		}
	}
}
