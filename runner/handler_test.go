package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	gocmp "github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/provider"
	"culm/provider/recorded"
	"culm/provider/transcript"
	"culm/runner"
	"culm/tool"
	recordedtool "culm/tool/recorded"
)

// direct gives commands to the rules as the engine's own runner does.
type direct struct {
	*aggregate.Handler
	actor string
}

func (d direct) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	body, err := json.Marshal(c.Data)
	if err != nil {
		return aggregate.Reply{}, err
	}
	replies := make(chan aggregate.Reply, 1)
	d.Handle(ctx, aggregate.Request{
		Actor: d.actor, Session: session, Name: c.Name, Body: body, ID: c.ID, Digest: events.CommandDigest(c.Name, body),
	}, func(r aggregate.Reply) { replies <- r })
	select {
	case r := <-replies:
		return r, nil
	case <-ctx.Done():
		return aggregate.Reply{}, ctx.Err()
	}
}

type alwaysAlive struct{}

func (alwaysAlive) Duration() time.Duration                             { return 15 * time.Second }
func (alwaysAlive) Renew(context.Context, string, string) error         { return nil }
func (alwaysAlive) Alive(context.Context, string, string) (bool, error) { return true, nil }
func (alwaysAlive) Release(context.Context, string) error               { return nil }

type inMemory struct{}

func (inMemory) Mark() uint64                    { return 1 }
func (inMemory) Then(_ uint64, done func(error)) { done(nil) }

// ruled is a session S under the real rules with a Runner that follows it.
type ruled struct {
	log    *events.Mem
	client direct
}

func startRuled(t *testing.T, p provider.Provider, tools tool.Tools) (r ruled, stop func()) {
	t.Helper()
	return startRuledOver(t, p, tools, func(e runner.Engine) runner.Engine { return e })
}

// startRuledOver is startRuled with something between the Runner and the rules.
func startRuledOver(t *testing.T, p provider.Provider, tools tool.Tools, over func(runner.Engine) runner.Engine) (r ruled, stop func()) {
	t.Helper()
	r.log = events.NewMem()
	h := aggregate.NewHandler(aggregate.Options{
		Log: r.log, Leases: alwaysAlive{}, Barrier: inMemory{}, Config: func() aggregate.Config { return aggregate.Config{LeaseMS: 15000} },
	})
	r.client = direct{h, "alice"}
	wake := make(chan string, 1000)
	var providers provider.Registry
	if err := providers.Add("p", p); err != nil {
		t.Fatal(err)
	}
	rn, err := runner.New(runner.Config{Engine: over(direct{h, "r1"}), Wake: wake, Name: "r1", Providers: &providers, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- rn.Run(ctx) }()
	go func() {
		err := r.log.Follow(ctx, events.FollowOptions{All: true}, func(rec events.Record) error { wake <- rec.Session; return nil })
		if ctx.Err() != nil {
			err = nil
		}
		done <- err
	}()
	return r, func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
		r.audit(t)
	}
}

// do gives a client's command, which must be accepted.
func (r ruled) do(t *testing.T, name string, data m) {
	t.Helper()
	reply, err := r.client.Do(t.Context(), "S", runner.Command{Name: name, Data: data})
	if err != nil || !reply.OK {
		t.Fatalf("%s: %+v %v, %v", name, reply, reply.Error, err)
	}
}

func (r ruled) audit(t *testing.T) {
	t.Helper()
	report, err := aggregate.Audit(r.log.Read(context.Background(), "S", 0, 0), aggregate.AuditOptions{Session: "S"})
	if err != nil || !report.OK() {
		t.Errorf("audit: %+v, %v", report, err)
	}
}

func (r ruled) types(t *testing.T) (types []string) {
	t.Helper()
	for rec, err := range r.log.Read(t.Context(), "S", 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, rec.Type)
	}
	return types
}

func TestRules_LoopPlaysTheExample(t *testing.T) {
	t.Parallel()
	rec, err := transcript.Open("../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r, stop := startRuled(t, recorded.New(rec, recorded.Options{}), recordedtool.New(rec, recordedtool.Options{}))
		defer stop()
		r.do(t, "session.create", m{"mode": "auto", "model": m{"provider": "p", "model": "sample-1"}})
		r.do(t, "run.request", m{"prompt": rec.Prompts[0].Text, "loop": m{"max_iterations": 3, "max_total_rounds": 20}})
		time.Sleep(time.Minute)
		counts := map[string]int{}
		types := r.types(t)
		for _, typ := range types {
			counts[typ]++
		}
		want := map[string]int{
			"session.created": 1, "run.requested": 1, "run.started": 1, "round.started": 8, "round.finished": 10,
			"tool.authorized": 10, "tool.started": 10, "tool.finished": 10, "run.finished": 1,
		}
		if diff := gocmp.Diff(want, counts); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Recordings of real sessions, where they are: whatever they hold, a run ends
// once, within its bounds or without any, and every call has an outcome.
func TestRules_EveryRecordingPlaysToAnEnd(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("CULM_TRANSCRIPTS"), "../../shared/data/transcripts")
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../examples/three_drafts.jsonl") {
		rec, err := transcript.Open(file, transcript.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r, stop := startRuled(t, recorded.New(rec, recorded.Options{Pace: time.Millisecond}), recordedtool.New(rec, recordedtool.Options{}))
			defer stop()
			r.do(t, "session.create", m{"mode": "auto", "no_human_approver": true})
			r.do(t, "run.request", m{"prompt": "P", "loop": m{"max_iterations": 3, "max_total_rounds": 60}})
			time.Sleep(time.Hour)
			r.do(t, "run.request", m{"prompt": "once more, without bounds"})
			time.Sleep(time.Hour)
			counts := map[string]int{}
			for _, typ := range r.types(t) {
				counts[typ]++
			}
			if counts["run.finished"] != 2 || counts["round.finished"] > 120 || counts["tool.started"] != counts["tool.finished"] {
				t.Errorf("%s: %v", filepath.Base(file), counts)
			}
		})
	}
}

// deaf loses the first reply to every command, whose outcome then is not known.
type deaf struct {
	runner.Engine
	mu      sync.Mutex
	lost    map[string]bool // by command id
	refused []string
}

func (d *deaf) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	reply, err := d.Engine.Do(ctx, session, c)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.lost[c.ID] {
		d.lost[c.ID] = true
		return aggregate.Reply{}, errors.New("no reply came")
	}
	if err == nil && !reply.OK {
		d.refused = append(d.refused, c.Name+" "+reply.Error.Code)
	}
	return reply, err
}

// A command whose reply was lost is given again as the same command: it is
// neither carried out twice nor refused for what it did itself.
func TestRules_EveryFirstReplyIsLost(t *testing.T) {
	t.Parallel()
	rec, err := transcript.Open("../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	play := func(t *testing.T, over func(runner.Engine) runner.Engine) (types string) {
		synctest.Test(t, func(t *testing.T) {
			r, stop := startRuledOver(t, recorded.New(rec, recorded.Options{}), recordedtool.New(rec, recordedtool.Options{}), over)
			defer stop()
			r.do(t, "session.create", m{"mode": "auto", "model": m{"provider": "p", "model": "sample-1"}})
			r.do(t, "run.request", m{"prompt": rec.Prompts[0].Text, "loop": m{"max_iterations": 2, "max_total_rounds": 20}})
			time.Sleep(time.Hour)
			types = strings.Join(slices.Sorted(slices.Values(r.types(t))), " ") // calls of one answer run side by side
		})
		return types
	}
	d := &deaf{lost: map[string]bool{}}
	heard := play(t, func(e runner.Engine) runner.Engine { return e })
	if got := play(t, func(e runner.Engine) runner.Engine { d.Engine = e; return d }); got != heard {
		t.Errorf("events\n%s, with every reply heard\n%s", got, heard)
	}
	if len(d.refused) > 0 || len(d.lost) < 20 {
		t.Errorf("refused %v, %d commands", d.refused, len(d.lost))
	}
}

func TestRules_LoopOfPlainAnswersCostsOneEventEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stop := startRuled(t, says("x"), tools{})
		defer stop()
		r.do(t, "session.create", m{})
		r.do(t, "run.request", m{"prompt": "P", "loop": m{"max_iterations": 5, "max_total_rounds": 5}})
		time.Sleep(time.Minute)
		want := []string{
			"session.created", "run.requested", "run.started", "round.started",
			"round.finished", "round.finished", "round.finished", "round.finished", "round.finished", "run.finished",
		}
		if diff := gocmp.Diff(want, r.types(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestRules_ApprovedCallIsReplayedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ran := map[string]int{}
		r, stop := startRuled(t, says("call a=Read b=Write", "end"), tools{
			ask: map[string]*tool.Question{"Write": {Text: "Write?", Approval: true}},
			execute: func(_ context.Context, c tool.Call, _ func(string)) tool.Result {
				time.Sleep(time.Second)
				ran[fmt.Sprint(c.ID, " ", c.Replay)]++ // one at a time: the other call waits
				return tool.Result{Success: true, Content: "done"}
			},
		})
		defer stop()
		r.do(t, "session.create", m{})
		r.do(t, "run.request", m{"prompt": "P"})
		time.Sleep(time.Minute)
		r.do(t, "approval.decide", m{"tool_call_id": "b", "generation": r.generation(t), "decision": "allow_once"})
		time.Sleep(time.Minute)
		want := []string{
			"session.created", "run.requested", "run.started", "round.started", "round.finished",
			"tool.authorized", "tool.started", "tool.parked", "tool.finished",
			"approval.decided", "run.started", "replay.started", "replay.finished", "round.started", "round.finished", "run.finished",
		}
		if diff := gocmp.Diff(want, r.types(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(map[string]int{"a false": 1, "b true": 1}, ran); diff != "" {
			t.Errorf("executions (-want +got):\n%s", diff)
		}
	})
}

// generation is that of the newest parked call.
func (r ruled) generation(t *testing.T) string {
	t.Helper()
	generation := ""
	for rec, err := range r.log.Read(t.Context(), "S", 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Decode(rec.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := e.Data.(events.ToolParked); ok {
			generation = p.Request.Generation
		}
	}
	return generation
}

func TestRules_AgreeWithToolsOnWhatMayRunInPlanMode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Read", "GetFileInfo", "Glob", "Grep", "WebFetch", "WebSearch", "ViewImage", "Workspace", "BashOutput", "Sleep", "update_goal",
		"notify", "EnterPlanMode", "ExitPlanMode", "request_permissions", "session_note", "session_history", "session_inspector", "recall",
		"memory_note", "archive_context", "compact_context", "Write", "Edit", "Bash", "Task", "", "get_file_info", "Reader",
	} {
		if tool.Mutates(name) == policy.PlanAllowed(name) {
			t.Errorf("%q: mutating %v, allowed in plan mode %v", name, tool.Mutates(name), policy.PlanAllowed(name))
		}
	}
}

func TestRules_CancelInTheModelCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended error
		r, stop := startRuled(t, blocks(&ended), tools{})
		defer stop()
		r.do(t, "session.create", m{})
		r.do(t, "run.request", m{"prompt": "P", "loop": m{"max_iterations": 3, "max_total_rounds": 9}})
		synctest.Wait()
		r.do(t, "run.cancel", m{})
		synctest.Wait() // the feed is enough: no heartbeat is due yet
		types := strings.Join(r.types(t), " ")
		if !strings.HasSuffix(types, "round.started run.cancel_requested round.failed run.finished") || ended == nil {
			t.Errorf("events: %s", types)
		}
	})
}
