package blackbox

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ends runs an engine that must not start, and wants the exit status and the
// texts in what it prints.
func ends(t *testing.T, status int, args []string, texts ...string) {
	t.Helper()
	p := launch(t, command(args...))
	if got := p.wait(); got != status {
		t.Errorf("%v: exit status %d, want %d\n%s", args, got, status, p.output())
	}
	out := p.output()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%v does not say %q:\n%s", args, text, out)
		}
	}
	if strings.Contains(out, "ready\n") || strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
		t.Errorf("%v:\n%s", args, out)
	}
}

// TestProcess_BadArgumentsEndWithTwo: what is wrong is named.
func TestProcess_BadArgumentsEndWithTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	with := func(args ...string) []string {
		return slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", dir}, bare, args)
	}
	ends(t, 2, with("--layout", "sharded"), "sharded")
	ends(t, 2, with("--layout", "round"), "round")
	ends(t, 2, with("--no-such-flag"), "--no-such-flag")
	ends(t, 2, with("--sync", "sometimes"), "sometimes")
	ends(t, 2, with("--lease", "soon"), "lease")
	ends(t, 2, with("--lease", "1ms"), "lease")
	ends(t, 2, with("--lease", "0"), "lease")
	ends(t, 2, with("--lease", "900000h"), "lease", "24h")
	ends(t, 2, with("--replicas", "3"), "replicas")
	ends(t, 2, with("--replicas", "-1"), "replicas")
	ends(t, 2, with("--replicas", "0"), "replicas")
	ends(t, 2, with("--prefix", ""), "prefix")
	ends(t, 2, with("--listen", "127.0.0.1:-1"), "127.0.0.1:-1")
	ends(t, 2, with("--listen", ":"), "port")
	ends(t, 2, with("--http", "x"), "--http")
	ends(t, 2, with("--http", "127.0.0.1:99999"), "99999")
	ends(t, 2, with("--nats", "http://h:1"), "--nats")
	ends(t, 2, with("--prefix", "a b"), "prefix")
	ends(t, 2, with("--prefix", "$JS"), "prefix")
	ends(t, 2, with("--listen", "nowhere"), "nowhere")
	ends(t, 2, with("--nats", "nats://127.0.0.1:4222", "--sync", "always"), "sync")
	ends(t, 2, with("stray"), "stray")
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("a start that was refused left %v", files)
	}
}

// TestProcess_ConfigFile: a bad file is refused with its line; a good one is
// followed, and a flag wins over it.
func TestProcess_ConfigFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "culm.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	bad := map[string]string{
		"lease: 15s\nprefixx: a\n":  "culm.yaml:2:",
		"lease: 15s\nprefix: [\n":   "culm.yaml:2:",
		"a\n\tb: c\n":               "culm.yaml:1:",
		"lease: 15s\n\nlease: 1s\n": "culm.yaml:3:",
		"providers:\n  - id: a\n    type: recorded\n    colour: red\n": "culm.yaml:4:",
	}
	for text, line := range bad {
		ends(t, 2, []string{"--config", write(text)}, "culm.yaml", line)
	}
	ends(t, 2, []string{"--config", filepath.Join(dir, "none.yaml")}, "none.yaml")
	ends(t, 2, []string{"--config", write("layout: sharded\n")}, "sharded")
	path := write("listen: 127.0.0.1:0\ndata: " + filepath.Join(dir, "data") + "\nprefix: filed\nno-runner: true\nno-projector: true\nhttp: \"off\"\n")
	p := launch(t, command("--config", path, "--prefix", "flagged"))
	c := dial(t, p.awaitURL())
	p.awaitReady()
	m := message("s", "session.create", nil)
	m.Subject = "flagged.cmd.tester.s.session.create"
	if r := c.request(m); !r.OK {
		t.Errorf("%s", r.raw)
	}
	if status := p.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestProcess_TakenPlaces: a port in use, a data folder in use, an HTTP address
// in use, a data folder that is a file, a server that is not there.
func TestProcess_TakenPlaces(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	taken := l.Addr().String()
	off := func(args ...string) []string { return slices.Concat(bare, args) }
	ends(t, 1, off("--listen", taken, "--data", t.TempDir()), "in use", taken)
	ends(t, 1, []string{"--no-runner", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--http", taken}, "in use", taken)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	ends(t, 1, off("--listen", "127.0.0.1:0", "--data", file), file)
	const nobody = "127.0.0.1:1" // no port of those that a system gives away
	ends(t, 1, off("--nats", "nats://"+nobody), nobody)
	ends(t, 1, off("--nats", "nats://user:secret@"+nobody), "127.0.0.1")
	e := start(t)
	s := e.create("")
	ends(t, 1, off("--listen", "127.0.0.1:0", "--data", e.dir), "in use", e.dir)
	e.must(s, "message.submit", obj{"content": "still here"})
	e.audit(s)
}

// TestProcess_SecretsAreNotPrinted: the password of --nats.
func TestProcess_SecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	p := launch(t, command(slices.Concat(bare, []string{"--nats", "nats://user:secret-word@127.0.0.1:1"})...))
	if p.wait() != 1 || strings.Contains(p.output(), "secret-word") {
		t.Errorf("status %d:\n%s", p.status, p.output())
	}
}

// TestProcess_HelpAndVersion: on standard output, with status 0.
func TestProcess_HelpAndVersion(t *testing.T) {
	t.Parallel()
	ends(t, 0, []string{"--help"}, "--listen", "--sync", "Exit status")
	ends(t, 0, []string{"--version"}, "engine ")
}

// TestProcess_EnvironmentSetsFlags: CULM_ variables stand for flags.
func TestProcess_EnvironmentSetsFlags(t *testing.T) {
	t.Parallel()
	cmd := command("--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "CULM_DATA="+t.TempDir(), "CULM_PREFIX=env", "CULM_NO_RUNNER=true", "CULM_HTTP=off", "CULM_SYNC=none")
	p := launch(t, cmd)
	c := dial(t, p.awaitURL())
	p.awaitReady()
	m := message("s", "session.create", nil)
	m.Subject = "env.cmd.tester.s.session.create"
	if r := c.request(m); !r.OK {
		t.Errorf("%s", r.raw)
	}
}

// TestProcess_HealthIsServed: /healthz and /readyz while it runs.
func TestProcess_HealthIsServed(t *testing.T) {
	t.Parallel()
	p := launch(t, command("--no-runner", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--http", "127.0.0.1:0"))
	p.awaitReady()
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := p.get(path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestProcess_StopAnswersWhatItTook: SIGTERM ends with status 0, also with
// commands on their way; what was accepted is stored, what was refused is not.
func TestProcess_StopAnswersWhatItTook(t *testing.T) {
	t.Parallel()
	e := start(t)
	s := e.create("")
	type outcome struct {
		id string
		r  reply
	}
	answered := make(chan outcome, 4096)
	stop := make(chan struct{})
	ended := make(chan struct{})
	w := newWorker(t.Context(), e.client, &ledger{}, "w")
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := "c" + jsonText(i)
			r, err := w.within(message(s, "message.submit", obj{"content": "a"}, id(name)), attemptTime)
			if err == nil {
				answered <- outcome{name, r}
			}
		}
	}()
	eventually(t, "the engine is at work", func() bool { return len(answered) > 20 })
	if status := e.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	close(stop)
	<-ended
	e.up(t)
	stored := map[string]uint64{}
	for _, ev := range e.audit(s) {
		stored[ev.Command] = ev.Seq
	}
	for len(answered) > 0 {
		if o := <-answered; o.r.OK && stored[o.id] != o.r.Sequence || !o.r.OK && o.r.code() != "unavailable" {
			t.Errorf("%s: stored at %d, answered %s", o.id, stored[o.id], o.r.raw)
		}
	}
}
