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
