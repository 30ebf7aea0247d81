package blackbox

// run is a run that the test holds as its runner.
type run struct {
	c       *client
	session string
	id      string
	fence   any
	claimed reply
}

// begin requests a run and claims it.
func (c *client) begin(session string, request obj) *run {
	c.t.Helper()
	return c.claim(session, c.must(session, "run.request", request).text("run_id"))
}

// beginLoop begins a counted loop with the prompt p.
func (c *client) beginLoop(session string, iterations, rounds int, more ...obj) *run {
	c.t.Helper()
	loop := merge(obj{"max_iterations": iterations, "max_total_rounds": rounds}, more...)
	return c.begin(session, obj{"prompt": "p", "loop": loop})
}

func (c *client) claim(session, id string) *run {
	c.t.Helper()
	r := c.must(session, "run.claim", obj{"run_id": id, "runner": "r1", "providers": []string{"test"}})
	return &run{c: c, session: session, id: id, fence: r.Result["fence"], claimed: r}
}

// claimNext claims the run that the session's state shows as requested.
func (c *client) claimNext(session string) *run {
	c.t.Helper()
	r := c.part(session, "run")
	if r["status"] != "requested" {
		c.t.Fatalf("%s has no requested run: %v", session, r)
	}
	return c.claim(session, r["run_id"].(string))
}

func (r *run) body(more obj) obj { return merge(obj{"run_id": r.id, "fence": r.fence}, more) }

func (r *run) do(name string, more obj, opts ...option) reply {
	r.c.t.Helper()
	return r.c.do(r.session, name, r.body(more), opts...)
}

func (r *run) must(name string, more obj, opts ...option) reply {
	r.c.t.Helper()
	return r.c.must(r.session, name, r.body(more), opts...)
}

func (r *run) refused(code, name string, more obj) reply {
	r.c.t.Helper()
	return r.c.refused(code, r.session, name, r.body(more))
}

// admit starts a round that has to be admitted.
func (r *run) admit() int {
	r.c.t.Helper()
	x := r.must("round.start", nil)
	if x.Result["admitted"] != true {
		r.c.t.Fatalf("round not admitted: %s", x.raw)
	}
	n, _ := x.Result["round"].(float64)
	return int(n)
}

// notAdmitted starts a round that has to be refused quietly, and returns the
// type of the event, "" for none.
func (r *run) notAdmitted(reason string) string {
	r.c.t.Helper()
	x := r.must("round.start", nil)
	if x.Result["admitted"] != false || x.Result["reason"] != reason {
		r.c.t.Fatalf("want no round for %s: %s", reason, x.raw)
	}
	return x.event()
}

// answer finishes a round without tool calls and returns the decision.
func (r *run) answer(round int, text string) string {
	r.c.t.Helper()
	return r.must("round.finish", obj{"round": round, "message": obj{"content": text}}).text("decision")
}

// call is one tool call of a model.
type call struct{ id, name, arguments string }

// calls finishes a round with tool calls.
func (r *run) calls(round int, calls ...call) reply {
	r.c.t.Helper()
	list := make([]obj, 0, len(calls))
	for _, c := range calls {
		list = append(list, obj{"id": c.id, "name": c.name, "arguments": c.arguments})
	}
	x := r.must("round.finish", obj{"round": round, "message": obj{"content": "", "tool_calls": list}})
	if x.text("decision") != "tools" {
		r.c.t.Fatalf("want decision tools: %s", x.raw)
	}
	return x
}

func (r *run) startTool(id string) { r.c.t.Helper(); r.must("tool.start", obj{"tool_call_id": id}) }

func (r *run) endTool(id, content string) reply {
	r.c.t.Helper()
	return r.must("tool.finish", obj{"tool_call_id": id, "success": true, "content": content})
}

func (r *run) useTool(id string) { r.c.t.Helper(); r.startTool(id); r.endTool(id, "done") }

// park lets a call wait for an approval; it may be allowed or denied once.
func (r *run) park(id string) reply {
	r.c.t.Helper()
	return r.must("tool.park", obj{"tool_call_id": id, "question": "Run it?", "options": []string{"Approve", "Deny"}, "request": obj{
		"tool_name": "Write", "permission_type": "write_file", "resource": "a.txt", "allowed_decisions": []string{"allow_once", "deny_once"},
	}})
}

// ask lets a call wait for an answer in words.
func (r *run) ask(id string, options ...string) reply {
	r.c.t.Helper()
	return r.must("tool.park", obj{"tool_call_id": id, "question": "Which one?", "options": options, "allow_custom": len(options) == 0})
}

func (r *run) finish(outcome string, more ...obj) reply {
	r.c.t.Helper()
	return r.must("run.finish", merge(obj{"outcome": outcome}, more...))
}

// decide decides the waiting item of a call under its current generation.
func (c *client) decide(session, call, decision string, opts ...option) reply {
	c.t.Helper()
	for _, p := range c.pending(session) {
		if p["tool_call_id"] == call {
			return c.must(session, "approval.decide", obj{"tool_call_id": call, "generation": p["generation"], "decision": decision}, opts...)
		}
	}
	c.t.Fatalf("call %q of %s does not wait: %v", call, session, c.pending(session))
	return reply{}
}
