package projection

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
)

// history makes logs by giving random commands to the rules: whatever comes of
// it is what a log can hold. Not safe for concurrent use.
type history struct {
	t       testing.TB
	log     events.Log
	rules   *aggregate.Handler
	leases  *testLeases
	random  *rand.Rand
	now     time.Time
	states  map[string]*aggregate.State
	n       int
	Events  int
	types   map[string]int // events by type
	broken  map[string]bool
	noClose bool // sessions stay open, and are not deleted
}

func newHistory(t testing.TB, log events.Log, seed uint64) *history {
	h := &history{
		t: t, log: log, leases: &testLeases{dead: map[string]bool{}}, random: rand.New(rand.NewPCG(seed, 1)),
		now: time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC), states: map[string]*aggregate.State{}, broken: map[string]bool{}, types: map[string]int{},
	}
	var entropy uint64
	h.rules = aggregate.NewHandler(aggregate.Options{
		Log: log, Leases: h.leases, Barrier: noBarrier{}, Now: func() time.Time { return h.now },
		Entropy: func(b []byte) {
			entropy++
			for i := range b {
				b[i] = byte(entropy >> (8 * (i % 8)))
			}
		},
	})
	t.Cleanup(func() { _ = h.rules.Close(context.Background()) })
	return h
}

type noBarrier struct{}

func (noBarrier) Mark() uint64                      { return 0 }
func (noBarrier) Then(_ uint64, done func(e error)) { done(nil) }

// testLeases let runs live until told otherwise.
type testLeases struct {
	mu   sync.Mutex
	dead map[string]bool
}

func (l *testLeases) Duration() time.Duration { return time.Hour }
func (l *testLeases) Renew(context.Context, string, string) error {
	return nil
}

func (l *testLeases) Alive(_ context.Context, _, run string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead[run], nil
}
func (l *testLeases) Release(context.Context, string) error { return nil }

func (l *testLeases) kill(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[run] = true
}

type fields = map[string]any

// give gives one command and returns whether it was accepted.
func (h *history) give(session, name string, data fields) bool {
	h.t.Helper()
	body, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		h.t.Fatal(err)
	}
	h.n++
	h.now = h.now.Add(time.Duration(h.random.IntN(5000)) * time.Millisecond)
	done := make(chan aggregate.Reply, 1)
	h.rules.Handle(h.t.Context(), aggregate.Request{
		Actor: pick(h.random, "alice", "bob", "runner-1"), Session: session, Name: name, ID: fmt.Sprint("cmd-", h.n), Digest: "d", Body: body,
	}, func(r aggregate.Reply) { done <- r })
	r := <-done
	if r.Error != nil && r.Error.Code == aggregate.CodeUnavailable {
		h.t.Fatalf("%s %s %s: %v", session, name, body, r.Error)
	}
	h.fold(session)
	return r.OK
}

// fold moves the history's own state of a session on.
func (h *history) fold(session string) {
	s := h.states[session]
	if s == nil {
		s = &aggregate.State{}
		h.states[session] = s
	}
	before := s.Head.Seq
	for r, err := range h.log.Read(h.t.Context(), session, s.Head.Seq, 0) {
		if err != nil {
			delete(h.states, session)
			return
		}
		h.types[r.Type]++
		if err := s.Apply(r); err != nil {
			// The rules refuse what they wrote themselves: not for the views to
			// judge, so the session leaves the log.
			h.t.Logf("the rules wrote what they do not fold: %v", err)
			h.broken[session] = true
			delete(h.states, session)
			if err := h.log.Delete(h.t.Context(), session, ""); err != nil {
				h.t.Fatal(err)
			}
			return
		}
	}
	if before > 0 {
		h.Events += int(s.Head.Seq - before)
	} else if s.Head.Seq > 0 {
		h.Events++
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (h *history) chance(percent float64) bool { return h.random.Float64()*100 < percent }

// run gives random commands to random sessions until there are so many events.
func (h *history) run(sessions, eventCount int) *history {
	for h.Events < eventCount {
		h.step(fmt.Sprint("s", h.random.IntN(sessions)))
	}
	return h
}

// step gives one command that is likely to be accepted.
func (h *history) step(session string) {
	s := h.states[session]
	switch {
	case h.broken[session]:
	case s == nil || !s.Exists():
		h.create(session)
	case s.Session.Closed:
		if h.chance(20) && !h.noClose {
			h.give(session, "session.delete", fields{"birth": s.Head.Birth})
			delete(h.states, session)
		}
	case h.chance(8):
		h.aside(session, s)
	case s.Waiting() > 0 && h.chance(60):
		h.decide(session, s)
	case s.Run == nil || s.Run.Status == "suspended":
		h.request(session, s)
	default:
		h.work(session, s)
	}
}

func (h *history) create(session string) {
	data := fields{"title": pick(h.random, "", "Ärger mit Zöpfen", "count the files", "\u202efdp.exe")}
	if h.chance(70) {
		data["model"] = fields{"provider": pick(h.random, "p1", "p2"), "model": pick(h.random, "m1", "m2")}
	}
	if h.chance(30) {
		data["metadata"] = fields{"team": pick(h.random, "a", "b"), "k": "v"}
	}
	if h.chance(20) {
		data["kind"], data["parent"] = "child", fields{"session": "s0", "tool_call_id": "c1"}
	}
	if h.chance(20) {
		data["workspace"], data["mode"] = "/srv/x", pick(h.random, "auto", "bypass", "default")
	}
	h.give(session, "session.create", data)
}

// aside gives a command that has little to do with runs.
func (h *history) aside(session string, s *aggregate.State) {
	switch n := h.random.IntN(20); {
	case n < 5:
		h.give(session, "message.submit", fields{"content": h.text()})
	case n < 7:
		h.give(session, "session.configure", fields{"title": h.text(), "metadata": fields{"k": nil, "n": fmt.Sprint(h.n)}})
	case n < 9:
		h.give(session, "session.set_mode", fields{"mode": pick(h.random, "default", "auto", "bypass")})
	case n < 11:
		h.give(session, pick(h.random, "session.enter_plan", "session.exit_plan"), fields{})
	case n < 13:
		h.give(session, "note.append", fields{"kind": "build", "data": fields{"n": h.n}})
	case n < 14:
		h.policy()
	case n < 15:
		h.give(session, "loop.stop", fields{})
	case n < 17:
		h.give(session, "run.cancel", fields{})
	case n < 18 && s.Run != nil:
		h.leases.kill(s.Run.ID)
		h.give(session, "message.submit", fields{"content": "are you there?"})
	case n < 19 && !h.noClose && h.chance(30):
		h.give(session, "session.close", fields{"reason": "done"})
	}
}

// policy changes the policy of the installation.
func (h *history) policy() {
	if h.chance(50) {
		h.give("_settings", "policy.set_mode", fields{"mode": pick(h.random, "default", "auto", "accept_edits", "plan")})
		return
	}
	rule := pick(h.random, "r1", "r2", "r3")
	if h.chance(40) {
		h.give("_settings", "policy.remove_rule", fields{"rule_id": rule})
		return
	}
	h.give("_settings", "policy.add_rule", fields{
		"rule_id": rule, "effect": pick(h.random, "allow", "deny", "always_ask"), "scope": "global", "permission_type": pick(h.random, "read_file", "write_file"),
		"matcher": fields{"kind": "exact_resource", "pattern": "/srv/x/a"},
	})
}

func (h *history) text() string {
	return pick(h.random, "please count the files", "naïve café, größer 日本", "<script>alert(1)</script>", "nul \x00 inside", "a\nb\tc", "x") + fmt.Sprint(" ", h.n)
}

func (h *history) request(session string, s *aggregate.State) {
	if l := s.Loop; l != nil && h.chance(30) {
		h.give(session, pick(h.random, "loop.continue", "loop.abandon"), fields{"generation": l.Generation, "acknowledge_unknown": true})
		return
	}
	if h.chance(20) {
		h.give(session, "run.resume", fields{})
		return
	}
	data := fields{"prompt": h.text()}
	if h.chance(50) {
		k := 1 + h.random.IntN(4)
		data["loop"] = fields{"max_iterations": k, "max_total_rounds": k + h.random.IntN(8), "on_park": pick(h.random, "end", "pause")}
	}
	if h.chance(30) {
		data["budget"] = fields{"max_total_tokens": 300, "max_tool_calls": 4, "max_rounds": 9}
	}
	h.give(session, "run.request", data)
}

// closeAll closes every session, so that nothing of them changes any more.
func (h *history) closeAll() {
	for _, s := range slices.Sorted(maps.Keys(h.states)) {
		h.give(s, "session.close", fields{})
	}
}

// heads are the sequences that the views must reach.
func heads(t testing.TB, log events.Log) map[string]uint64 {
	t.Helper()
	infos, err := log.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, i := range infos {
		out[i.Session] = i.LastSeq
	}
	return out
}
