package blackbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// envNumber is a setting of the long variants.
func envNumber(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// TestCrash_NothingLostNothingTwice kills an engine with SIGKILL at random
// moments while clients send commands of all kinds and repeat what was not
// answered, and starts it again on the same data. After each start and at the
// end: every acknowledged command is stored exactly once at the sequence that
// was answered, no other is stored twice, a retry gets the first answer byte for
// byte, the chain and the fold are whole, and runs that were live go on with
// their fence.
func TestCrash_NothingLostNothingTwice(t *testing.T) {
	t.Parallel()
	rounds := envNumber(t, "CULM_CRASH_ROUNDS", 15)
	for i, mode := range []string{"none", "group"} {
		seed := uint64(envNumber(t, "CULM_CRASH_SEED", int(time.Now().UnixNano()>>10))) + uint64(i) //nolint:gosec // any number will do
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			t.Logf("%d rounds, CULM_CRASH_SEED=%d", rounds, seed-uint64(i)) //nolint:gosec // small
			crash(t, mode, rounds, rand.New(rand.NewPCG(seed, 0)))          //nolint:gosec // repeatable
		})
	}
}

func crash(t *testing.T, mode string, rounds int, random *rand.Rand) {
	e := start(t, "--sync", mode, "--lease", "10m")
	l := newLedger()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := startWorkers(ctx, t, e.url, l)
	for round := range rounds {
		// A random moment: after some more answers, and a little later.
		l.awaitAnswers(t, 1+random.IntN(150))
		<-time.After(time.Duration(random.IntN(3000)) * time.Microsecond)
		e.kill()
		e.up(t)
		l.verify(e.client, random, false)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	l.awaitAnswers(t, 100) // they all go on
	w.finish()
	e.awaitEmptyQueue()
	l.verify(e.client, random, true)
	t.Logf("%d commands acknowledged in %d sessions, %d answers were repetitions", l.total(), len(l.sessions()), l.duplicates())
	if status := e.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// workers are the clients of a crash test.
type workers struct {
	stop chan struct{} // closed when no new scenario is to begin
	done chan error    // buffered
	n    int
	t    *testing.T
}

// startWorkers runs some clients of each kind, each with a connection of its own.
func startWorkers(ctx context.Context, t *testing.T, url string, l *ledger) *workers {
	t.Helper()
	w := &workers{stop: make(chan struct{}), done: make(chan error, 64), t: t}
	scenarios := map[string]func(*worker, string) error{
		"loop": (*worker).loop, "park": (*worker).parked, "talk": (*worker).talk, "queue": (*worker).queue,
	}
	for kind, scenario := range scenarios {
		for i := range 2 {
			w.n++
			who := newWorker(ctx, dial(t, url), l, fmt.Sprint(kind, i))
			go func() { w.done <- w.run(who, scenario) }()
		}
	}
	for i := range 3 { // all in one session
		w.n++
		who := newWorker(ctx, dial(t, url), l, fmt.Sprint("crowd", i))
		go func() { w.done <- w.run(who, (*worker).crowd) }()
	}
	return w
}

// run plays the scenario in one session after the other.
func (w *workers) run(who *worker, scenario func(*worker, string) error) error {
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return nil
		default:
		}
		if err := scenario(who, fmt.Sprintf("%s-%d", who.name, n)); err != nil {
			if who.ctx.Err() == nil {
				w.t.Errorf("%s, scenario %d: %v", who.name, n, err)
			}
			return err
		}
	}
}

// finish lets every worker come to the end of its scenario.
func (w *workers) finish() {
	w.t.Helper()
	close(w.stop)
	for range w.n {
		select {
		case err := <-w.done:
			if err != nil {
				w.t.Errorf("a client gave up: %v", err)
			}
		case <-time.After(patience):
			w.t.Fatal("a client does not come to its end")
		}
	}
}
