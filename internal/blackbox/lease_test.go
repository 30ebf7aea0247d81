package blackbox

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shortLease is waited for until it has run out. Before that some commands are
// sent in time, also on a slow machine beside other work.
const shortLease = "8s"

// TestLease_SilentRunnerLosesTheRun: a runner that was stopped for longer than
// its lease is fenced: its late result is refused and stored nowhere; what it
// had started is unknown and waits for a person, what it had not is not.
func TestLease_SilentRunnerLosesTheRun(t *testing.T) {
	t.Parallel()
	e := start(t, "--lease", shortLease)
	s := e.create("")
	r := e.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"a", "Bash", `{"n":1}`}, call{"b", "Bash", `{"n":2}`})
	r.startTool("a")
	ev := e.await(s, "run.interrupted") // by the sweep: no command was needed
	unknown := objects(ev.Data["unknown"])
	if ev.Actor != "_engine" || ev.Command != "" || len(unknown) != 1 || unknown[0]["tool_call_id"] != "a" || unknown[0]["generation"] == nil {
		t.Errorf("interrupted: %s", ev.payload)
	}
	for name, data := range map[string]obj{
		"tool.finish": {"tool_call_id": "a", "success": true, "content": "late"}, "tool.start": {"tool_call_id": "b"}, "run.renew": nil,
		"round.start": nil, "run.finish": {"outcome": "ok"}, "replay.start": nil,
	} {
		r.refused("stale_run", name, data)
	}
	if now := e.sequence(s); now != ev.Seq {
		t.Errorf("late commands moved the session from %d to %d", ev.Seq, now)
	}
	items := e.pending(s)
	if len(items) != 1 || items[0]["kind"] != "unknown" {
		t.Fatalf("pending: %v", items)
	}
	e.refused("decision_not_allowed", s, "approval.decide", obj{"tool_call_id": "a", "generation": items[0]["generation"], "decision": "allow_session"})
	x := e.must(s, "tool.resolve", obj{"tool_call_id": "a", "success": true, "content": "it had run"})
	if x.event() != "tool.resolved" || e.last(s, "tool.resolved").Data["run_id"] == nil {
		t.Errorf("resolved: %s", x.raw)
	}
	e.audit(s)
}

// TestLease_CrashedLoopIsContinuedOrAbandoned: its session is blocked with one
// mark, until a person says how to go on.
func TestLease_CrashedLoopIsContinuedOrAbandoned(t *testing.T) {
	t.Parallel()
	e := start(t, "--lease", shortLease)
	sessions := map[string]string{"continue": e.create("-continue"), "abandon": e.create("-abandon")}
	for _, s := range sessions {
		r := e.beginLoop(s, 3, 9)
		r.answer(r.admit(), "one")
		r.admit()
	}
	for way, s := range sessions {
		e.await(s, "run.interrupted")
		generation := e.part(s, "loop")["generation"]
		for range 3 {
			e.refused("recovery_unsupported", s, "run.request", obj{"prompt": "q"}, id("again"))
			e.refused("recovery_unsupported", s, "run.resume", nil)
		}
		if n := e.count(s, "loop.recovery_refused"); n != 1 {
			t.Errorf("%d marks", n)
		}
		e.wantLoop(s, "recovery_unsupported", "2/1/2")
		e.refused("invalid_command", s, "loop."+way, obj{"generation": generation})
		e.refused("generation_changed", s, "loop."+way, obj{"generation": "00000000-0000-4000-8000-000000000000", "acknowledge_unknown": true})
		e.must(s, "loop."+way, obj{"generation": generation, "acknowledge_unknown": true})
		if way == "abandon" {
			e.wantLoop(s, "recovery_unsupported", "2/1/2")
			q := e.begin(s, obj{"prompt": "q"})
			q.answer(q.admit(), "fine")
			q.finish("ok")
			e.audit(s)
			continue
		}
		q := e.claimNext(s)
		l := e.wantLoop(s, "running", "0/0/0")
		if l["max_iterations"] != 2.0 || l["max_total_rounds"] != 7.0 || l["generation"] == generation || l["revision"] != 2.0 {
			t.Errorf("continued: %v", l)
		}
		for range 2 {
			q.answer(q.admit(), "x")
		}
		q.finish("ok")
		e.wantLoop(s, "completed", "2/2/2")
		e.audit(s)
	}
}

// TestLease_AnyCommandOfTheRunnerKeepsIt: renewals and work alike; the run of a
// runner that is heard lives on.
func TestLease_AnyCommandOfTheRunnerKeepsIt(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	e := start(t, "--lease", fmt.Sprint(lease))
	s := e.create("")
	r := e.begin(s, obj{"prompt": "p"})
	for end, n := time.Now().Add(5*lease/2), 0; time.Now().Before(end); n++ {
		if n%2 == 0 {
			r.must("run.renew", nil)
		} else {
			r.calls(r.admit(), call{"c", "Bash", "{}"})
			r.useTool("c")
		}
		<-time.After(300 * time.Millisecond) // a runner at work
	}
	r.answer(r.admit(), "done")
	r.finish("ok")
	if e.count(s, "run.interrupted") != 0 {
		t.Errorf("%s", e.types(s))
	}
}

// TestLease_PausedEngineInterruptsNobody: an engine that was stopped for longer
// than the lease does not take the runs for dead that another one has kept
// alive meanwhile.
func TestLease_PausedEngineInterruptsNobody(t *testing.T) {
	t.Parallel()
	const lease, inbox = 6 * time.Second, "_INBOX.renewals"
	server := startNATS(t)
	a := join(t, server.url, "--lease", fmt.Sprint(lease))
	b := join(t, server.url, "--lease", fmt.Sprint(lease))
	s := a.create("")
	r := a.begin(s, obj{"prompt": "p"})
	for range 20 { // both engines have the session in memory then
		a.read(s)
		r.must("run.renew", nil)
	}
	answers := a.listen(inbox)
	// Half of the renewals go to the engine that does not answer, so none is
	// waited for.
	renew := func(d time.Duration) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
			m := message(s, "run.renew", r.body(nil))
			m.Reply = inbox
			must(t, a.nc.PublishMsg(m))
		}
	}
	b.signal(syscall.SIGSTOP)
	renew(lease + lease/2)
	b.signal(syscall.SIGCONT)
	renew(lease)
	r.answer(r.admit(), "done")
	for _, m := range drain(answers) {
		if x := string(m.Data); !strings.Contains(x, `"ok":true`) && !strings.Contains(x, `"unavailable"`) {
			t.Errorf("renew: %s", x)
		}
	}
	r.finish("ok")
	if n := a.count(s, "run.interrupted"); n != 0 {
		t.Errorf("interrupted: %s", a.types(s))
	}
	a.audit(s)
}

// TestLease_TwoActivationsMarkOnce: of many activations that find a dead loop
// one marks it, and its lapse is one event though two engines sweep.
func TestLease_TwoActivationsMarkOnce(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	a := join(t, server.url, "--lease", shortLease)
	join(t, server.url, "--lease", shortLease)
	s := a.create("")
	r := a.beginLoop(s, 2, 5)
	r.admit()
	a.await(s, "run.interrupted")
	codes := make(chan string, 16)
	for range 16 {
		go func() { x, _ := a.repeat(message(s, "run.request", obj{"prompt": "q"})); codes <- x.code() }()
	}
	for range 16 {
		if code := <-codes; code != "recovery_unsupported" {
			t.Errorf("activation: %q", code)
		}
	}
	if i, m := a.count(s, "run.interrupted"), a.count(s, "loop.recovery_refused"); i != 1 || m != 1 {
		t.Errorf("%d lapses, %d marks: %s", i, m, a.types(s))
	}
	a.audit(s)
}
