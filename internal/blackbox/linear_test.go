package blackbox

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearClients work at once, half of them in a few sessions that all share.
const linearClients = 64

// TestLinear_TwoEnginesOnOneServer: 64 clients, contended and uncontended
// sessions, one engine killed midway and started again; every answer, refusals
// and reads included, fits one order of the session's commands that agrees with
// real time.
func TestLinear_TwoEnginesOnOneServer(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	a := join(t, server.url, "--lease", "10m")
	b := join(t, server.url, "--lease", "10m")
	linear(t, server.url, func() { b.kill(); b.up(t) }, a.client, &history{})
}

// TestLinear_EngineOnAnothersServer: the same with the second engine on the
// first one's embedded server, whose group sync it asks for; the second is the
// one that is killed.
func TestLinear_EngineOnAnothersServer(t *testing.T) {
	t.Parallel()
	a := start(t, "--lease", "10m")
	b := join(t, a.client.url, "--lease", "10m")
	linear(t, a.client.url, func() { b.kill(); b.up(t) }, a.client, &history{})
}

// TestLinear_APausedEngine: one engine is stopped by SIGSTOP for longer than
// clients wait and goes on with what it was sent before: commands that have been
// carried out by the other one meanwhile, under the same ids. Requests of runs
// expect a sequence: one that was answered already_running leaves no receipt, and
// its late attempt could begin a run that nobody asked for any more.
func TestLinear_APausedEngine(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	a := join(t, server.url, "--lease", "10m")
	b := join(t, server.url, "--lease", "10m")
	linear(t, server.url, func() {
		b.signal(syscall.SIGSTOP)
		<-time.After(attemptTime + attemptTime/2) // so that clients send anew
		b.signal(syscall.SIGCONT)
	}, a.client, &history{late: true})
}

func linear(t *testing.T, url string, crash func(), c *client, h *history) {
	seed := uint64(envNumber(t, "CULM_CRASH_SEED", int(time.Now().UnixNano()>>10))) //nolint:gosec // any number will do
	t.Logf("CULM_CRASH_SEED=%d", seed)
	h.began = time.Now()
	shared := []string{c.create("-shared0"), c.create("-shared1"), c.create("-shared2"), c.create("-shared3")}
	end := time.Now().Add(time.Duration(envNumber(t, "CULM_LINEAR_SECONDS", 8)) * time.Second)
	var clients sync.WaitGroup
	half := make(chan struct{})
	for i := range linearClients {
		session := shared[i/2%len(shared)]
		if i%2 == 1 {
			session = c.create(fmt.Sprint("-own", i))
		}
		random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // repeatable
		l := &linearClient{worker: newWorker(t.Context(), dial(t, url), &ledger{}, fmt.Sprint("c", i)), h: h, id: i, session: session, random: random, at: 1}
		clients.Go(func() {
			for n := 0; time.Now().Before(end) || n < 40; n++ {
				if err := l.step(n); err != nil {
					t.Error(err)
					return
				}
				if i == 0 && n == 20 {
					close(half)
				}
			}
		})
	}
	select {
	case <-half:
		crash()
	case <-time.After(patience):
		t.Error("the clients are not answered")
	}
	clients.Wait()
	h.judge(t)
	for _, s := range shared {
		c.audit(s)
	}
}

// history is what all clients saw.
type history struct {
	late  bool // attempts may be carried out long after another one was answered
	began time.Time
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation // by session
	n     int
}

// call notes the start of an operation; the function it returns notes the end.
func (h *history) call(client int, session string, in linearInput) func(linearOutput) {
	start := time.Since(h.began).Nanoseconds()
	return func(out linearOutput) {
		end := time.Since(h.began).Nanoseconds()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.ops == nil {
			h.ops = map[string][]porcupine.Operation{}
		}
		h.n++
		h.ops[session] = append(h.ops[session], porcupine.Operation{ClientId: client, Input: in, Call: start, Output: out, Return: end})
	}
}

// judge checks each session's part of the history by itself.
func (h *history) judge(t *testing.T) {
	t.Helper()
	told := false
	for session, ops := range h.ops {
		switch porcupine.CheckOperationsTimeout(sessionModel, ops, patience) {
		case porcupine.Illegal:
			if t.Errorf("%s: no order of %d operations explains their answers", session, len(ops)); !told {
				t.Logf("they begin with:\n%s", describe(ops))
			}
			told = true
		case porcupine.Unknown:
			t.Errorf("%s: %d operations could not be judged in %s", session, len(ops), patience)
		case porcupine.Ok:
		}
	}
	t.Logf("%d operations in %d sessions", h.n, len(h.ops))
}
