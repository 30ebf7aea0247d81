package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/internal/engine"
)

// patience bounds every wait for something that must happen; it is long because
// the race detector and other tests share the processors.
const patience = 2 * time.Minute

// startEngine runs a whole engine with the sample recording; it ends with the
// test. It returns the URL of its server.
func startEngine(t *testing.T) string {
	t.Helper()
	return startEngineWith(t, engine.Config{})
}

func startEngineWith(t *testing.T, c engine.Config) string {
	t.Helper()
	c.Data, c.HTTP, c.Sync = t.TempDir(), "off", "none"
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := engine.Run(ctx, c, in)
		_ = in.Close()
		ended <- err
	}()
	url, err := awaitReady(out)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// person runs the real program against a server.
func person(ctx context.Context, t *testing.T, url string, args ...string) result {
	t.Helper()
	return actor(ctx, t, url, "alice", args...)
}

// actor is person under another name.
func actor(ctx context.Context, t *testing.T, url, name string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, errOut: &errOut, now: time.Now, place: time.UTC, dial: dialNATS}
	status := a.main(ctx, append([]string{"--nats", url, "--actor", name, "--timeout", patience.String()}, args...))
	return result{status: status, out: out.String(), err: errOut.String()}
}

// must is person for commands that have to succeed.
func must(t *testing.T, url string, args ...string) string {
	t.Helper()
	r := person(t.Context(), t, url, args...)
	if r.status != exitOK {
		t.Fatalf("culm %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
	}
	return r.out
}

func TestASessionFromCreationToAudit(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo", "--title", "First", "--mode", "auto")
	followed := must(t, url, "loop", "start", "demo", "the next draft", "-n", "3", "--follow")
	for _, want := range []string{"asks for a run, a loop of 3 iterations", "iteration 1 of 3 admitted", "iteration 3 of 3 admitted", "loop completed, 3/3"} {
		if strings.Count(followed, want) != 1 {
			t.Errorf("%q stands %d times in\n%s", want, strings.Count(followed, want), followed)
		}
	}
	if out := must(t, url, "session", "show", "demo"); !strings.Contains(out, "completed: iteration 3 of 3") {
		t.Errorf("show says\n%s", out)
	}
	if out := must(t, url, "state", "demo", "--at", "2", "--transcript"); !strings.Contains(out, "[2] user, person\n    the next draft") {
		t.Errorf("state at 2 says\n%s", out)
	}
	waitForViews(t, url, "demo")
	if out := must(t, url, "session", "list", "--status", "idle"); !strings.Contains(out, "demo     idle    completed, 3 of 3 done") {
		t.Errorf("list says\n%s", out)
	}
	if out := must(t, url, "search", "the", "next", "dra"); !strings.Contains(out, "demo 2  user, ") || !strings.Contains(out, "\n    the next draft\n") {
		t.Errorf("search says\n%s", out)
	}
	if out := must(t, url, "search", "nowhere"); out != "no message has “nowhere”\n" {
		t.Errorf("search of nothing says\n%s", out)
	}
	_, shown, _ := strings.Cut(must(t, url, "session", "show", "demo"), "usage      ")
	tokens, _, _ := strings.Cut(shown, " tokens")
	for _, by := range []string{"session", "model", "day"} {
		if out := must(t, url, "usage", "--by", by); tokens == "" || !strings.HasSuffix(out, "  "+tokens+"\n") {
			t.Errorf("usage by %s says\n%s", by, out)
		}
	}
	must(t, url, "audit", "--all")

	stored := must(t, url, "log", "demo", "--json")
	name := filepath.Join(t.TempDir(), "demo.jsonl")
	if err := os.WriteFile(name, []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	if fromStream, fromFile := must(t, url, "audit", "demo"), must(t, url, "audit", "--file", name); fromStream != fromFile {
		t.Errorf("the stream's audit says %q, that of the printed log %q", fromStream, fromFile)
	}
	must(t, url, "session", "delete", "demo", "--yes")
	if r := person(t.Context(), t, url, "state", "demo"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") {
		t.Errorf("after the deletion: status %d, %q", r.status, r.err)
	}
}

// What the help begins with can be typed as it stands there.
func TestTheExampleOfTheHelpWorks(t *testing.T) {
	url := startEngine(t)
	typed := 0
	for line := range strings.Lines(description) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "culm ")
		if !ok {
			continue
		}
		typed++
		var args []string
		for i, part := range strings.Split(line, `"`) { // every second one stands between quotation marks
			if i%2 == 1 {
				args = append(args, part)
			} else {
				args = append(args, strings.Fields(part)...)
			}
		}
		must(t, url, args...)
	}
	if typed != 3 {
		t.Errorf("it has %d commands", typed)
	}
}

// waitForViews has the query service wait until it has all of a session.
func waitForViews(t *testing.T, url, session string) {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	n := strings.Count(must(t, url, "log", session, "--json"), "\n")
	request := fmt.Sprintf(`{"session":%q,"min_sequence":{%q:%d},"wait_ms":60000}`, session, session, n)
	reply, err := nc.Request("agent.query.sessions.get", []byte(request), patience)
	if err != nil || !strings.Contains(string(reply.Data), `"ok":true`) {
		t.Fatalf("views: %v", err)
	}
}

func TestTheSameIDHasItsEffectOnce(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo")
	must(t, url, "send", "demo", "hello", "--id", "once")
	if out := must(t, url, "send", "demo", "hello", "--id", "once"); !strings.Contains(out, "already") {
		t.Errorf("the second says %q", out)
	}
	if r := person(t.Context(), t, url, "send", "demo", "other", "--id", "once"); r.status != exitFailed || !strings.Contains(r.err, "command_id_reused") {
		t.Errorf("another command with the id: status %d, %q", r.status, r.err)
	}
	if r := person(t.Context(), t, url, "send", "demo", "late", "--expect", "1"); r.status != exitFailed || !strings.Contains(r.err, "wrong_expected_sequence") {
		t.Errorf("a stale expectation: status %d, %q", r.status, r.err)
	}
	if n := strings.Count(must(t, url, "log", "demo", "--json"), "\n"); n != 2 {
		t.Errorf("%d events are stored, want 2", n)
	}
}

// The watcher sees the backlog and what comes, each event once and in order.
func TestWatchShowsEachEventOnce(t *testing.T) {
	url := startEngine(t)
	must(t, url, "session", "create", "demo")
	for i := range 20 {
		must(t, url, "send", "demo", fmt.Sprint("before ", i))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines := make(lineWriter, 100)
	status := make(chan int, 1)
	go func() {
		a := &app{out: lines, errOut: io.Discard, now: time.Now, place: time.UTC, dial: dialNATS}
		status <- a.main(ctx, []string{"--nats", url, "watch", "demo", "--from", "1", "--json"})
	}()
	var got strings.Builder
	for range 10 { // some of the backlog, then on with the rest of it under way
		got.WriteString(lines.next(t))
	}
	for i := range 20 {
		must(t, url, "send", "demo", fmt.Sprint("after ", i))
	}
	for range 31 {
		got.WriteString(lines.next(t))
	}
	stop()
	wantStatus(t, status, exitOK)
	if stored := must(t, url, "log", "demo", "--json"); got.String() != stored {
		t.Errorf("it saw\n%s\nstored is\n%s", got.String(), stored)
	}
	if len(lines) > 0 {
		t.Errorf("it saw more: %s", <-lines)
	}
}

// wantStatus waits for the end of a program.
func wantStatus(t *testing.T, status <-chan int, want int) {
	t.Helper()
	select {
	case got := <-status:
		if got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	case <-time.After(patience):
		t.Error("it does not end")
	}
}

// lineWriter hands over what is written, write by write.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

func (w lineWriter) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-w:
		return line
	case <-time.After(patience):
		t.Fatal("no further event is shown")
		return ""
	}
}

func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := person(t.Context(), t, "nats://127.0.0.1:1", "demo")
	for _, want := range []string{
		"waits for approval of write_file", "with      path: ", "approver    allows tool Write (call write_1) for this session",
		"loop completed, 3/3", "demo: 54 events, all fine", "Who allowed what", "culm session create",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if r.status != exitOK || t.Failed() {
		t.Errorf("status %d, %s\n%s", r.status, r.err, r.out)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "culm-demo-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNoServerNamesTheURL(t *testing.T) {
	r := person(t.Context(), t, "nats://127.0.0.1:1", "session", "list")
	if r.status != exitFailed || !strings.Contains(r.err, "nats://127.0.0.1:1") || !strings.Contains(r.err, "go run ./cmd/engine") {
		t.Errorf("status %d, %q", r.status, r.err)
	}
}
