package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/events"
)

func loopAt(status events.LoopStatus, started, completed, rounds uint32) events.Loop {
	return events.Loop{Generation: "g", Revision: 2, Status: status, IterationsStarted: started, IterationsCompleted: completed, RoundsStarted: rounds}
}

// loopOfOne is a session in which run r1 executes a loop of one iteration.
func loopOfOne(t *testing.T, last events.Data) []events.Record {
	t.Helper()
	running := loopAt(events.StatusRunning, 1, 0, 1)
	return story(
		t, "demo", events.SessionCreated{Kind: "root"},
		events.RunRequested{RunID: "r1", Cause: "user", LoopRequest: &events.LoopRequest{MaxIterations: 1, MaxTotalRounds: 5}, Message: &events.UserMessage{Content: "go"}},
		events.RunStarted{RunID: "r1", Loop: &events.LoopStart{Loop: loopAt(events.StatusRunning, 0, 0, 0), MaxIterations: 1, MaxTotalRounds: 5}},
		events.RoundStarted{RunID: "r1", Admission: events.Admission{Iteration: 1}, Loop: &running},
		events.RunFinished{RunID: "another", Outcome: "failed"},
		last,
	)
}

func TestFollowEndsWithTheRun(t *testing.T) {
	done, spent, stopped := loopAt(events.StatusCompleted, 1, 1, 1), loopAt(events.StatusBudgetExhausted, 1, 0, 5), loopAt(events.StatusStopped, 1, 1, 1)
	for name, c := range map[string]struct {
		last   events.Data
		status int
		err    string
	}{
		"completed":       {events.RunFinished{RunID: "r1", Outcome: "completed", Loop: &done}, exitOK, ""},
		"stopped":         {events.RunFinished{RunID: "r1", Outcome: "completed", Loop: &stopped}, exitOK, ""},
		"out of budget":   {events.RunFinished{RunID: "r1", Outcome: "completed", Loop: &spent}, exitFailed, "the loop ended as budget exhausted"},
		"failed":          {events.RunFinished{RunID: "r1", Outcome: "failed"}, exitFailed, "the run ended as failed"},
		"refused":         {events.RunRefused{RunID: "r1", Code: "c", Message: "m"}, exitFailed, "refused, c: m"},
		"interrupted":     {events.RunInterrupted{RunID: "r1"}, exitFailed, "interrupted"},
		"closed":          {events.SessionClosed{}, exitFailed, "closed"},
		"before it began": {events.LoopStopRequested{RunID: "r1"}, exitFailed, "before the loop began"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{live: loopOfOne(t, c.last), replies: []aggregate.Reply{{
				OK: true, Sequence: 2, Event: &aggregate.EventRef{Sequence: 2}, Result: []byte(`{"outcome":"requested","run_id":"r1"}`),
			}}}
			r := culm(t, f, "loop", "start", "demo", "go", "-n", "1", "--follow")
			if r.status != c.status || !strings.Contains(r.err, c.err) {
				t.Errorf("status %d, err %q", r.status, r.err)
			}
			if n := strings.Count(r.out, "\n"); n != 5 || strings.Contains(r.out, "session created") || !strings.Contains(r.out, "iteration 1 of 1 admitted (round 1 of 5)") {
				t.Errorf("it shows\n%s", r.out)
			}
		})
	}
}

func TestRunEnd_suspension(t *testing.T) {
	w := runEnd{run: "r1"}
	other := events.Event{Run: "r2", Data: events.ToolParked{Suspends: true}}
	if w.sees(&other) {
		t.Error("another run's suspension ends it")
	}
	for _, d := range []events.Data{
		events.ToolDenied{Suspends: true}, events.ToolFinished{Suspends: true}, events.ToolParked{Suspends: true},
		events.ReplayFinished{Suspends: true}, events.ReplayBlocked{Suspends: true}, events.ReplayReparked{Suspends: true},
	} {
		w := runEnd{run: "r1"}
		if !w.sees(&events.Event{Run: "r1", Session: "demo", Data: d}) || w.err == nil {
			t.Errorf("%T does not end it", d)
		}
	}
}

func TestRunEnd_takesTheFirstRequestWithoutARun(t *testing.T) {
	w := runEnd{}
	w.sees(&events.Event{Data: events.RunRequested{RunID: "r1"}})
	if !w.sees(&events.Event{Data: events.RunFinished{RunID: "r1", Outcome: "completed"}}) || w.err != nil {
		t.Errorf("%+v", w)
	}
}

// cue does something as soon as all its texts have been written.
type cue struct {
	strings.Builder
	texts []string
	then  func()
}

func (c *cue) Write(b []byte) (int, error) {
	n, err := c.Builder.Write(b)
	if !slices.ContainsFunc(c.texts, func(text string) bool { return !strings.Contains(c.String(), text) }) {
		c.then()
	}
	return n, err
}

func TestWatchEndsWellWhenInterrupted(t *testing.T) {
	f := &fake{stored: map[string][]events.Record{"demo": loopOfOne(t, events.SessionClosed{})}}
	f.live = f.stored["demo"]
	f.state = `{"loop":{"generation":"g","max_iterations":1,"max_total_rounds":5}}`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	shown := []string{"iteration 1 of 1 admitted (round 1 of 5)", "demo text: Hel", `lo\x1b[2J`, "\n  demo text, attempt 2: once more"}
	out := &cue{texts: shown, then: cancel}
	time.AfterFunc(patience, cancel)
	var errOut strings.Builder
	a := &app{out: out, errOut: &errOut, now: time.Now, place: time.UTC, dial: func(context.Context, *app) (backend, error) { return f, nil }}
	if status := a.main(ctx, []string{"watch", "demo", "--from", "4", "--deltas"}); status != exitOK {
		t.Fatalf("status %d: %s", status, errOut.String())
	}
	for _, want := range shown {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "session created") {
		t.Errorf("it does not begin with 4:\n%s", out.String())
	}
}

func TestWatchOfNoSessionIsRefused(t *testing.T) {
	if r := culm(t, &fake{}, "watch", "dmeo"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") {
		t.Errorf("status %d, err %q", r.status, r.err)
	}
}

func TestLogJSONIsTheStoredBytes(t *testing.T) {
	records := story(t, "demo", events.SessionCreated{Kind: "root"}, events.MessageSubmitted{UserMessage: events.UserMessage{Content: "\u009b2J ü"}}, events.SessionClosed{}, events.NoteAppended{Kind: "x", Data: []byte(`{}`)}, events.NoteAppended{Kind: "y", Data: []byte(`{}`)})
	var want strings.Builder
	for _, r := range records {
		want.WriteString(string(r.Payload) + "\n")
	}
	engine := &fake{stored: map[string][]events.Record{"demo": records}}
	noEngine := &fake{stored: engine.stored, readErr: errNoEngine}
	damaged := &fake{stored: engine.stored, refuse: &aggregate.Error{Code: aggregate.CodeMalformedState}}
	for name, f := range map[string]*fake{"from an engine": engine, "without an engine": noEngine, "damaged": damaged} {
		t.Run(name, func(t *testing.T) {
			r := culm(t, f, "log", "demo", "--json")
			if diff := cmp.Diff(want.String(), r.out); diff != "" || r.status != exitOK {
				t.Errorf("status %d, %q (-stored +printed):\n%s", r.status, r.err, diff)
			}
			if r := culm(t, f, "log", "demo", "--json", "--from", "2", "--to", "3"); strings.Count(r.out, "\n") != 2 {
				t.Errorf("from 2 to 3:\n%s", r.out)
			}
		})
	}
	terminal := culmAt(t, engine, true, "", "log", "demo", "--json")
	for _, c := range terminal.out {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%U reaches the terminal", c)
		}
	}
}

func TestLogIsReadable(t *testing.T) {
	f := &fake{stored: map[string][]events.Record{"demo": loopOfOne(t, events.SessionClosed{})}}
	r := culm(t, f, "log", "demo", "--from", "4", "--to", "4")
	want := "2026-11-30 12:00:03  demo          4  alice       iteration 1 of 1 admitted (round 1 of 5)\n"
	if r.out != want {
		t.Errorf("got %q\nwant %q", r.out, want)
	}
	if r := culmAt(t, f, true, "", "log", "demo"); !strings.Contains(r.out, "\x1b[2m") {
		t.Errorf("no colour on a terminal: %q", r.out)
	}
	if r := culmAt(t, f, true, "", "log", "demo", "--no-color"); strings.Contains(r.out, "\x1b") {
		t.Errorf("colour with --no-color: %q", r.out)
	}
	t.Setenv("NO_COLOR", "1")
	if r := culmAt(t, f, true, "", "log", "demo"); strings.Contains(r.out, "\x1b") {
		t.Errorf("colour with NO_COLOR: %q", r.out)
	}
	if r := culm(t, &fake{readErr: errNoEngine}, "log", "demo"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") {
		t.Errorf("no session: status %d, err %q", r.status, r.err)
	}
}

// Where nothing is shown it is said why.
func TestLogOfNothing(t *testing.T) {
	f := &fake{stored: map[string][]events.Record{"demo": loopOfOne(t, events.SessionClosed{})}}
	for args, want := range map[string]string{
		"log demo --from 99":   "culm: demo ends with event 6\n",
		"log demo --approvals": "culm: nobody was asked or decided anything in these events of demo\n",
	} {
		if r := culm(t, f, strings.Fields(args)...); r.out != "" || r.err != want || r.status != exitOK {
			t.Errorf("%s: status %d, out %q, err %q", args, r.status, r.out, r.err)
		}
	}
	if r := culm(t, f, "log", "demo", "--from", "99", "--json"); r.out+r.err != "" || r.status != exitOK {
		t.Errorf("with --json: status %d, %q, %q", r.status, r.out, r.err)
	}
	if r := culm(t, f, "log", "demo", "--from", "5", "--to", "3"); r.status != exitUsage || !strings.Contains(r.err, "--to 3 comes before --from 5") {
		t.Errorf("the wrong way round: status %d, %q", r.status, r.err)
	}
}
