package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/events"
)

const sampleState = `{
 "session":{"title":"Tidy \u001b[2J up","model":{"provider":"recorded","model":"sample"},"mode":"auto","plan":{"entered_at":"2026-11-30T12:00:00Z"},"created_at":"2026-11-30T12:00:00Z","new_field":1},
 "run":{"run_id":"r1","status":"live","runner":"runner-1","round":2,"cancel_requested":true},
 "loop":{"generation":"g1","revision":4,"status":"running","owner_execution_id":"r1","objective":"Fix\nit","max_iterations":5,"max_total_rounds":20,"iterations_started":2,"iterations_completed":1,"rounds_started":7},
 "pending":[{"tool_call_id":"c1","kind":"approval","name":"write","generation":"g7","question":{"question":"May write?"}},{"tool_call_id":"c2","kind":"unknown","name":"grep","question":{"question":"Ran grep?"}}],
 "replays":[{}],"usage":{"prompt":1000,"completion":204,"total":1204},
 "messages":[{"role":"user","origin":"person","content":"Fix\nit \u001b[31m","seq":2},
  {"role":"assistant","origin":"model","content":"","tool_calls":[{"id":"c1","name":"grep","arguments":"{\"a\":1}"}],"seq":4},
  {"role":"tool","origin":"tool","content":"no","success":false,"seq":6}]}`

func TestStateInWords(t *testing.T) {
	want := `session    demo, “Tidy \x1b[2J up”
birth      01BIRTH
events     9, head 9:ab12
created    2026-11-30 12:00:00 (1 hour ago)
model      recorded/sample
mode       auto, plan mode: nothing may be changed
run        under way at runner-1, round 3, cancel requested (r1)
loop       running: iteration 2 of 5, round 7 of 20, 1 done
objective  “Fix it”
generation g1, revision 4
waits      write (call c1) for approval: “May write?” (generation g7)
waits      grep (call c2) its outcome is not known: “Ran grep?”
decided    1 call to run at the next resume
usage      1,204 tokens (1,000 in, 204 out)
`
	r := culm(t, &fake{state: sampleState}, "session", "show", "demo")
	messages := strings.Index(r.out, "\n[2]")
	if diff := cmp.Diff(want, r.out[:messages]); diff != "" || r.status != exitOK {
		t.Errorf("status %d (-want +got):\n%s", r.status, diff)
	}
	wantMessages := `
[2] user, person
    Fix
    it \x1b[31m

[4] assistant, model
    calls grep {"a":1}

[6] tool, failed
    no
`
	if diff := cmp.Diff(wantMessages, r.out[messages:]); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestStateOfAnEmptySession(t *testing.T) {
	r := culm(t, &fake{state: `{"session":{},"run":null,"loop":null,"pending":[]}`}, "state", "demo", "--at", "1")
	if r.status != exitOK || !strings.Contains(r.out, "run        none") {
		t.Errorf("status %d, %q, %q", r.status, r.out, r.err)
	}
}

// A run that waits for a person belongs to no runner.
func TestStateOfASuspendedRun(t *testing.T) {
	r := culm(t, &fake{state: `{"session":{},"run":{"run_id":"r1","status":"suspended","runner":"runner-1","round":1},"pending":[]}`}, "state", "demo")
	if !strings.Contains(r.out, "run        waits for a person, round 2 (r1)\n") {
		t.Errorf("%q", r.out)
	}
}

func TestLoopStatus(t *testing.T) {
	r := culm(t, &fake{state: sampleState}, "loop", "status", "demo")
	if !strings.HasPrefix(r.out, "loop       running: iteration 2 of 5, round 7 of 20, 1 done\n") {
		t.Errorf("got %q", r.out)
	}
	if r := culm(t, &fake{state: `{}`}, "loop", "status", "demo"); !strings.Contains(r.out, "culm loop start demo") {
		t.Errorf("without a loop it says %q", r.out)
	}
	if r := culm(t, &fake{state: `{}`}, "loop", "status", "demo", "--json"); r.out != "null\n" {
		t.Errorf("without a loop the JSON is %q", r.out)
	}
}

// After an interrupted run it is said what goes on; where something waits, or a
// loop blocks, that comes first.
func TestStateAfterAnInterruptedRun(t *testing.T) {
	interrupted := story(t, "demo", events.SessionCreated{Kind: "root"}, events.RunRequested{RunID: "r1", Cause: "user"}, events.RunStarted{RunID: "r1"},
		events.RunInterrupted{RunID: "r1", Code: "lease_expired"}, events.NoteAppended{Kind: "x", Data: []byte(`{}`)})
	finished := append(interrupted[:len(interrupted):len(interrupted)], story(t, "demo", events.SessionCreated{Kind: "root"}, events.NoteAppended{Kind: "x", Data: []byte(`{}`)}, events.NoteAppended{Kind: "x", Data: []byte(`{}`)},
		events.NoteAppended{Kind: "x", Data: []byte(`{}`)}, events.NoteAppended{Kind: "x", Data: []byte(`{}`)}, events.RunFinished{RunID: "r2", Outcome: "completed"})[5])
	const line = "run        none; last run interrupted (lease expired: nothing was heard of its runner)"
	for name, c := range map[string]struct {
		state  string
		stored []events.Record
		want   string
	}{
		"interrupted":     {`{"run":null}`, interrupted, line + "; culm resume demo goes on\n"},
		"something waits": {`{"run":null,"pending":[{"tool_call_id":"u","kind":"unknown","name":"Bash"}]}`, interrupted, line + "; culm pending demo tells what waits for you\n"},
		"a loop's":        {`{"run":null,"loop":{"status":"running","owner_execution_id":"r1"}}`, interrupted, line + "\nloop       blocked: "},
		"another since":   {`{"run":null}`, finished, "run        none\n"},
		"under way":       {`{"run":{"run_id":"r1","status":"live"}}`, interrupted, "run        under way (r1)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{state: c.state, stored: map[string][]events.Record{"demo": c.stored}}
			if r := culm(t, f, "session", "show", "demo"); !strings.Contains(r.out, c.want) {
				t.Errorf("it says\n%s", r.out)
			}
		})
	}
}

// Nothing to resume while a person is awaited: it is said who has the word.
func TestResumeWhileAPersonIsAwaited(t *testing.T) {
	for state, want := range map[string]string{
		waits(parked("c1", "{}")): "nothing goes on until you decide: 1 call waits for a person; culm pending demo\n",
		waits():                   "nothing is pending; culm run demo \"…\" gives it something to do\n",
	} {
		f := &fake{state: state, replies: []aggregate.Reply{{OK: true, Sequence: 9, Result: []byte(`{"outcome":"nothing_pending"}`)}}}
		if r := culm(t, f, "resume", "demo", "-f"); r.status != exitOK || r.out != want {
			t.Errorf("status %d, %q", r.status, r.out)
		}
	}
}

// No command creates the policy's session, so there is no time to tell.
func TestASessionThatNobodyCreated(t *testing.T) {
	if r := culm(t, &fake{state: `{"session":{"mode":"default"}}`}, "state", "_settings"); r.status != exitOK || strings.Contains(r.out, "created") || !strings.Contains(r.out, "mode       default\n") {
		t.Errorf("status %d, %s%s", r.status, r.out, r.err)
	}
}
