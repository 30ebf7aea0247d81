package bus

import (
	"fmt"
	"sync"
	"testing"

	"culm/aggregate"
)

func TestLater_NextEngineGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	dead := &fakeRules{came: make(chan aggregate.Request, 10), handle: func(aggregate.Request, func(aggregate.Reply)) {}}
	first := q.engine(t, dead)
	for n := range 3 {
		q.put(t, "alice.S.n.v", nil, bodyOf(n))
	}
	lost := awaitValue(t, dead.came) // given to the rules, never answered, never removed
	first.o.Conn.Close()
	rules := &fakeRules{came: make(chan aggregate.Request, 10)}
	second := q.engine(t, rules)
	for n := range 3 {
		r := awaitValue(t, rules.came)
		if string(r.Body) != string(bodyOf(n)) {
			t.Fatalf("command %d is %s", n, r.Body)
		}
		if n == 0 && r.ID != lost.ID {
			t.Errorf("handled again as %s, first as %s", r.ID, lost.ID)
		}
	}
	q.stopEmpty(t, second)
}

// Engines die again and again, each while it handles a command; two more stand
// by. What the rules see for the first time is in order, in every session.
func TestLater_OrderHoldsOverCrashes(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	const sessions, each, crashes = 4, 60, 3
	var (
		mu   sync.Mutex
		seen = map[string]bool{} // as the rules remember what they appended
		got  = map[string][]string{}
		all  = make(chan struct{})
		kill = make(chan struct{}, crashes)
	)
	start := func() *Later {
		return q.engine(t, &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) {
			mu.Lock()
			defer mu.Unlock()
			first := !seen[r.ID]
			if first {
				seen[r.ID] = true
				got[r.Session] = append(got[r.Session], string(r.Body))
			}
			if len(seen) == sessions*each {
				select {
				case <-all:
				default:
					close(all)
				}
			}
			if first && len(seen)%50 == 0 && len(seen) <= 50*crashes {
				kill <- struct{}{}
				return // appended, and nobody is told
			}
			done(acceptedReply(r, 1))
		}})
	}
	for n := range each {
		for s := range sessions {
			q.put(t, fmt.Sprintf("alice.S%d.n.v", s), nil, bodyOf(n))
		}
	}
	engines := []*Later{start(), start(), start()}
	for range crashes {
		awaitValue(t, kill)
		for i, l := range engines { // the one that holds the queue is among them
			l.o.Conn.Close()
			engines[i] = start()
		}
	}
	awaitValue(t, all)
	mu.Lock()
	defer mu.Unlock()
	for s := range sessions {
		name := fmt.Sprintf("S%d", s)
		for n, b := range got[name] {
			if b != string(bodyOf(n)) {
				t.Fatalf("%s: command %d is %s", name, n, b)
			}
		}
		if len(got[name]) != each {
			t.Errorf("%s: %d commands", name, len(got[name]))
		}
	}
}

func TestLater_OneOfTwoEnginesHandlesAndHandsOnAtStop(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	type handled struct{ engine, body string }
	came := make(chan handled, 100)
	start := func(name string) *Later {
		return q.engine(t, &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) {
			came <- handled{name, string(r.Body)}
			done(acceptedReply(r, 1))
		}}, func(o *LaterOptions) { o.Takeover = testPatience }) // it keeps the queue, however slow it is
	}
	engines := map[string]*Later{"one": start("one"), "two": start("two")}
	var holder string
	for n := range 20 {
		q.put(t, "alice.S.n.v", nil, bodyOf(n))
		h := awaitValue(t, came)
		if holder == "" {
			holder = h.engine
		}
		if h.engine != holder || h.body != string(bodyOf(n)) {
			t.Fatalf("command %d: %+v, holder %s", n, h, holder)
		}
	}
	if err := engines[holder].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		q.put(t, "alice.S.n.v", nil, bodyOf(n))
		if h := awaitValue(t, came); h.engine == holder || h.body != string(bodyOf(n)) {
			t.Fatalf("command %d after the stop of %s: %+v", n, holder, h)
		}
	}
	for name, l := range engines {
		if name != holder {
			q.stopEmpty(t, l)
		}
	}
}

func TestLater_SurvivesARestartOfTheServerAndLossOfTheQueue(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	rules := &fakeRules{came: make(chan aggregate.Request, 10)}
	l := q.engine(t, rules)
	q.put(t, "alice.S.n.v", nil, bodyOf(0))
	awaitValue(t, rules.came)
	q.ns.Restart(t)
	c := newTestClient(t, q.nc)
	if _, err := c.Later(t.Context(), "S", "n.v", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	if r := awaitValue(t, rules.came); string(r.Body) != string(bodyOf(1)) {
		t.Fatalf("after the restart: %s", r.Body)
	}
	if err := q.js.DeleteStream(t.Context(), LaterStream); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Later(t.Context(), "S", "n.v", map[string]int{"n": 2}); err != nil { // until the queue is there again
		t.Fatal(err)
	}
	if r := awaitValue(t, rules.came); string(r.Body) != string(bodyOf(2)) {
		t.Fatalf("after the loss: %s", r.Body)
	}
	q.stopEmpty(t, l)
}
