package runner_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/runner"
)

// fake is one session of an engine, in memory: enough of the rules to pay a
// run, and a log of what was accepted and what was refused.
type fake struct {
	mu    sync.Mutex
	wakes []chan string
	log   []string
	// hook, if set, answers a command instead of the rules; it runs unlocked.
	hook  func(ctx context.Context, name string, b body) (reply *aggregate.Reply, err error)
	nexts int
	// stored are the replies to commands that were accepted with an event, by id.
	stored map[string]aggregate.Reply

	seq        uint64
	run        string // "" when there is none
	runner     string
	fence      uint64
	cancel     bool
	iterations uint32 // asked for; 0 for a plain run
	iteration  uint32
	round      uint32 // of the open or next round
	open, done bool
	answers    uint64
	calls      []fakeCall
	planMode   bool
	enforce    map[string]string // call name -> decision of tool.authorize
	badDigest  bool
}

type fakeCall struct {
	aggregate.StepCall
	status  string // open, started, parked, decided, settled
	replay  bool
	allowed string // what tool.authorize allowed: permission type and resource
}

// body is the union of what commands carry.
type body struct {
	RunID      string          `json:"run_id"`
	Fence      uint64          `json:"fence"`
	Runner     string          `json:"runner"`
	Providers  []string        `json:"providers"`
	Outcome    string          `json:"outcome"`
	Error      jsontext.Value  `json:"error"`
	Round      uint32          `json:"round"`
	Message    bodyMessage     `json:"message"`
	Usage      *map[string]int `json:"usage"`
	Finish     string          `json:"finish_reason"`
	Attempts   int             `json:"attempts"`
	AdmitNext  bool            `json:"admit_next"`
	ToolCallID string          `json:"tool_call_id"`
	Mutating   bool            `json:"mutating"`
	Permission string          `json:"permission_type"`
	Resource   string          `json:"resource"`
	Summary    string          `json:"summary"`
	Risk       string          `json:"risk"`
	Success    bool            `json:"success"`
	Content    string          `json:"content"`
	ElapsedMS  int64           `json:"elapsed_ms"`
	Question   string          `json:"question"`
	Options    []string        `json:"options"`
	Custom     bool            `json:"allow_custom"`
	Request    jsontext.Value  `json:"request"`

	command string // its id
}

type bodyMessage struct {
	Content   string `json:"content"`
	ToolCalls []struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"tool_calls"`
}

func (b body) code() string {
	var f struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(b.Error, &f) != nil {
		return strings.Trim(string(b.Error), `"`)
	}
	return f.Code
}

func (f *fake) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	if session != "S" {
		return no("session_not_found"), nil
	}
	raw, err := json.Marshal(c.Data)
	if err != nil {
		return aggregate.Reply{}, err
	}
	var b body
	if err := json.Unmarshal(raw, &b, json.RejectUnknownMembers(true)); err != nil {
		return no("invalid_command"), nil
	}
	b.command = c.ID
	if f.hook != nil {
		if reply, err := f.hook(ctx, c.Name, b); reply != nil || err != nil {
			return deref(reply), err
		}
	}
	return f.do(c.Name, b), nil
}

func deref(r *aggregate.Reply) aggregate.Reply {
	if r == nil {
		return aggregate.Reply{}
	}
	return *r
}

func no(code string) aggregate.Reply {
	return aggregate.Reply{Error: &aggregate.Error{Code: code, Message: "refused by the fake"}}
}

func (f *fake) do(name string, b body) aggregate.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.stored[b.command]; ok {
		f.log = append(f.log, name+" again")
		return first
	}
	result, line, code := f.judge(name, b)
	switch {
	case code != "":
		f.log = append(f.log, name+" refused "+code)
		return no(code)
	case line == "": // no event
		return aggregate.Reply{OK: true, Sequence: f.seq, Result: object(result)}
	}
	f.seq++
	f.log = append(f.log, strings.TrimSpace(name+" "+line))
	f.wake()
	reply := aggregate.Reply{OK: true, Sequence: f.seq, Event: &aggregate.EventRef{Sequence: f.seq, Type: name}, Result: object(result)}
	if f.stored == nil {
		f.stored = map[string]aggregate.Reply{}
	}
	f.stored[b.command] = reply
	return reply
}

func object(v any) jsontext.Value {
	if v == nil {
		return jsontext.Value("{}")
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (f *fake) wake() {
	for _, w := range f.wakes {
		select {
		case w <- "S":
		default:
		}
	}
}

type m map[string]any

// judge returns the result and the log line of an accepted command, an empty
// line for one without an event, or the code of a refusal.
func (f *fake) judge(name string, b body) (result any, line, code string) {
	if name == "run.claim" {
		return f.claim(b)
	}
	if f.run == "" || b.RunID != f.run || b.Fence != f.fence || f.fence == 0 {
		return nil, "", "stale_run"
	}
	switch name {
	case "run.renew":
		return m{"lease_ms": 15000, "cancel_requested": f.cancel}, "", ""
	case "round.start":
		if f.open {
			return nil, "", "round_open"
		}
		if f.cancel {
			return m{"admitted": false, "reason": "cancel_requested"}, "", ""
		}
		f.admit()
		return m{"admitted": true}, fmt.Sprint(f.round), ""
	case "round.finish":
		return f.finishRound(b)
	case "round.fail":
		if !f.open || b.Round != f.round {
			return nil, "", "round_not_open"
		}
		f.open = false
		return nil, b.code(), ""
	case "run.finish":
		f.run, f.fence = "", 0
		return nil, strings.TrimSpace(b.Outcome + " " + b.code()), ""
	case "replay.start":
		return f.replay()
	}
	return f.callCommand(name, b)
}

func (f *fake) claim(b body) (any, string, string) {
	switch {
	case f.run == "" || b.RunID != f.run:
		return nil, "", "no_such_run"
	case f.fence != 0:
		return nil, "", "already_claimed"
	}
	f.runner, f.fence = b.Runner, f.seq+1
	return m{"fence": f.fence, "lease_ms": 15000, "cause": "user", "roster": m{"primary": m{"provider": "p", "model": "x"}}}, b.Runner, ""
}

// admit opens the next round, and in a loop the next iteration.
func (f *fake) admit() {
	f.open, f.done = true, false
	if f.iterations > 0 && (f.answers == 0 || len(f.calls) == 0) {
		f.iteration++
	}
}

func (f *fake) finishRound(b body) (any, string, string) {
	if !f.open || b.Round != f.round {
		return nil, "", "round_not_open"
	}
	f.open, f.calls = false, nil
	for i, c := range b.Message.ToolCalls {
		id := c.ID
		if id == "" || slices.ContainsFunc(f.calls, func(o fakeCall) bool { return o.ID == id }) {
			id = fmt.Sprintf("minted%d", i)
		}
		f.calls = append(f.calls, fakeCall{status: "open", StepCall: aggregate.StepCall{
			ID: id, ModelID: c.ID, Name: c.Name, Arguments: c.Arguments, Answer: f.answers, Index: i,
		}})
	}
	f.answers++
	f.round++
	line := fmt.Sprintf("%d %q", b.Round, b.Message.Content)
	if b.Attempts > 1 {
		line += fmt.Sprintf(" after %d attempts", b.Attempts)
	}
	switch {
	case len(f.calls) > 0:
		return m{"decision": "tools"}, line + " tools", ""
	case f.iteration >= f.iterations:
		f.done = true
		return m{"decision": "finalize"}, line + " finalize", ""
	case b.AdmitNext && !f.cancel:
		f.admit()
		return m{"decision": "continue", "next": m{"admitted": true}}, line + " continue, admitted", ""
	}
	return m{"decision": "continue"}, line + " continue", ""
}

func (f *fake) callCommand(name string, b body) (any, string, string) {
	var c *fakeCall
	for i := range f.calls {
		if f.calls[i].ID == b.ToolCallID {
			c = &f.calls[i]
		}
	}
	if c == nil {
		return nil, "", "no_such_call"
	}
	switch name {
	case "tool.start":
		switch {
		case f.cancel:
			return nil, "", "cancel_requested"
		case c.status != "open":
			return nil, "", "call_not_open"
		case f.planMode && b.Mutating:
			return nil, "", "plan_mode"
		case c.allowed == "":
			return nil, "", "not_authorized"
		}
		c.status = "started"
		return nil, c.ID, ""
	case "tool.authorize":
		return f.authorize(c, b)
	case "tool.finish":
		if c.status != "started" && (c.status != "open" || b.Success) {
			return nil, "", "call_not_open"
		}
		c.status = "settled"
		return nil, strings.TrimSpace(fmt.Sprintf("%s %v %q %s", c.ID, b.Success, b.Content, b.code())), ""
	case "tool.park":
		if c.status != "open" && !c.replay {
			return nil, "", "call_not_open"
		}
		c.status, c.replay = "parked", false
		return nil, fmt.Sprintf("%s %q %v", c.ID, b.Question, b.Request != nil), ""
	}
	return nil, "", "unknown_command"
}

// authorize judges by the name of the tool. A call that nothing was set up for
// is allowed without a line in the log, for tests that are about other things.
func (f *fake) authorize(c *fakeCall, b body) (any, string, string) {
	switch {
	case f.cancel:
		return nil, "", "cancel_requested"
	case c.status != "open":
		return nil, "", "call_not_open"
	}
	decision, set := f.enforce[c.Name]
	if f.planMode && b.Risk != "low" {
		decision, set = "deny", true
	}
	switch decision {
	case "deny":
		c.status = "settled"
	case "ask":
		c.status = "parked"
	default:
		decision = "allow"
		c.allowed = b.Permission + " " + b.Resource
	}
	if !set {
		return m{"decision": decision}, "", ""
	}
	return m{"decision": decision}, c.ID + " " + decision, ""
}

func (f *fake) replay() (any, string, string) {
	for i := range f.calls {
		if c := &f.calls[i]; c.status == "decided" {
			c.status, c.replay = "started", true
			sum := sha256.Sum256([]byte(c.Arguments))
			digest := hex.EncodeToString(sum[:])
			if f.badDigest {
				digest = strings.Repeat("0", 64)
			}
			return m{"replay": m{
				"tool_call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "arguments_digest": digest,
				"generation": "g", "occurrence": "o", "flags": m{"bypass": false},
			}, "pending": 0}, c.ID, ""
		}
	}
	return m{"replay": nil, "pending": 0}, "", ""
}

func (f *fake) Next(_ context.Context, session string) (aggregate.Step, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nexts++
	step := aggregate.Step{
		Kind: aggregate.StepNothing, Session: session, RunID: f.run, Fence: f.fence, Runner: f.runner, Round: f.round,
		Iteration: f.iteration, InLoop: f.iterations > 0, Answers: f.answers, Cancelled: f.cancel,
	}
	if session != "S" || f.run == "" {
		return step, nil
	}
	step.Kind = f.kind(&step)
	if step.Kind == aggregate.StepTools || step.Kind == aggregate.StepReplay {
		step.Round = max(f.round, 1) - 1
	}
	return step, nil
}

func (f *fake) kind(step *aggregate.Step) aggregate.StepKind {
	count := map[string]int{}
	for _, c := range f.calls {
		count[c.status]++
		switch c.status {
		case "open":
			step.Calls = append(step.Calls, c.StepCall)
		case "started":
			step.Running = append(step.Running, c.StepCall)
		}
	}
	switch {
	case f.fence == 0:
		return aggregate.StepClaim
	case f.cancel:
		step.Outcome = "cancelled"
		return aggregate.StepFinish
	case f.open:
		return aggregate.StepModel
	case count["decided"] > 0:
		return aggregate.StepReplay
	case count["open"]+count["started"] > 0:
		return aggregate.StepTools
	case count["parked"] > 0:
		return aggregate.StepWait
	case f.done:
		step.Outcome = "ok"
		return aggregate.StepFinish
	}
	return aggregate.StepAdmit
}
