package blackbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// playing are the flags of an engine whose built-in runner plays the example
// slowly enough to be stopped in the middle of it.
func playing(t *testing.T) []string {
	t.Helper()
	example, err := filepath.Abs("../../examples/three_drafts.jsonl")
	must(t, err)
	return provided(t, fmt.Sprintf("{id: p, type: recorded, default: true, file: %q, pace: 60ms}", example))
}

// provided are the flags of an engine with a built-in runner and one provider.
func provided(t *testing.T, provider string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "engine.yaml")
	must(t, os.WriteFile(file, []byte("providers: ["+provider+"]\n"), 0o600))
	return []string{"--config", file, "--no-projector", "--http", "off", "--lease", "60s"}
}

// plays asks for a loop in a new session and waits until it has begun.
func (c *client) plays(suffix string) string {
	c.t.Helper()
	s := sessionName(c.t, suffix)
	c.must(s, "session.create", obj{"model": obj{"provider": "p", "model": "drafts"}})
	c.must(s, "session.set_mode", obj{"mode": "auto"})
	c.must(s, "run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 3, "max_total_rounds": 30}})
	c.await(s, "round.started")
	return s
}

// stopPlaying ends the process in good time and order, before the run has ended.
func (e *engine) stopPlaying(c *client, session string) {
	e.process.t.Helper()
	began := time.Now()
	e.signal(syscall.SIGINT)
	if status := e.wait(); status != 0 {
		e.process.t.Errorf("exit status %d", status)
	}
	if took := time.Since(began); took > 15*time.Second {
		e.process.t.Errorf("the stop took %s", took)
	}
	if c != nil && c.count(session, "run.finished") != 0 {
		e.process.t.Fatalf("the run was over before the stop: %s", c.types(session))
	}
}

// wentOn checks that the run came to its end as if nobody had stopped.
func (c *client) wentOn(session string) {
	c.t.Helper()
	c.await(session, "run.finished")
	rounds := map[string]int{}
	for _, ev := range c.audit(session) {
		switch ev.Type {
		case "run.interrupted", "run.refused", "round.failed", "tool.parked":
			c.t.Errorf("%s: %s", ev.Type, ev.payload)
		case "round.started":
			if id := jsonText([]any{ev.Run, ev.Data["round"]}); rounds[id] > 0 {
				c.t.Errorf("a round twice: %s", ev.payload)
			} else {
				rounds[id]++
			}
		}
	}
	if n := c.count(session, "run.started"); n != 1 {
		c.t.Errorf("%d starts: %s", n, c.types(session))
	}
	c.wantLoop(session, "completed", "3/3/10")
}

// TestRestart_BuiltInRunnerHandsBack: SIGINT while the built-in runner works
// ends within seconds with status 0, and the engine that is started next goes on
// with the run that was held: nothing of it is lost or interrupted.
func TestRestart_BuiltInRunnerHandsBack(t *testing.T) {
	t.Parallel()
	e := &engine{dir: t.TempDir()}
	e.args = slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", e.dir}, playing(t))
	e.up(t)
	s := e.plays("")
	e.stopPlaying(nil, s)
	e.up(t)
	e.wentOn(s)
}

// TestRestart_AnotherEngineGoesOn: of several engines one is stopped; one that
// holds the run's provider goes on with it, be it there already or started
// later, and one that does not leaves it alone.
func TestRestart_AnotherEngineGoesOn(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	c := dial(t, server.url)
	joined := func(flags []string) *engine {
		e := &engine{args: slices.Concat([]string{"--nats", server.url}, flags)}
		e.up(t)
		return e
	}
	claimed := func(s string, engines ...*engine) (e *engine) {
		eventually(t, "an engine has claimed the run", func() bool {
			i := slices.IndexFunc(engines, func(e *engine) bool { return strings.Contains(e.output(), `msg="claimed the run" session=`+s) })
			if i >= 0 {
				e = engines[i]
			}
			return i >= 0
		})
		return e
	}
	a := joined(playing(t))
	joined(provided(t, "{id: p, type: openai, default: true, api_key_env: NOT_SET}")) // has no client for it
	s := c.plays("-later")
	a.stopPlaying(c, s)
	b := joined(playing(t))
	c.wentOn(s)
	d := joined(playing(t))
	s = c.plays("-there")
	claimed(s, b, d).stopPlaying(c, s)
	c.wentOn(s)
}
