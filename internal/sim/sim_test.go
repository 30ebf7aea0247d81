package sim

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"culm/aggregate"
	"culm/events"
	"culm/runner"
)

const session = "s"

type m map[string]any

// shards play their share of the histories side by side.
const shards = 4

// TestSim plays random histories. CULM_SIM says how many, CULM_SEED where to
// begin; a failure names its seed.
func TestSim(t *testing.T) {
	histories, first := number("CULM_SIM", 150), number("CULM_SEED", 1)
	t.Logf("%d histories from seed %d", histories, first)
	seen := make([]map[string]int, shards)
	t.Run("shards", func(t *testing.T) {
		for shard := range seen {
			seen[shard] = map[string]int{}
			t.Run(strconv.Itoa(shard), func(t *testing.T) {
				t.Parallel()
				for seed := first + shard; seed < first+histories && !t.Failed(); seed += shards {
					synctest.Test(t, func(t *testing.T) { play(t, uint64(seed), seen[shard]) }) //nolint:gosec // a seed
				}
			})
		}
	})
	sum := map[string]int{}
	for _, part := range seen {
		for kind, n := range part {
			sum[kind] += n
		}
	}
	t.Logf("events: %v", sum)
	for _, kind := range usual {
		if sum[kind] == 0 && histories >= 100 {
			t.Errorf("no history holds %s", kind)
		}
	}
}

// usual are events that a hundred histories hold, or they are too tame.
var usual = []string{
	"run.interrupted", "run.finished", "run.cancel_requested", "loop.stopped", "loop.recovery_refused", "tool.started", "tool.denied", "tool.parked",
	"approval.decided", "replay.started", "replay.finished", "replay.reparked", "replay.blocked", "session.plan_entered",
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func play(t *testing.T, seed uint64, seen map[string]int) {
	w := newWorld(t, seed)
	w.begin()
	for range 20 + w.dice.n(40) {
		time.Sleep(time.Duration(w.dice.n(4000)) * time.Millisecond)
		w.something()
	}
	w.log.SetUnavailable(false)
	w.calm.Store(true)
	w.settle(seed)
	for i := range w.runners {
		w.runners[i].stop()
	}
	for i := range w.runners {
		w.runners[i].done.Wait()
	}
	for i := range w.engines {
		if err := w.engines[i].Load().Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	w.judge(seed, seen)
}

func (w *world) begin() {
	create := m{"model": m{"provider": "p", "model": "x"}, "enforce_policy": w.dice.once(2)}
	for w.state() == nil { // faults may take all the attempts of one say
		w.say("session.create", create)
	}
	w.tell("_settings", "policy.add_rule", m{"rule_id": "free", "effect": "allow", "scope": "global", "permission_type": "write_file", "matcher": m{"kind": "path_subtree", "pattern": "/free"}})
	w.request()
}

func (w *world) request() {
	body := m{"prompt": "P"}
	if w.dice.once(2) {
		body["loop"] = m{"max_iterations": 3, "max_total_rounds": 9, "on_park": []string{"end", "pause"}[w.dice.n(2)]}
	}
	w.say("run.request", body)
}

func (w *world) say(name string, data m) bool { return w.tell(session, name, data) }

// tell gives a client's command to one of the engines, again while it is not
// known what became of it, under a new id.
func (w *world) tell(session, name string, data m) bool {
	for range 4 {
		reply, err := give(context.Background(), w.engines[w.dice.n(2)].Load(), "ann", session, runner.Command{Name: name, Data: data})
		if err == nil && (reply.Error == nil || reply.Error.Code != aggregate.CodeUnavailable) {
			return reply.OK
		}
		time.Sleep(time.Second)
	}
	return false
}

// state is the fold of the log; nil while the store is away or there is none.
func (w *world) state() *aggregate.State {
	s, err := aggregate.Fold(w.log.Read(context.Background(), session, 0, 0))
	if err != nil {
		return nil
	}
	return s
}

// something happens.
func (w *world) something() {
	switch w.dice.n(24) {
	case 0:
		w.say("run.cancel", m{})
	case 1:
		w.say("loop.stop", m{})
	case 2:
		w.say("session.set_mode", m{"mode": []string{"auto", "default"}[w.dice.n(2)]})
	case 3:
		w.say("session.enter_plan", m{})
	case 4, 5:
		w.say("session.exit_plan", m{})
	case 6:
		w.tell("_settings", "policy.add_rule", m{"rule_id": "no", "effect": "deny", "scope": "global", "permission_type": "write_file", "matcher": m{"kind": "path_subtree", "pattern": "/ask/1.1"}})
	case 7:
		w.tell("_settings", "policy.remove_rule", m{"rule_id": "no"})
	case 8:
		w.say("run.resume", m{})
	case 9, 10:
		w.request()
	case 11:
		w.runners[w.dice.n(2)].die()
	case 12:
		w.restart(w.dice.n(2))
	case 13:
		w.log.SetUnavailable(true)
		time.Sleep(time.Duration(w.dice.n(20)) * time.Second)
		w.log.SetUnavailable(false)
	case 14:
		w.openTheWay()
	default:
		w.decide(w.dice.n(4) == 0)
	}
	w.revive()
}

// revive starts dead runners again, later.
func (w *world) revive() {
	for i, p := range w.runners {
		if p.dead.Load() && (w.calm.Load() || w.dice.once(3)) {
			p.done.Wait()
			w.runners[i] = w.runner(i)
		}
	}
}

// decide decides one waiting call, mostly by allowing it, sometimes from two
// sides at once.
func (w *world) decide(denied bool) {
	s := w.state()
	if s == nil {
		return
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		if !c.Status.Waiting() || c.Generation == "" || w.dice.once(3) && !w.calm.Load() {
			continue
		}
		body := m{"tool_call_id": c.ID, "generation": c.Generation, "decision": "allow_once"}
		if denied {
			body["decision"] = "deny_once"
		}
		if w.dice.once(4) {
			go w.say("approval.decide", m{"tool_call_id": c.ID, "generation": c.Generation, "decision": "deny_once"})
		}
		w.say("approval.decide", body)
	}
}

// openTheWay lifts the block of a loop.
func (w *world) openTheWay() {
	if s := w.state(); s != nil && s.Loop != nil {
		w.say("loop.abandon", m{"generation": s.Loop.Generation, "acknowledge_unknown": true})
	}
}

// settle brings the session to rest: everything that waits is denied.
func (w *world) settle(seed uint64) {
	for range 100 {
		w.revive()
		time.Sleep(20 * time.Second)
		for i := range w.engines {
			_ = w.engines[i].Load().Sweep(context.Background(), nil)
		}
		s := w.state()
		if s == nil {
			_, err := aggregate.Fold(w.log.Read(context.Background(), session, 0, 0))
			w.t.Fatalf("seed %d: the log cannot be folded: %v\n%s", seed, err, w.story())
		}
		step := aggregate.Next(s, aggregate.Config{})
		if step.Kind == aggregate.StepNothing && s.Run == nil && s.Waiting() == 0 && unsettled(s) == 0 {
			return
		}
		w.decide(true)
		w.openTheWay()
		w.say("run.resume", m{})
	}
	w.t.Errorf("seed %d: the session does not come to rest:\n%s", seed, w.story())
}

func unsettled(s *aggregate.State) (n int) {
	for i := range s.Calls {
		if s.Calls[i].Status != aggregate.CallSettled {
			n++
		}
	}
	return n
}

// judge checks the log, the world and the audit.
func (w *world) judge(seed uint64, seen map[string]int) {
	c := newCheck()
	for r, err := range w.log.Read(context.Background(), session, 0, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := events.Decode(r.Payload)
		if err != nil {
			w.t.Fatal(err)
		}
		seen[e.Type]++
		if bad := c.event(&e); bad != "" {
			w.t.Errorf("seed %d: %d %s: %s\n%s", seed, e.Seq, e.Type, bad, w.story())
			return
		}
		if events.Suspends(e.Data) {
			c.suspended[e.Run] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if bad := c.world(w.ran); bad != "" {
		w.t.Errorf("seed %d: %s\n%s", seed, bad, w.story())
	}
	report, err := aggregate.Audit(w.log.Read(context.Background(), session, 0, 0), aggregate.AuditOptions{Session: session})
	if err != nil || !report.OK() {
		w.t.Errorf("seed %d: audit: %+v, %v", seed, report, err)
	}
}

// story is the log in short.
func (w *world) story() string {
	var b strings.Builder
	for r, err := range w.log.Read(context.Background(), session, 0, 0) {
		if err != nil {
			return err.Error()
		}
		e, _ := events.Decode(r.Payload)
		fmt.Fprintf(&b, "%3d %s %.8s %s %+v\n", e.Seq, e.Time.Format("04:05.000"), e.Run, e.Type, e.Data)
	}
	return b.String()
}
