package blackbox

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that has to happen; it is long
// because the race detector and other tests share the processors.
const patience = 3 * time.Minute

// process is one running program of the test.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	address chan string   // from the line "nats: URL"
	ready   chan struct{} // closed at the line "ready"
	exited  chan struct{}
	status  int // exit status, -1 for a signal; read after exited

	mu  sync.Mutex
	out strings.Builder // standard output and error
}

// launch starts a program; it is killed when the test ends, and its output is
// shown if the test failed or a data race was reported.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, address: make(chan string, 1), ready: make(chan struct{}), exited: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	var readers sync.WaitGroup
	readers.Go(func() { p.scan(stdout) })
	readers.Go(func() { p.scan(stderr) })
	go func() {
		readers.Wait()
		_ = cmd.Wait()
		p.status = cmd.ProcessState.ExitCode()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		out := p.output()
		if strings.Contains(out, "DATA RACE") {
			t.Error("the process reported a data race")
		}
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), tail(out, 12<<10))
		}
	})
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (p *process) scan(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		p.mu.Lock()
		p.out.WriteString(line + "\n")
		p.mu.Unlock()
		if url, ok := strings.CutPrefix(line, "nats: "); ok {
			p.address <- strings.TrimSpace(url)
		}
		if line == "ready" {
			close(p.ready)
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// awaitURL returns the address that the process prints.
func (p *process) awaitURL() string {
	p.t.Helper()
	select {
	case url := <-p.address:
		return url
	case <-p.exited:
		p.t.Fatalf("%s ended with status %d before it said its address:\n%s", p.cmd.Path, p.status, p.output())
	case <-time.After(patience):
		p.t.Fatalf("%s did not say its address:\n%s", p.cmd.Path, p.output())
	}
	return ""
}

// awaitReady waits for the line "ready".
func (p *process) awaitReady() {
	p.t.Helper()
	select {
	case <-p.ready:
	case <-p.exited:
		p.t.Fatalf("%s ended with status %d before it was ready:\n%s", p.cmd.Path, p.status, p.output())
	case <-time.After(patience):
		p.t.Fatalf("%s was not ready:\n%s", p.cmd.Path, p.output())
	}
}

// healthAt is the line in which an engine says where it serves health.
var healthAt = regexp.MustCompile(`url=(http://\S+)/healthz`)

// awaitWeb returns the address of the engine's HTTP server.
func (p *process) awaitWeb() string {
	p.t.Helper()
	var m []string
	eventually(p.t, "the engine says where it serves HTTP", func() bool {
		m = healthAt.FindStringSubmatch(p.output())
		return m != nil
	})
	return m[1]
}

// get is the answer of the engine's HTTP server to a path.
func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	web := http.Client{Timeout: patience}
	answer, err := web.Get(p.awaitWeb() + path)
	must(p.t, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return answer.StatusCode, string(b)
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

// kill is a crash: SIGKILL, waited for. It does nothing to a process that ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop asks the process to end, waits, and returns its exit status. How long that
// took is for people: what a machine needs is no matter of tests.
func (p *process) stop() int {
	p.t.Helper()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	status := p.wait()
	p.t.Logf("the stop took %s", time.Since(began).Round(time.Millisecond))
	return status
}

// wait returns the exit status of a process that is about to end.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines, for the log
		p.t.Fatalf("%s did not end", p.cmd.Path)
	}
	return p.status
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after %s still not: %s", patience, what)
		}
	}
}
