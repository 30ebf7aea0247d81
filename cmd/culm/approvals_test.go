package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/events"
	"culm/internal/config"
	"culm/internal/engine"
)

// waitsFor runs a command that ends because the run waits for a person, and
// returns what waits.
func waitsFor(t *testing.T, url, session string, args ...string) []item {
	t.Helper()
	if r := person(t.Context(), t, url, args...); r.status != exitFailed || !strings.Contains(r.err, "waits for a person") {
		t.Fatalf("culm %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
	}
	var items []item
	for line := range strings.Lines(must(t, url, "pending", session, "--json")) {
		var it item
		if err := json.Unmarshal([]byte(line), &it); err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	return items
}

// stored reads the events of a session.
func stored(t *testing.T, url, session string) (out []events.Event) {
	t.Helper()
	for line := range strings.Lines(must(t, url, "log", session, "--json")) {
		e, err := events.Decode([]byte(strings.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestALoopPausesIsApprovedAndGoesOn(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo")
	first := waitsFor(t, url, "demo", "loop", "start", "demo", "the next draft", "-n", "3", "-f")
	if len(first) != 1 || first[0].Tool != "Write" || first[0].Kind != kindApproval || !strings.Contains(first[0].Arguments, `"version":1`) {
		t.Fatalf("first: %+v", first)
	}
	if out := must(t, url, "loop", "status", "demo"); !strings.Contains(out, "paused") {
		t.Errorf("the loop is %s", out)
	}
	second := waitsFor(t, url, "demo", "approve", "demo", "--follow") // once: the next write asks again
	if len(second) != 1 || second[0].Tool != "Edit" || second[0].Generation == first[0].Generation {
		t.Fatalf("second: %+v", second)
	}
	out := must(t, url, "approve", "demo", "--session", "--matcher", "path_subtree", "--note", "all of it", "-f")
	if !strings.Contains(out, "loop completed, 3/3") {
		t.Errorf("it ends with\n%s", out)
	}
	approvals := must(t, url, "log", "demo", "--approvals")
	call := "Edit (call " + second[0].ToolCallID + ")"
	for text, n := range map[string]int{
		"alice       allows tool": 2, "approved call of tool": 4, "waits for approval": 2, "“all of it”": 1,
		"allows tool " + call + " for this session: write_file “" + second[0].Request.Resource + "”, digest " + second[0].ArgumentsDigest[:12] + "…, and from now on path_subtree": 1,
		"policy lets tool Write (call write_2)": 1, "  tool Write (call write_2) finished": 1, // by what was allowed for the session
	} {
		if strings.Count(approvals, text) != n {
			t.Errorf("%q stands %d times in\n%s", text, strings.Count(approvals, text), approvals)
		}
	}
	must(t, url, "audit", "demo")
	if r := person(t.Context(), t, url, "approve", "demo"); r.status != exitFailed || !strings.Contains(r.err, "alice decided allow session") {
		t.Errorf("once more: %q", r.err)
	}
}

func TestADeniedCallDoesNotRunAndTheModelIsTold(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo")
	waitsFor(t, url, "demo", "run", "demo", "the next draft", "-f")
	must(t, url, "deny", "demo", "--note", "not this file", "-f")
	for _, e := range stored(t, url, "demo") {
		switch e.Data.(type) {
		case events.ReplayStarted:
			t.Error("it ran")
		case events.ToolStarted:
			if e.Data.(events.ToolStarted).Name == "Write" {
				t.Error("it ran")
			}
		}
	}
	if out := must(t, url, "state", "demo", "--transcript"); !strings.Contains(out, "a person denied it: not this file") {
		t.Errorf("the model reads\n%s", out)
	}
}

// Of two people one decides, and the other one is told who.
func TestTwoApproversOneWins(t *testing.T) {
	url := startEngine(t)
	for round := range 5 {
		session := fmt.Sprint("race", round)
		must(t, url, "session", "create", session)
		waitsFor(t, url, session, "run", session, "go", "-f")
		var wg sync.WaitGroup
		results := map[string]*result{"alice": nil, "bob": nil}
		var mu sync.Mutex
		for name, command := range map[string]string{"alice": "approve", "bob": "deny"} {
			wg.Go(func() {
				r := actor(t.Context(), t, url, name, command, session)
				mu.Lock()
				results[name] = &r
				mu.Unlock()
			})
		}
		wg.Wait()
		winner, loser := results["alice"], results["bob"]
		told := "alice decided allow once on Write"
		if winner.status != exitOK {
			winner, loser, told = loser, winner, "bob decided deny once on Write"
		}
		if winner.status != exitOK || loser.status != exitFailed || !strings.Contains(loser.err, told) {
			t.Errorf("round %d: %q %q and %q %q", round, winner.out, winner.err, loser.out, loser.err)
		}
		n := 0
		for _, e := range stored(t, url, session) {
			if e.Type == "approval.decided" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("round %d: %d decisions are stored", round, n)
		}
	}
}

// subagent starts an engine that plays the recorded session with a question and
// a plan, where it is there.
func subagent(t *testing.T) (url string) {
	t.Helper()
	file := filepath.Join(cmp.Or(os.Getenv("CULM_TRANSCRIPTS"), "../../../shared/data/transcripts"), "subagent.jsonl")
	if _, err := os.Stat(file); err != nil {
		t.Skip("no recorded session here: ", err)
	}
	return startEngineWith(t, engine.Config{Rules: config.Rules{Providers: []config.Provider{{ID: "sub", Type: "recorded", Enabled: true, Default: true, File: file}}}})
}

const rigs = "No rig; Credo + Dialyxir + mix_audit"

// A person is asked about everything: calls, a question, a plan.
func TestARecordedSessionIsGatedFromEndToEnd(t *testing.T) {
	url := subagent(t)
	must(t, url, "policy", "add", "allow", "http_request", "tool_action", "WebSearch", "--rule-id", "searches", "--yes")
	must(t, url, "session", "create", "s")
	next := waitsFor(t, url, "s", "run", "s", "set up the linters", "-f")
	var tools []string
	for len(tools) < 8 {
		it := next[0]
		tools = append(tools, it.Tool+" "+it.Kind)
		args := []string{"approve", "s", it.ToolCallID, "-f"}
		if it.Tool == "AskUserQuestion" {
			if !strings.Contains(it.Question.Question, "Which tools should we set up?") || len(it.Question.Options) != 5 || it.Question.Options[1] != "No rig" || !it.Question.AllowCustom {
				t.Errorf("question: %+v", it.Question)
			}
			args = []string{"answer", "s", rigs, "-f"}
		}
		next = waitsFor(t, url, "s", args...)
	}
	if len(next) != 1 {
		t.Fatalf("%+v wait", next)
	}
	if out := must(t, url, "approve", "s", "-f"); !strings.Contains(out, "run completed") {
		t.Errorf("it ends with\n%s", out)
	}
	// The sixth and the seventh wait at the same time.
	want := "WebFetch approval, AskUserQuestion question, Task approval, Write approval, ExitPlanMode question, Bash approval, Bash approval, Bash approval"
	if got := strings.Join(tools, ", "); got != want {
		t.Errorf("asked about %s, want %s", got, want)
	}
	checkGated(t, stored(t, url, "s"))
	must(t, url, "audit", "--all")
}

// checkGated: every call ran once at most, and only as policy or alice allowed.
func checkGated(t *testing.T, list []events.Event) {
	t.Helper()
	allowed, ran, results := map[string]string{}, map[string]int{}, map[string]string{}
	for _, e := range list {
		switch d := e.Data.(type) {
		case events.ToolAuthorized:
			allowed[d.MessageID] = e.Actor
		case events.ApprovalDecided:
			allowed[d.MessageID] = e.Actor
		case events.ToolStarted:
			ran[d.MessageID]++
			if allowed[d.MessageID] != "runner" {
				t.Errorf("%d: %s started without the policy's word", e.Seq, d.Name)
			}
		case events.ReplayStarted:
			ran[d.MessageID]++
			if allowed[d.MessageID] != "alice" {
				t.Errorf("%d: %s replayed without a person's word", e.Seq, d.Name)
			}
		case events.QuestionAnswered:
			results[d.Name] = d.Content
		}
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("call %s ran %d times", id, n)
		}
	}
	if results["AskUserQuestion"] != rigs || results["ExitPlanMode"] != "Approve the plan" {
		t.Errorf("answers: %v", results)
	}
}

// In plan mode nothing changes the world; approving the plan ends it, and a
// call after it is asked about as ever.
func TestAPlanIsApproved(t *testing.T) {
	url := subagent(t)
	must(t, url, "session", "create", "s", "--mode", "bypass")
	must(t, url, "mode", "s", "plan", "--reason", "look first")
	waitsFor(t, url, "s", "run", "s", "set up the linters", "-f")
	plan := waitsFor(t, url, "s", "answer", "s", rigs, "-f")
	if len(plan) != 1 || plan[0].Tool != "ExitPlanMode" || strings.Join(plan[0].Question.Options, ", ") != "Approve the plan, Stay in plan mode" {
		t.Fatalf("plan: %+v", plan)
	}
	if r := person(t.Context(), t, url, "answer", "s", "I do not approve"); r.status != exitFailed || !strings.Contains(r.err, "option_not_allowed") {
		t.Errorf("other words: status %d, %q", r.status, r.err)
	}
	if out := must(t, url, "approve", "s", "-f"); !strings.Contains(out, "plan mode off") || !strings.Contains(out, "policy lets tool Bash (call ") {
		t.Errorf("it ends with\n%s", out)
	}
	if out := must(t, url, "session", "show", "s"); !strings.Contains(out, "mode       bypass\n") {
		t.Errorf("show says\n%s", out)
	}
	exited := uint64(0)
	for _, e := range stored(t, url, "s") {
		switch d := e.Data.(type) {
		case events.QuestionAnswered:
			if d.Plan == "exited" {
				exited = e.Seq
			}
		case events.ToolStarted:
			if d.Mutating && exited == 0 {
				t.Errorf("%d: %s changed the world in plan mode", e.Seq, d.Name)
			}
		}
	}
	if exited == 0 {
		t.Error("the plan mode was not left")
	}
	must(t, url, "audit", "s")
}

// Nobody is there: what would ask fails, and nothing waits.
func TestASessionWithoutAPersonDoesNotWait(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "s", "--no-human-approver", "--enforce-policy")
	if out := must(t, url, "run", "s", "go", "-f"); !strings.Contains(out, "nobody is there to be asked") || strings.Contains(out, "tool Write started") {
		t.Errorf("it says\n%s", out)
	}
	if out := must(t, url, "pending"); out != "nothing waits for a person\n" {
		t.Errorf("pending: %s", out)
	}
}

// A watcher is asked, skips, allows for the session; others may decide meanwhile.
func TestWatchAsks(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "s")
	waitsFor(t, url, "s", "run", "s", "go", "-f") // waits before anybody watches
	in, answers := io.Pipe()
	lines := make(lineWriter, 10_000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	status := make(chan int, 1)
	go func() {
		a := &app{in: in, out: lines, errOut: io.Discard, now: time.Now, place: time.UTC, dial: dialNATS}
		status <- a.main(ctx, []string{"--nats", url, "--actor", "carol", "watch", "--approvals"})
	}()
	say := func(prompt, answer string) {
		t.Helper()
		lines.until(t, prompt)
		if _, err := io.WriteString(answers, answer); err != nil {
			t.Fatal(err)
		}
	}
	say("[a]llow once, allow for this [s]ession, [d]eny, deny for this session [x], Enter to skip: ", "skip\n")
	lines.until(t, "it goes on waiting")
	must(t, url, "session", "create", "s2")
	waitsFor(t, url, "s2", "run", "s2", "go", "-f")
	say("skip: ", "maybe\n")
	lines.until(t, "none of the keys")
	say("skip: ", "\n") // it asks again
	lines.until(t, "skipped; it goes on waiting: culm approve s2 write_1")
	must(t, url, "session", "create", "s3")
	waitsFor(t, url, "s3", "run", "s3", "go", "-f")
	lines.until(t, "skip: ")
	must(t, url, "deny", "s3") // somebody else is faster
	if _, err := io.WriteString(answers, "a\n"); err != nil {
		t.Fatal(err)
	}
	lines.until(t, "alice decided deny once")
	must(t, url, "session", "create", "s4")
	waitsFor(t, url, "s4", "run", "s4", "go", "-f")
	say("skip: ", "s\n")
	lines.until(t, "allowed for this session: Write")
	lines.until(t, "run completed")
	_ = answers.Close()
	must(t, url, "session", "create", "s5") // the next question finds nobody
	waitsFor(t, url, "s5", "run", "s5", "go", "-f")
	wantStatus(t, status, exitOK)
}

// until reads on until the text comes.
func (w lineWriter) until(t *testing.T, text string) {
	t.Helper()
	var seen strings.Builder
	for end := time.After(patience); ; {
		select {
		case line := <-w:
			if seen.WriteString(line); strings.Contains(line, text) {
				return
			}
		case <-end:
			t.Fatalf("%q does not come; instead:\n%s", text, seen.String())
		}
	}
}

// A loop that is told to end where a call waits says so when it is followed, and
// what to do: the call runs, and the loop is blocked.
func TestALoopThatEndsWhereACallWaits(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo")
	waitsFor(t, url, "demo", "loop", "start", "demo", "the next draft", "-n", "3", "--on-park", "end", "-f")
	out := must(t, url, "approve", "demo", "--session", "--matcher", "path_subtree", "-f")
	if !strings.HasSuffix(out, "loop blocked at 0 of 3 iterations: it ended in the middle of an iteration, when a call had to wait for a person; next: culm loop continue demo --ack or culm loop abandon demo --ack\n") {
		t.Errorf("it ends with\n%s", out)
	}
	if r := person(t.Context(), t, url, "run", "demo", "go on"); r.status != exitFailed || !strings.Contains(r.err, "when a call had to wait for a person") || strings.Contains(r.err, "runner was lost") {
		t.Errorf("a run is refused with %q", r.err)
	}
	if out := must(t, url, "loop", "continue", "demo", "--ack", "-f"); !strings.Contains(out, "loop completed, 3/3") {
		t.Errorf("continued, it ends with\n%s", out)
	}
}

// A loop whose runner is gone is blocked, and everybody who asks is told so and
// what to do.
func TestALoopWhoseRunnerIsGone(t *testing.T) {
	url := startEngineWith(t, engine.Config{NoRunner: true, Lease: 6 * time.Second})
	must(t, url, "session", "create", "demo")
	var reply struct {
		Result outcome `json:"result"`
	}
	if err := json.Unmarshal([]byte(must(t, url, "loop", "start", "demo", "the next draft", "-n", "3", "--json")), &reply); err != nil {
		t.Fatal(err)
	}
	b, err := dialNATS(t.Context(), &app{errOut: io.Discard, globals: globals{NATS: url, Prefix: "agent", Actor: "r1", Timeout: patience}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if r, err := b.Do(t.Context(), "demo", "run.claim", data{"run_id": reply.Result.RunID, "runner": "r1"}, sendOptions{}); err != nil || !r.OK {
		t.Fatalf("claim: %v, %+v", err, r)
	}
	out := "culm loop continue demo --ack or culm loop abandon demo --ack"
	if r := person(t.Context(), t, url, "resume", "demo", "--follow"); r.status != exitFailed || !strings.Contains(r.err, "the run was interrupted") ||
		!strings.Contains(r.out, "loop blocked at 0 of 3 iterations: its run was interrupted") || !strings.HasSuffix(r.out, "; next: "+out+"\n") {
		t.Errorf("followed: status %d, err %q\n%s", r.status, r.err, r.out)
	}
	for _, args := range [][]string{{"loop", "status", "demo"}, {"session", "show", "demo"}} {
		if text := must(t, url, args...); !strings.Contains(text, "loop       blocked: ") || !strings.Contains(text, "blocked    its run was interrupted") || !strings.Contains(text, "; "+out+"\n") {
			t.Errorf("%v says\n%s", args, text)
		}
	}
	if text := must(t, url, "session", "show", "demo"); !strings.Contains(text, "last run interrupted (lease expired: nothing was heard of its runner)") {
		t.Errorf("show says\n%s", text)
	}
	if r := person(t.Context(), t, url, "run", "demo", "x"); r.status != exitFailed || !strings.Contains(r.err, "its run was interrupted") || !strings.Contains(r.err, out) {
		t.Errorf("a run: status %d, %q", r.status, r.err)
	}
	must(t, url, "loop", "abandon", "demo", "--ack")
	must(t, url, "run", "demo", "x")
}

// A terminal is not left to break words.
func TestLinesOfEventsAreBrokenBetweenWords(t *testing.T) {
	f := &fake{stored: map[string][]events.Record{"demo": loopOfOne(t, events.MessageSubmitted{UserMessage: events.UserMessage{Content: strings.Repeat("some words ", 12)}})}}
	var out strings.Builder
	a := &app{out: &out, errOut: io.Discard, width: 60, now: time.Now, place: time.UTC, dial: func(context.Context, *app) (backend, error) { return f, nil }}
	if status := a.main(t.Context(), []string{"log", "demo"}); status != exitOK {
		t.Fatalf("status %d", status)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 60 {
			t.Errorf("%d wide: %q", n, line)
		}
	}
	if !strings.Contains(out.String(), "\n      ") {
		t.Errorf("nothing is broken in\n%s", out.String())
	}
}
