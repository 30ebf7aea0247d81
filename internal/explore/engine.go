package explore

import (
	"fmt"
	"time"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
)

// node is a state of the session, shared by all worlds that are in it.
type node struct {
	s    *aggregate.State
	runs uint8 // runs requested so far
	gens uint8 // events so far that gave generations
	next aggregate.Step
	// waiting are the items that a person may decide.
	waiting []item
	rests   bool // nothing is owed any more, see rests
}

type item struct {
	call, gen uint8
	unknown   bool
}

// at is what a decision rests on besides state and command.
type at struct {
	late   bool // what waits has expired
	denies bool // the policy has gained a rule that denies both calls
}

// outcome is what a command led to.
type outcome struct {
	node  uint32
	reply reply
	facts []fact
	err   error // a broken invariant of the state
}

// fact is an event, with the ordinal of the run that was there before it.
type fact struct {
	events.Data
	run uint8
}

// reply is what the sender of a command makes of its answer.
type reply struct {
	OK       bool
	Code     string
	Decision string // of tool.authorize
	Replay   bool   // replay.start handed out Call
	Call     uint8
	Gen      uint8
	Bytes    bool // what was handed out is what the model gave
	Stored   bool // an event was appended: the command id will be answered so again
}

type question struct {
	node uint32
	at   at
	cmd  cmd
}

// engine answers commands over shared nodes; every answer is computed once.
type engine struct {
	nodes  []*node
	byKey  map[string]uint32
	memo   map[question]*outcome
	runs   names
	gens   names
	policy [2]policy.Policy // without and with the rule that denies
	ttl    time.Duration
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newEngine(ttl time.Duration) *engine {
	base, err := policy.New(policy.Config{})
	if err != nil {
		panic(err)
	}
	rule := func(id, effect, kind, pattern string) events.PolicyRuleAdded {
		return events.PolicyRuleAdded{
			RuleID: id, Effect: effect, Scope: policy.ScopeGlobal, PermissionType: "write_file", Matcher: events.Matcher{Kind: kind, Pattern: pattern},
		}
	}
	base = base.Evolve(rule("allow", policy.EffectAllow, "exact_resource", calls[1].path), 1)
	return &engine{
		byKey: map[string]uint32{}, memo: map[question]*outcome{}, ttl: ttl,
		policy: [2]policy.Policy{base, base.Evolve(rule("deny", policy.EffectDeny, "path_subtree", "/w"), 2)},
	}
}

// begin makes the session and gives it its first run.
func (e *engine) begin(b Bounds) uint32 {
	n := e.add(&aggregate.State{}, 0, 0)
	prompt := aggregate.RunRequest{Prompt: ptr("do it")}
	if b.Loop != "" {
		prompt.Loop = &aggregate.LoopSpec{MaxIterations: 2, MaxTotalRounds: 5, OnPark: b.Loop}
	}
	for _, c := range []aggregate.Command{
		aggregate.SessionCreate{EnforcePolicy: b.Enforce, Model: &events.Model{Provider: "p", Model: "m"}}, prompt,
	} {
		o := e.decide(n, at{}, cmd{}, c)
		if o.err != nil || !o.reply.OK {
			panic(fmt.Sprintf("%T: %+v", c, o))
		}
		n = o.node
	}
	return n
}

// do answers a command.
func (e *engine) do(q question) *outcome {
	if o, ok := e.memo[q]; ok {
		return o
	}
	o := e.decide(q.node, q.at, q.cmd, e.command(e.nodes[q.node], q.cmd))
	e.memo[q] = &o
	return &o
}

func (e *engine) env(n *node, a at, c cmd) aggregate.Env {
	env := aggregate.Env{Now: noon, Actor: "somebody", Session: "s", Birth: birth, Command: label(n, c)}
	if a.late {
		env.Now = noon.Add(2 * e.ttl)
	}
	p := e.policy[0]
	if a.denies {
		p = e.policy[1]
	}
	env.Config = aggregate.Config{Policy: p, Mode: p.Mode(), PolicyRevision: p.Revision(), QuestionTTL: e.ttl, LeaseMS: 15000}
	return env
}

const birth = "01KB9ZQ000T8QW2X4Y6Z7A8B9C"

// label stands for the command id: what a command creates is numbered.
func label(n *node, c cmd) string {
	switch c.Kind {
	case none, approve, deny, resolve, resume, request, proceed, look:
		return fmt.Sprintf("r%d", n.runs)
	case answer:
		return fmt.Sprintf("m%d", n.s.Answers)
	}
	return fmt.Sprintf("g%d", n.gens)
}

// decide judges a command as the handler does: facts that the engine finds by
// itself first, then the command.
func (e *engine) decide(at0 uint32, a at, c cmd, command aggregate.Command) outcome {
	o := outcome{node: at0, reply: reply{OK: true}}
	for c.Kind != lapse {
		n := e.nodes[o.node]
		fact := aggregate.Expire(n.s, e.env(n, a, cmd{Kind: look}))
		if fact == nil || o.err != nil {
			break
		}
		o.store(e, fact)
	}
	n := e.nodes[o.node]
	switch c.Kind {
	case look:
		return o
	case lapse:
		if fact := aggregate.Lapse(n.s, e.env(n, a, c)); fact != nil {
			o.store(e, fact)
		}
		return o
	}
	d, r := aggregate.Decide(n.s, command, e.env(n, a, c))
	switch {
	case r != nil:
		o.reply = reply{Code: r.Code}
		return o
	case d.Event == nil:
		o.reply = read(d.Result, e)
		return o
	}
	after := o.store(e, d.Event)
	if o.err != nil {
		return o
	}
	result, refusal := aggregate.Outcome(outcomeNames[c.Kind], after, &events.Event{Seq: uint64(n.runs), Data: d.Event}, 15000)
	o.reply = read(result, e)
	if refusal != nil {
		o.reply = reply{Code: refusal.Code}
	}
	o.reply.Stored = true
	return o
}

// outcomeNames are the names that Outcome tells apart.
var outcomeNames = map[kind]string{
	authorize: "tool.authorize", gate: "tool.park", replay: "replay.start", admit: "round.start", refuseRun: "run.refuse",
}

// store evolves a copy of the state by the event.
func (o *outcome) store(e *engine, d events.Data) *aggregate.State {
	n := e.nodes[o.node]
	s := n.s.Clone()
	runs, gens := n.runs+requests(d), n.gens+generations(d)
	aggregate.Evolve(s, &events.Event{Type: d.EventType(), Session: "s", Time: noon, Seq: uint64(runs), Birth: birth, Actor: "somebody", Data: d})
	s.Head.Birth = birth
	f := fact{Data: d}
	if n.s.Run != nil {
		f.run = e.runs.number(n.s.Run.ID)
	}
	o.facts = append(o.facts, f)
	if o.err = s.Validate(); o.err == nil {
		o.node = e.add(s, runs, gens)
	}
	return s
}
