package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/internal/natstest"
)

// engine is an engine process, started again at will on the same data and
// address, and a connection to the server that it uses.
type engine struct {
	*process
	*client

	dir  string
	args []string
}

// bare are the flags of an engine that leaves the runs to the test.
var bare = []string{"--no-runner", "--no-projector", "--http", "off"}

// start runs an engine with an embedded server of its own in an empty folder.
func start(t testing.TB, args ...string) *engine {
	t.Helper()
	e := &engine{dir: t.TempDir()}
	e.args = slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", e.dir}, bare, args)
	e.up(t)
	return e
}

// join runs an engine on a server that is there already.
func join(t testing.TB, url string, args ...string) *engine {
	t.Helper()
	e := &engine{args: slices.Concat([]string{"--nats", url}, bare, args)}
	e.up(t)
	return e
}

// command is an engine that has not been started.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(engineBinary, args...) //nolint:gosec // built by TestMain
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CULM_") })
	return cmd
}

// up starts the process (again); its client finds it under the same address.
func (e *engine) up(t testing.TB) {
	t.Helper()
	for i, a := range e.args {
		if a == "--listen" && e.args[i+1] == "127.0.0.1:0" {
			e.args[i+1] = fmt.Sprint("127.0.0.1:", natstest.Port(t))
		}
	}
	e.process = launch(t, command(e.args...))
	address := e.awaitURL()
	e.awaitReady()
	if e.client == nil {
		e.client = dial(t, address)
	}
	e.client.t = t
	eventually(t, "the client has found the engine again", func() bool { return e.nc.FlushTimeout(time.Second) == nil })
}

// client is a connection to the engines of one server. As "tester" it is every
// kind of client and runner at once.
type client struct {
	t   testing.TB
	nc  *nats.Conn
	js  jetstream.JetStream
	url string
}

// dial connects; the connection comes back by itself and ends with the test.
func dial(t testing.TB, url string) *client {
	t.Helper()
	nc := connect(t, url)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	must(t, err)
	return &client{t: t, nc: nc, js: js, url: url}
}

func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectBufSize(-1), nats.Timeout(patience/4), nats.IgnoreDiscoveredServers())
	must(t, err)
	return nc
}

// The shared engine serves the tests that neither stop it nor look at time;
// each uses sessions of its own.
var shared struct {
	sync.Mutex
	cmd   *exec.Cmd
	url   string
	users map[string]testing.TB // by name
}

// common returns a client of the shared engine. Where tests run several times, a
// new one serves each round: sessions are named after their tests.
func common(t testing.TB) *client {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if before := shared.users[t.Name()]; before != nil && before != t {
		stopShared()
	}
	if shared.cmd == nil {
		startShared(t)
	}
	shared.users[t.Name()] = t
	return dial(t, shared.url)
}

func startShared(t testing.TB) {
	t.Helper()
	dir, err := os.MkdirTemp("", "culm-blackbox-data-")
	must(t, err)
	shared.cmd = command(slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", dir, "--sync", "none", "--lease", "10m"}, bare)...)
	// It outlives this test: what it prints is only looked at for its address.
	p := &process{t: t, cmd: shared.cmd, address: make(chan string, 1), ready: make(chan struct{}), exited: make(chan struct{})}
	stdout, err := shared.cmd.StdoutPipe()
	must(t, err)
	shared.cmd.Stderr = &sharedLog
	must(t, shared.cmd.Start())
	go p.scan(stdout)
	shared.url, shared.users = p.awaitURL(), map[string]testing.TB{}
	p.awaitReady()
}

// sharedLog is the shared engine's standard error.
var sharedLog lockedBuilder

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// stopShared ends the shared engine and removes its folder.
func stopShared() {
	if shared.cmd == nil {
		return
	}
	_ = shared.cmd.Process.Kill()
	_ = shared.cmd.Wait()
	for i, a := range shared.cmd.Args {
		if a == "--data" {
			_ = os.RemoveAll(shared.cmd.Args[i+1])
		}
	}
	shared.cmd = nil
	if strings.Contains(sharedLog.String(), "DATA RACE") {
		panic("the shared engine reported a data race:\n" + sharedLog.String())
	}
}
