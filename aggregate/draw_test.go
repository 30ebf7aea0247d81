package aggregate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"culm/events"
)

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
