package aggregate

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/aggregate/policy"
	"culm/events"
)

// world is one session whose commands a property test draws. It keeps two
// states, one evolved from what Decide returns and one from what is decoded,
// and watches what must never happen.
type world struct {
	t      *rapid.T
	config Config
	state  *State // as Handler keeps it
	read   *State // as a reader of the log has it
	log    []events.Record
	events []events.Event
	cmds   int
	holds  []RunRef
	gens   []string // generations that once were decided under or waited
	watch  watcher
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, state: &State{}, read: &State{}, watch: newWatcher()}
	w.config.Mode = among(t, []string{"", "", "", policy.ModePlan, policy.ModeAcceptEdits}, "mode")
	w.must(SessionCreate{
		Model: &events.Model{Provider: "p", Model: "m"}, ReadOnly: oneIn(t, 10, "read only"),
		EnforcePolicy: oneIn(t, 10, "policy"),
	})
	return w
}

func (w *world) env() Env {
	w.cmds++
	return Env{
		Now: time.Date(2026, 11, 30, 12, 0, w.cmds, 0, time.UTC), Actor: "tester", Command: fmt.Sprintf("cmd-%d", w.cmds),
		Birth: "01KB9ZQ000T8QW2X4Y6Z7A8B9C", Config: w.config,
	}
}

// give decides a command and stores what comes of it; it checks that deciding
// is pure and repeatable.
func (w *world) give(c Command) (Decision, *Rejection) {
	env := w.env()
	before := w.state.Clone()
	d, r := Decide(w.state, c, env)
	if diff := cmp.Diff(before, w.state, stateOptions...); diff != "" {
		w.t.Fatalf("%T: Decide changed the state:\n%s", c, diff)
	}
	if d2, r2 := Decide(w.state, c, env); !reflect.DeepEqual(d, d2) || !reflect.DeepEqual(r, r2) {
		w.t.Fatalf("%T: decided twice:\n%+v %v\n%+v %v", c, d, r, d2, r2)
	}
	if r != nil && d.Event != nil {
		w.t.Fatalf("%T: a rejection with an event", c)
	}
	if rc, ok := c.(runnerCommand); ok && r == nil && w.stale(rc.ref()) {
		w.t.Fatalf("%T with a stale fence was not refused", c)
	}
	if d.Event != nil {
		w.store(d.Event, env, "digest of "+env.Command)
	}
	return d, r
}

func (w *world) stale(ref RunRef) bool {
	run := w.state.Run
	return run == nil || run.Status != runLive || run.ID != ref.RunID || run.Fence != ref.Fence
}

func (w *world) must(c Command) Decision {
	d, r := w.give(c)
	if r != nil {
		w.t.Fatalf("%T refused: %v", c, r)
	}
	return d
}

// lapse interrupts the live run, as a dead runner's lease does.
func (w *world) lapse() {
	env := w.env()
	if w.state.Run != nil {
		env.Command = "lapse:" + w.state.Run.ID
	}
	if d := Lapse(w.state, env); d != nil {
		env.Command, env.Actor = "", engineActor
		w.store(d, env, "")
	}
}

func (w *world) store(d events.Data, env Env, digest string) {
	s := w.state
	var entropy [10]byte
	id, err := events.NextID(s.Head.ID, env.Now, entropy)
	if err != nil {
		w.t.Fatal(err)
	}
	e := events.Event{
		ID: id, Type: d.EventType(), Session: "s", Time: env.Now, Seq: s.Head.Seq + 1, Birth: env.Birth, Actor: env.Actor,
		Command: env.Command, CommandDigest: digest, Run: runOf(s, d), Prevhash: s.Head.Hash, Data: d,
	}
	stored, err := events.Encode(e)
	if err != nil {
		w.t.Fatalf("%s: %v", e.Type, err)
	}
	record := events.Record{Session: "s", Seq: e.Seq, Type: e.Type, Payload: stored}
	s.apply(&e, stored)
	if err := s.Validate(); err != nil {
		w.t.Fatalf("after %s: %v", e.Type, err)
	}
	if err := w.read.Apply(record); err != nil {
		w.t.Fatalf("after %s: %v", e.Type, err)
	}
	decoded, err := events.Decode(stored)
	if err != nil {
		w.t.Fatal(err)
	}
	w.log, w.events = append(w.log, record), append(w.events, decoded)
	w.watch.event(w.t, &decoded, s)
	if run := s.Run; run != nil && run.Status == runLive && (len(w.holds) == 0 || w.holds[len(w.holds)-1].Fence != run.Fence) {
		w.holds = append(w.holds, RunRef{RunID: run.ID, Fence: run.Fence})
	}
	for i := range s.Calls {
		if g := s.Calls[i].Generation; g != "" && !slices.Contains(w.gens, g) {
			w.gens = append(w.gens, g)
		}
	}
}

// stateOptions compare states whole, unexported parts too.
var stateOptions = []cmp.Option{
	cmp.AllowUnexported(policy.Policy{}, State{}, receipt{}),
	cmp.Comparer(func(a, b jsontext.Value) bool { return string(a) == string(b) }),
}

// ref draws a run and fence: the holder's, an earlier one's, or made up.
func (w *world) ref() RunRef {
	current := RunRef{RunID: testGeneration, Fence: 1}
	if run := w.state.Run; run != nil {
		current = RunRef{RunID: run.ID, Fence: run.Fence}
	}
	switch n := pick(w.t, 10, "ref"); {
	case n > 0 || len(w.holds) == 0:
		return current
	case oneIn(w.t, 2, "old"):
		return among(w.t, w.holds, "hold")
	default:
		return RunRef{RunID: current.RunID, Fence: current.Fence + 1}
	}
}

// call draws the id of a call: of the last answer, mostly.
func (w *world) call() string {
	if len(w.state.Calls) == 0 || oneIn(w.t, 20, "no call") {
		return "nobody"
	}
	calls := w.state.Calls
	if i := slices.IndexFunc(calls, func(c Call) bool { return c.Replaying }); i >= 0 && oneIn(w.t, 2, "replayed") {
		return calls[i].ID
	}
	if i := slices.IndexFunc(calls, func(c Call) bool { return unsettled(c.Status) }); i >= 0 && oneIn(w.t, 2, "unsettled") {
		return calls[i].ID
	}
	return among(w.t, calls, "call").ID
}

func (w *world) generation(call string) string {
	c := w.state.call(call)
	if len(w.gens) > 0 && (c == nil || c.Generation == "" || oneIn(w.t, 10, "old generation")) {
		return among(w.t, w.gens, "generation")
	}
	if c == nil || c.Generation == "" {
		return testGeneration
	}
	return c.Generation
}

func (w *world) round() *uint32 {
	n := uint32(0)
	if run := w.state.Run; run != nil && run.Rounds > 0 {
		n = run.Rounds - 1
	}
	if oneIn(w.t, 20, "other round") {
		n++
	}
	return &n
}

// pick draws a number below n, at most 128, all about as likely: what rapid
// draws as a number leans to small ones, which in a choice between commands
// would favour the first.
func pick(t *rapid.T, n int, label string) int { return numbers.Draw(t, label) * n >> 7 }

var numbers = rapid.Custom(func(t *rapid.T) int {
	x := 0
	for range 7 {
		x <<= 1
		if rapid.Bool().Draw(t, "bit") {
			x++
		}
	}
	return x
})

func oneIn(t *rapid.T, n int, label string) bool { return pick(t, n, label) == n-1 }

func among[T any](t *rapid.T, from []T, label string) T { return from[pick(t, len(from), label)] }

func ptr[T any](v T) *T { return &v }

// answer draws a model's answer.
func (w *world) answer() *AnswerSpec {
	a := &AnswerSpec{Content: "x"}
	for range among(w.t, []int{0, 0, 1, 2, 3}, "calls") {
		a.ToolCalls = append(a.ToolCalls, CallSpec{
			ID:   among(w.t, []string{"a", "b", "c", ""}, "id"),
			Name: among(w.t, []string{"Write", "Read"}, "name"), Arguments: "{}",
		})
	}
	return a
}

// draw is a random command, valid more often than not.
func (w *world) draw() Command {
	t := w.t
	switch among(t, actions, "action") {
	case "request":
		return w.drawRequest()
	case "resume":
		return RunResume{}
	case "cancel":
		return RunCancel{}
	case "message":
		return MessageSubmit{Content: "m"}
	case "stop":
		return LoopStop{Generation: w.loopGeneration(true)}
	case "continue":
		return LoopContinue{Generation: w.loopGeneration(false), AcknowledgeUnknown: true}
	case "abandon":
		return LoopAbandon{Generation: w.loopGeneration(false), AcknowledgeUnknown: true}
	case "claim":
		return RunClaim{RunID: w.ref().RunID, Runner: "r"}
	case "round":
		return RoundStart{w.ref()}
	case "answer":
		return RoundFinish{RunRef: w.ref(), Round: w.round(), Message: w.answer(), Usage: &events.Usage{Total: 10}, AdmitNext: oneIn(t, 2, "next")}
	case "round fails":
		return RoundFail{RunRef: w.ref(), Round: w.round(), Error: &events.Failure{Code: "x"}}
	case "start":
		return ToolStart{RunRef: w.ref(), ToolCallID: w.call()}
	case "done":
		return ToolFinish{RunRef: w.ref(), ToolCallID: w.call(), Success: ptr(oneIn(t, 2, "success")), Content: ptr("c")}
	case "park":
		return w.drawPark()
	case "replay":
		return ReplayStart{w.ref()}
	case "exhaust":
		return BudgetExhaust{w.ref(), among(t, []string{budgetTokens, budgetRounds}, "kind")}
	case "refuse":
		return RunRefuse{w.ref(), "x", "y"}
	case "finish":
		return RunFinish{
			RunRef: w.ref(), Outcome: among(t, []string{outcomeOK, outcomeError, outcomeCancelled}, "outcome"),
			CompletionReason: among(t, []string{"", "", "max_rounds_reached", "whatever"}, "reason"),
		}
	case "decide":
		id := w.call()
		return ApprovalDecide{ToolCallID: id, Generation: w.generation(id), Decision: among(t, []string{allowOnce, allowOnce, denyOnce, allowSession}, "decision")}
	case "answer question":
		return QuestionAnswer{ToolCallID: among(t, []string{"", w.call()}, "which"), Answer: ptr(among(t, []string{"A", "Z"}, "words"))}
	case "resolve":
		id := w.call()
		return ToolResolve{ToolCallID: id, Generation: w.generation(id), Success: ptr(true), Content: ptr("r")}
	case "plan":
		if w.state.Session.Plan == nil {
			return SessionEnterPlan{}
		}
		return SessionExitPlan{}
	case "gold":
		return SessionConfigure{Gold: jsontext.Value(among(t, []string{`{"enabled":true}`, `null`, `null`}, "gold"))}
	case "close":
		return SessionClose{}
	}
	return RunRenew{w.ref()}
}

// actions, the usual ones more often.
var actions = slices.Concat(
	slices.Repeat([]string{"request", "claim", "round", "answer", "start", "done", "park", "decide", "replay"}, 4),
	slices.Repeat([]string{"answer", "round", "claim", "resume", "finish", "answer question", "resolve", "continue"}, 2),
	[]string{"cancel", "message", "stop", "abandon", "round fails", "exhaust", "exhaust", "refuse", "plan", "gold", "renew"},
)

func (w *world) loopGeneration(optional bool) string {
	switch {
	case optional && oneIn(w.t, 2, "no generation"):
		return ""
	case w.state.Loop == nil || oneIn(w.t, 10, "other generation"):
		return testGeneration
	}
	return w.state.Loop.Generation
}

func (w *world) drawRequest() RunRequest {
	c := RunRequest{}
	if !oneIn(w.t, 4, "prompt") {
		c.Prompt = ptr("P")
	}
	if oneIn(w.t, 2, "loop") {
		c.Loop = &LoopSpec{
			MaxIterations: rapid.Uint32Range(0, 3).Draw(w.t, "iterations"), MaxTotalRounds: rapid.Uint32Range(1, 6).Draw(w.t, "rounds"),
			OnPark: among(w.t, []string{"", onParkEnd, onParkPause, onParkPause}, "on park"),
		}
	}
	if oneIn(w.t, 2, "budget") {
		c.Budget = &BudgetSpec{MaxRounds: ptr(rapid.Uint32Range(1, 4).Draw(w.t, "max rounds")), MaxTotalTokens: ptr(rapid.Uint64Range(5, 60).Draw(w.t, "max tokens"))}
	}
	return c
}

func (w *world) drawPark() ToolPark { return w.parkOf(w.ref(), w.call()) }

func (w *world) parkOf(ref RunRef, call string) ToolPark {
	p := ToolPark{RunRef: ref, ToolCallID: call, Question: "?"}
	if !oneIn(w.t, 3, "typed") {
		name := "Write"
		if c := w.state.call(p.ToolCallID); c != nil {
			name = c.Name
		}
		p.Request = &RequestSpec{ToolName: name, PermissionType: "x", Resource: "y"}
		return p
	}
	p.Options = []string{"A", "B"}
	p.AllowCustom = ptr(false)
	return p
}

// watcher knows what was said of each run, call and loop so far, and fails the
// test over what must never be said after it.
type watcher struct {
	ended     map[string]string // run -> how it ended
	started   map[string]bool
	toolStart map[string]int // by occurrence
	replays   map[string]int
	allowed   map[string]int
	results   map[string]bool
	loop      events.Loop
	caps      map[string]uint32 // by loop generation
	cancelled map[string]bool   // runs
	stopped   map[string]bool   // loop generations
}

func newWatcher() watcher {
	return watcher{
		ended: map[string]string{}, started: map[string]bool{}, toolStart: map[string]int{}, replays: map[string]int{},
		allowed: map[string]int{}, results: map[string]bool{}, caps: map[string]uint32{},
		cancelled: map[string]bool{}, stopped: map[string]bool{},
	}
}

func (w *watcher) event(t *rapid.T, e *events.Event, after *State) {
	switch d := e.Data.(type) {
	case events.RunStarted:
		if w.started[d.RunID] || w.ended[d.RunID] != "" {
			t.Fatalf("run %s started again, ended: %q", d.RunID, w.ended[d.RunID])
		}
		w.started[d.RunID] = true
		if d.Loop != nil {
			w.caps[d.Loop.Generation] = d.Loop.MaxTotalRounds
		}
	case events.RunFinished:
		if was := w.ended[d.RunID]; was != "" && (was != "suspended" || d.Outcome != outcomeRunCancelled) {
			t.Fatalf("run.finished of a run that ended as %s", was)
		}
		w.ended[d.RunID] = "finished"
	case events.RunRefused:
		w.end(t, d.RunID, "refused")
	case events.RunInterrupted:
		w.end(t, d.RunID, "interrupted")
	case events.RoundStarted:
		w.running(t, d.RunID)
	case events.RoundFinished:
		w.running(t, d.RunID)
	case events.ToolStarted:
		if w.toolStart[d.MessageID]++; w.toolStart[d.MessageID] > 1 {
			t.Fatalf("call %s started twice", d.MessageID)
		}
		w.open(t, d.MessageID)
	case events.ReplayStarted:
		if w.replays[d.MessageID]++; w.replays[d.MessageID] > w.allowed[d.MessageID] {
			t.Fatalf("call %s replayed %d times with %d approvals", d.MessageID, w.replays[d.MessageID], w.allowed[d.MessageID])
		}
		w.open(t, d.MessageID)
	case events.ApprovalDecided:
		if isAllow(d.Decision) {
			w.allowed[d.MessageID]++
		}
	}
	w.braked(t, e, after)
	tr := Transcript{}
	tr.Evolve(e)
	for _, m := range tr.Messages {
		if m.Role == roleTool {
			w.open(t, m.MessageID)
			w.results[m.MessageID] = true
		}
	}
	if after.Run != nil && after.Run.Status == runSuspended {
		if after.Run.CancelRequested {
			t.Fatalf("%s suspends a run that was asked to cancel", e.Type)
		}
		w.ended[after.Run.ID] = "suspended"
	}
	w.loops(t, e, after)
}

// braked: after a cancel nothing of the run starts; after a stop no round and no
// replay of the loop; a round only once every call has its outcome.
func (w *watcher) braked(t *rapid.T, e *events.Event, after *State) {
	round, replay, call := false, false, false
	switch d := e.Data.(type) {
	case events.RunCancelRequested:
		w.cancelled[d.RunID] = true
	case events.LoopStopRequested:
		if d.Loop != nil {
			w.stopped[d.Loop.Generation] = true
		}
	case events.RoundStarted:
		round = true
	case events.RoundFinished:
		round = d.Next != nil && d.Next.Admitted
	case events.ReplayStarted:
		replay = true
	case events.ToolStarted:
		call = true
	}
	if !round && !replay && !call {
		return
	}
	if w.cancelled[e.Run] {
		t.Fatalf("%s after the run was cancelled", e.Type)
	}
	if l := after.loopOf(after.Run); l != nil && w.stopped[l.Generation] && (round || replay) {
		t.Fatalf("%s after the loop was stopped", e.Type)
	}
	if n := after.count(unsettled); round && n > 0 {
		t.Fatalf("%s while %d calls have no outcome", e.Type, n)
	}
}

func (w *watcher) end(t *rapid.T, run, how string) {
	if was := w.ended[run]; was != "" {
		t.Fatalf("run %s is %s after it was %s", run, how, was)
	}
	w.ended[run] = how
}

func (w *watcher) running(t *rapid.T, run string) {
	if !w.started[run] || w.ended[run] != "" {
		t.Fatalf("run %s works: started %t, ended %q", run, w.started[run], w.ended[run])
	}
}

func (w *watcher) open(t *rapid.T, occurrence string) {
	if w.results[occurrence] {
		t.Fatalf("call %s has its result already", occurrence)
	}
}

// loops: the revision moves on by one for every event that changes the loop, by
// two where the next round is admitted in the same event; rounds keep the cap.
func (w *watcher) loops(t *rapid.T, e *events.Event, after *State) {
	l := after.Loop
	if l == nil {
		return
	}
	now := *l.wire()
	if now == w.loop {
		return
	}
	steps := now.Revision - w.loop.Revision
	finished, isAnswer := e.Data.(events.RoundFinished)
	switch {
	case now.Generation != w.loop.Generation:
		if _, isStart := e.Data.(events.RunStarted); !isStart || now.Revision != 2 || now.RoundsStarted != 0 {
			t.Fatalf("%s began a loop as %+v", e.Type, now)
		}
	case steps == 2 && isAnswer && finished.Next != nil:
	case steps != 1:
		t.Fatalf("%s moved the loop from %+v to %+v", e.Type, w.loop, now)
	}
	if limit := w.caps[now.Generation]; now.RoundsStarted > limit {
		t.Fatalf("%d rounds, the cap is %d", now.RoundsStarted, limit)
	}
	w.loop = now
}
