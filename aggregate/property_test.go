package aggregate

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/aggregate/policy"
	"culm/events"
)

// TestProperty_AnyCommands: after any commands, valid or not, of runners with
// old fences or new ones, with crashes in between, every invariant holds, Decide
// is pure, two readers agree, and what Next asks for is accepted.
func TestProperty_AnyCommands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		split := -1
		var early *State
		for i := range rapid.IntRange(1, 60).Draw(t, "commands") {
			switch n := pick(t, 30, "what"); {
			case n == 0:
				w.lapse()
			case n == 1 && i > 40:
				_, _ = w.give(SessionClose{})
			default:
				w.move()
			}
			w.nextAgrees()
			if early == nil && oneIn(t, 10, "keep") {
				early, split = w.read.Clone(), len(w.log)
			}
		}
		w.foldsAgree(early, split)
		w.nextEnds()
	})
}

// move pays what is owed, in one of the ways it can be paid, or gives any
// command, half and half.
func (w *world) move() { _, _ = w.give(w.drawMove()) }

func (w *world) drawMove() Command {
	if oneIn(w.t, 2, "any") {
		return w.draw()
	}
	st := Next(w.state, w.config)
	c := payment(w.state, st, w.answer())
	switch {
	case c == nil:
		c = w.personMoves(oneIn(w.t, 2, "allow"))
	case st.Kind == StepTools && oneIn(w.t, 3, "gate"):
		id := append(st.Calls, st.Running...)[0].ID
		return w.parkOf(RunRef{RunID: st.RunID, Fence: st.Fence}, id)
	case st.Kind == StepModel && oneIn(w.t, 10, "model fails"):
		return RoundFail{RunRef: RunRef{RunID: st.RunID, Fence: st.Fence}, Round: &st.Round, Error: &events.Failure{Code: "x"}}
	}
	if c == nil {
		return w.draw()
	}
	return c
}

// foldsAgree: the fold of the whole, of a split, and what was evolved command by
// command are the same state.
func (w *world) foldsAgree(early *State, split int) {
	t := w.t
	whole, err := Fold(sequence(w.log))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, w.read, stateOptions...); diff != "" {
		t.Fatalf("fold of the whole and of its parts (-whole +parts):\n%s", diff)
	}
	if a, b := viewJSON(t, whole), viewJSON(t, w.state); a != b {
		t.Fatalf("two folds:\n%s\n%s", a, b)
	}
	if early != nil {
		then, err := Fold(sequence(w.log[:split]))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(then, early, stateOptions...); diff != "" {
			t.Fatalf("a clone changed with the state it was cloned from:\n%s", diff)
		}
		if err := early.FoldOn(sequence(w.log[split:])); err != nil {
			t.Fatal(err)
		}
		if a, b := viewJSON(t, whole), viewJSON(t, early); a != b {
			t.Fatalf("fold of a split:\n%s\n%s", a, b)
		}
	}
	if report, err := Audit(sequence(w.log), AuditOptions{Session: "s", Head: whole.Head}); err != nil || !report.OK() {
		t.Fatalf("audit: %+v %v", report.Findings, err)
	}
	for i := range w.events {
		if e := &w.events[i]; e.Command != "" {
			if seq, _, ok := whole.Receipt(e.Command); !ok || seq != e.Seq {
				t.Fatalf("the receipt of %s says %d, want %d", e.Command, seq, e.Seq)
			}
		}
	}
}

func sequence(records []events.Record) func(func(events.Record, error) bool) {
	return func(yield func(events.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// payment is the command that pays a step; nil if nothing is owed.
func payment(s *State, st Step, answer *AnswerSpec) Command {
	ref := RunRef{RunID: st.RunID, Fence: st.Fence}
	switch st.Kind {
	case StepClaim:
		return RunClaim{RunID: st.RunID, Runner: "r"}
	case StepReplay:
		return ReplayStart{ref}
	case StepTools:
		if len(st.Calls) == 0 {
			return ToolFinish{RunRef: ref, ToolCallID: st.Running[0].ID, Success: ptr(true), Content: ptr("done")}
		}
		start := ToolStart{RunRef: ref, ToolCallID: st.Calls[0].ID}
		if _, r := Decide(s, start, testEnv("try")); r != nil && (r.Code == CodePlanMode || r.Code == CodeNotAuthorized) {
			return ToolFinish{RunRef: ref, ToolCallID: st.Calls[0].ID, Success: ptr(false), Content: ptr(r.Message)}
		}
		return start
	case StepAdmit:
		return RoundStart{ref}
	case StepModel:
		return RoundFinish{RunRef: ref, Round: &st.Round, Message: answer}
	case StepFinish:
		return RunFinish{RunRef: ref, Outcome: st.Outcome}
	}
	return nil
}

// nextAgrees: what Next asks for is never refused.
func (w *world) nextAgrees() {
	st := Next(w.state, w.config)
	c := payment(w.state, st, &AnswerSpec{Content: "x"})
	if c == nil {
		return
	}
	env := testEnv("pay")
	env.Config = w.config
	// Plan mode of the configuration is not seen by payment's try.
	if tool, ok := c.(ToolStart); ok && w.state.readOnly(env) && !policy.PlanAllowed(w.state.call(tool.ToolCallID).Name) {
		return
	}
	if d, r := Decide(w.state, c, env); r != nil {
		w.t.Fatalf("Next asks for %+v, and %T is refused: %v", st, c, r)
	} else if d.Refusal != nil {
		w.t.Fatalf("Next asks for %+v, and %T is refused with an event: %v", st, c, d.Refusal)
	}
}

// nextEnds: paying what is owed comes to an end, whatever the model does: when
// it calls tools as long as it may, and when persons deny or allow everything.
func (w *world) nextEnds() {
	w.config.Mode = ""
	talkative := oneIn(w.t, 2, "talkative")
	allow := oneIn(w.t, 2, "allow")
	for n := range 400 {
		st := Next(w.state, w.config)
		answer := &AnswerSpec{Content: "x"}
		// A plain run without a bound on its rounds goes on as long as the model calls tools.
		if talkative && (st.InLoop || w.state.Spent.Budget.MaxRounds > 0) && !st.Summary {
			answer.ToolCalls = []CallSpec{{ID: "a", Name: "Read", Arguments: "{}"}}
		}
		c := payment(w.state, st, answer)
		if c == nil {
			if c = w.personMoves(allow); c == nil {
				return
			}
		}
		if _, r := w.give(c); r != nil {
			w.t.Fatalf("step %d: Next asks for %+v, and %T is refused: %v", n, st, c, r)
		}
	}
	w.t.Fatalf("paying what is owed does not end: %+v", Next(w.state, w.config))
}

// personMoves decides one waiting call, or nothing.
func (w *world) personMoves(allow bool) Command {
	if w.state.Session.Closed {
		return nil
	}
	i := slices.IndexFunc(w.state.Calls, func(c Call) bool { return c.Status.Waiting() })
	if i < 0 {
		return nil
	}
	c := &w.state.Calls[i]
	switch {
	case c.Generation == "":
		return QuestionAnswer{ToolCallID: c.ID, Answer: ptr("A")}
	case allow:
		return ApprovalDecide{ToolCallID: c.ID, Generation: c.Generation, Decision: allowOnce}
	}
	return ApprovalDecide{ToolCallID: c.ID, Generation: c.Generation, Decision: denyOnce}
}

// TestProperty_ReachesAll keeps the drawing honest: within a few hundred
// sessions every event type of the slice and every loop status comes up.
func TestProperty_ReachesAll(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, want := range []string{
		"run.requested", "run.started", "run.refused", "run.cancel_requested", "run.budget_exhausted", "run.interrupted", "run.finished",
		"round.started", "round.finished", "round.failed", "loop.stop_requested", "loop.stopped", "loop.budget_exhausted",
		"loop.recovery_refused", "loop.abandoned", "tool.started", "tool.finished", "tool.parked", "tool.resolved",
		"approval.decided", "question.answered", "replay.started", "replay.finished", "replay.blocked", "replay.reparked",
	} {
		missing[want] = true
	}
	for _, status := range allStatuses {
		missing["loop "+string(status)] = true
	}
	sessions := rapid.Custom(func(t *rapid.T) *world {
		w := newWorld(t)
		for range 80 {
			if oneIn(t, 40, "crash") {
				w.lapse()
			}
			w.move()
			if l := w.state.Loop; l != nil {
				delete(missing, "loop "+string(l.Status))
			}
		}
		return w
	})
	for seed := 0; seed < 600 && len(missing) > 0; seed++ {
		for _, e := range sessions.Example(seed).events {
			delete(missing, e.Type)
		}
	}
	if len(missing) > 0 {
		t.Errorf("never came up: %v", slices.Sorted(maps.Keys(missing)))
	}
}
