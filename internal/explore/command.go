package explore

import (
	"fmt"

	"culm/aggregate"
)

// kind is the kind of a command, as far as this world tells them apart.
type kind uint8

const (
	none kind = iota
	claim
	authorize
	start
	finish // tool.finish
	gate   // tool.park with a typed request
	replay
	admit
	answer    // round.finish
	end       // run.finish, with an outcome
	refuseRun // run.refuse
	approve
	deny
	resolve
	cancel
	stop
	closing
	resume
	request // run.request with a prompt
	planOn
	planOff
	auto // session.set_mode
	ask
	abandon
	proceed // loop.continue
	lapse   // the lease ran out: no command, a fact
	look    // the engine looks after its sessions: an expiry, if there is one
)

var kindNames = [...]string{
	"", "run.claim", "tool.authorize", "tool.start", "tool.finish", "tool.park", "replay.start", "round.start", "round.finish",
	"run.finish", "run.refuse", "approval.decide allow", "approval.decide deny", "tool.resolve", "run.cancel", "loop.stop", "session.close",
	"run.resume", "run.request", "session.enter_plan", "session.exit_plan", "session.set_mode auto", "session.set_mode default", "loop.abandon", "loop.continue", "lease runs out", "sweep",
}

// cmd is a command. Run is the ordinal of the run and of its fence, Gen of the
// generation, both from 1; Call is 0 for the gated call and 1 for the free one.
type cmd struct {
	Kind kind
	Run  uint8
	Call uint8
	Gen  uint8
	O    uint8 // outcome of run.finish
}

// fenced says that the command carries a run with its fence.
func (c cmd) fenced() bool { return c.Kind > claim && c.Kind <= refuseRun }

// Outcomes of run.finish.
var outcomes = [...]string{"ok", "error", "cancelled"}

func (c cmd) String() string {
	s := kindNames[c.Kind]
	if c.Run > 0 {
		s += fmt.Sprintf(" run %d", c.Run)
	}
	switch c.Kind {
	case authorize, start, finish, gate:
		s += " " + callName(c.Call)
	case approve, deny, resolve:
		s += fmt.Sprintf(" %s generation %d", callName(c.Call), c.Gen)
	case end:
		s += " " + outcomes[c.O]
	}
	return s
}

// The two calls of the one answer that asks for any.
var calls = [2]struct{ id, path, args string }{
	{"gated", "/w/gated", `{"path":"/w/gated","text":"1.0"}`},
	{"free", "/w/free", `{"path":"/w/free","text":"é"}`},
}

func callName(c uint8) string { return calls[c].id }

const toolName = "Write"

// command spells c for Decide; nil for what is none.
func (e *engine) command(n *node, c cmd) aggregate.Command {
	ref := aggregate.RunRef{}
	if c.Run > 0 {
		ref = aggregate.RunRef{RunID: e.runs.of(c.Run), Fence: uint64(c.Run)}
	}
	id, generation := calls[c.Call].id, e.gens.of(c.Gen)
	switch c.Kind {
	case claim:
		return aggregate.RunClaim{RunID: ref.RunID, Runner: "r"}
	case authorize:
		return aggregate.ToolAuthorize{RunRef: ref, ToolCallID: id, PermissionType: "write_file", Resource: calls[c.Call].path}
	case start:
		return aggregate.ToolStart{RunRef: ref, ToolCallID: id}
	case finish:
		return aggregate.ToolFinish{RunRef: ref, ToolCallID: id, Success: ptr(true), Content: ptr("done")}
	case gate:
		return aggregate.ToolPark{RunRef: ref, ToolCallID: id, Question: "?", Request: &aggregate.RequestSpec{
			ToolName: toolName, PermissionType: "write_file", Resource: calls[c.Call].path + "2",
		}}
	case replay:
		return aggregate.ReplayStart{RunRef: ref}
	case admit:
		return aggregate.RoundStart{RunRef: ref}
	case answer:
		return e.answer(n, ref)
	case end:
		return aggregate.RunFinish{RunRef: ref, Outcome: outcomes[c.O]}
	case refuseRun:
		return aggregate.RunRefuse{RunRef: ref, Code: "x", Message: "x"}
	case approve:
		return aggregate.ApprovalDecide{ToolCallID: id, Generation: generation, Decision: "allow_once"}
	case deny:
		return aggregate.ApprovalDecide{ToolCallID: id, Generation: generation, Decision: "deny_once"}
	case resolve:
		return aggregate.ToolResolve{ToolCallID: id, Generation: generation, Success: ptr(true), Content: ptr("seen")}
	}
	return clientCommand(n, c)
}

// clientCommand are the commands that name no call and no fence.
func clientCommand(n *node, c cmd) aggregate.Command {
	generation := ""
	if n.s.Loop != nil {
		generation = n.s.Loop.Generation
	}
	switch c.Kind {
	case cancel:
		return aggregate.RunCancel{}
	case stop:
		return aggregate.LoopStop{}
	case closing:
		return aggregate.SessionClose{}
	case resume:
		return aggregate.RunResume{}
	case request:
		return aggregate.RunRequest{Prompt: ptr("again")}
	case planOn:
		return aggregate.SessionEnterPlan{}
	case planOff:
		return aggregate.SessionExitPlan{}
	case auto:
		return aggregate.SessionSetMode{Mode: "auto"}
	case ask:
		return aggregate.SessionSetMode{Mode: "default"}
	case abandon:
		return aggregate.LoopAbandon{Generation: generation, AcknowledgeUnknown: true}
	case proceed:
		return aggregate.LoopContinue{Generation: generation, AcknowledgeUnknown: true}
	}
	return nil
}

// answer is what the model says: first the two calls, then text.
func (e *engine) answer(n *node, ref aggregate.RunRef) aggregate.Command {
	c := aggregate.RoundFinish{RunRef: ref, Round: ptr(uint32(0)), Message: &aggregate.AnswerSpec{Content: "text"}}
	if run := n.s.Run; run != nil && run.Rounds > 0 {
		*c.Round = run.Rounds - 1
	}
	if n.s.Answers == 0 {
		c.Message.Content = ""
		for _, call := range calls {
			c.Message.ToolCalls = append(c.Message.ToolCalls, aggregate.CallSpec{ID: call.id, Name: toolName, Arguments: call.args})
		}
	} else {
		c.AdmitNext = n.s.Loop != nil && !n.s.Loop.StopRequested
	}
	return c
}

func ptr[T any](v T) *T { return &v }

// names numbers ids from 1 in the order of their appearance.
type names struct {
	ids   []string
	known map[string]uint8
}

func (n *names) number(id string) uint8 {
	if id == "" {
		return 0
	}
	if k, ok := n.known[id]; ok {
		return k
	}
	if n.known == nil {
		n.known = map[string]uint8{}
	}
	n.ids = append(n.ids, id)
	n.known[id] = uint8(len(n.ids)) //nolint:gosec // checked by the ledger's bounds
	return n.known[id]
}

// of is the id with the number, a made up one for 0.
func (n *names) of(k uint8) string {
	if k == 0 {
		return "00000000-0000-4000-8000-000000000000"
	}
	return n.ids[k-1]
}

// callOf is the number of a call, by its id.
func callOf(id string) uint8 {
	if id == calls[1].id {
		return 1
	}
	return 0
}
