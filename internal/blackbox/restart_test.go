package blackbox

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRestart_NineLeaveNothingTwice: a requested loop, a waiting call, and
// queued commands are what they were after nine restarts, half of them crashes;
// then each is carried out once.
func TestRestart_NineLeaveNothingTwice(t *testing.T) {
	t.Parallel()
	e := start(t)
	loop, parked := e.create("-loop"), e.create("-parked")
	e.must(loop, "run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 3, "max_total_rounds": 9}})
	r := e.begin(parked, obj{"prompt": "p"})
	r.calls(r.admit(), call{"w", "Write", "{}"})
	r.park("w")
	before := e.types(loop) + "|" + e.types(parked)
	streams := streamNames(e.client)
	for i := range 9 {
		if i%2 == 0 {
			e.kill()
		} else if status := e.stop(); status != 0 {
			t.Errorf("exit status %d", status)
		}
		e.up(t)
		e.later(loop, "message.submit", obj{"content": "a"}, laterID("queued"))
	}
	if got := streamNames(e.client); !slices.Equal(got, streams) {
		t.Errorf("streams %v, were %v", got, streams)
	}
	e.await(loop, "message.submitted")
	e.awaitEmptyQueue()
	if after := e.types(loop) + "|" + e.types(parked); after != strings.Replace(before, "|", " message.submitted|", 1) {
		t.Errorf("after nine restarts: %s\nbefore: %s", after, before)
	}
	queue, err := e.js.Stream(t.Context(), "COMMANDS")
	must(t, err)
	if n := queue.CachedInfo().State.Consumers; n != 1 {
		t.Errorf("%d consumers of the queue", n)
	}
	e.decide(parked, "w", "allow_once")
	q := e.claimNext(parked)
	q.must("replay.start", nil)
	q.endTool("w", "ok")
	l := e.claimNext(loop)
	for range 3 {
		l.answer(l.admit(), "x")
	}
	l.finish("ok")
	e.wantLoop(loop, "completed", "3/3/3")
	e.audit(loop)
	e.audit(parked)
}

func streamNames(c *client) []string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out []string
	names := c.js.StreamNames(ctx)
	for name := range names.Name() {
		out = append(out, name)
	}
	must(c.t, names.Err())
	slices.Sort(out)
	return out
}

// TestRestart_StopWhileParkedLeavesItParked: SIGTERM ends within seconds, and
// nothing is cancelled or denied by it; a subscriber that comes later
// finds the item.
func TestRestart_StopWhileParkedLeavesItParked(t *testing.T) {
	t.Parallel()
	e := start(t)
	s := e.create("")
	r := e.beginLoop(s, 2, 5, obj{"on_park": "pause"})
	r.calls(r.admit(), call{"w", "Write", `{"n":9007199254740993}`}, call{"q", "Ask", "{}"})
	r.park("w")
	r.ask("q")
	before := e.read(s)
	began := time.Now()
	if status := e.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	e.up(t)
	after := e.read(s)
	if rawState(t, after) != rawState(t, before) || after.Sequence != before.Sequence || after.HeadHash != before.HeadHash {
		t.Errorf("before %s\nafter %s", before.raw, after.raw)
	}
	e.must(s, "question.answer", obj{"tool_call_id": "q", "answer": "yes"})
	e.decide(s, "w", "allow_once")
	q := e.claimNext(s)
	if rep, _ := q.must("replay.start", nil).Result["replay"].(obj); rep["arguments"] != `{"n":9007199254740993}` {
		t.Errorf("replay: %v", rep)
	}
	e.audit(s)
}

// TestRestart_LiveRunKeepsItsFence: a runner elsewhere goes on with the run it
// held, over a stop and over a crash, in the middle of a round and of a call.
func TestRestart_LiveRunKeepsItsFence(t *testing.T) {
	t.Parallel()
	e := start(t, "--lease", "60s")
	s := e.create("")
	r := e.beginLoop(s, 2, 5)
	again := []func(){func() { e.kill(); e.up(t) }, func() { e.stop(); e.up(t) }}
	for i, restart := range again {
		n := r.admit()
		restart()
		r.calls(n, call{"c", "Bash", "{}"})
		restart()
		r.startTool("c")
		restart()
		r.endTool("c", "ok")
		restart()
		n = r.admit()
		restart()
		r.answer(n, jsonText(i))
	}
	e.kill()
	e.up(t)
	r.finish("ok")
	e.wantLoop(s, "completed", "2/2/4")
	if n := e.count(s, "run.interrupted"); n != 0 {
		t.Errorf("interrupted: %s", e.types(s))
	}
	e.audit(s)
}

// TestRestart_BuiltInRunnerHandsBack: SIGTERM while the built-in runner works
// ends within seconds with status 0; what it held is over or can be taken up,
// and nothing is left that only a crash would explain.
func TestRestart_BuiltInRunnerHandsBack(t *testing.T) {
	t.Parallel()
	e := &engine{dir: t.TempDir()}
	e.args = []string{"--listen", "127.0.0.1:0", "--data", e.dir, "--no-projector", "--http", "off"}
	e.up(t)
	s := sessionName(t, "")
	e.must(s, "session.create", nil)
	e.must(s, "run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 3, "max_total_rounds": 30}})
	e.await(s, "round.started")
	began := time.Now()
	e.signal(syscall.SIGINT)
	if status := e.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the stop took %s", took)
	}
	e.up(t)
	list := e.audit(s)
	if n := e.count(s, "run.started"); n < 1 {
		t.Errorf("%d starts: %s", n, e.types(s))
	}
	rounds := map[any]int{}
	for _, ev := range list {
		if ev.Type == "round.started" {
			if rounds[jsonText([]any{ev.Run, ev.Data["round"]})]++; rounds[jsonText([]any{ev.Run, ev.Data["round"]})] > 1 {
				t.Errorf("a round twice: %s", ev.payload)
			}
		}
	}
}
