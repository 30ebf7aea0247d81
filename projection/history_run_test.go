package projection

import (
	"fmt"
	"maps"

	"culm/aggregate"
)

// decide decides on something that waits.
func (h *history) decide(session string, s *aggregate.State) {
	for _, c := range s.Calls {
		if !c.Status.Waiting() || h.chance(30) {
			continue
		}
		switch {
		case c.Generation == "":
			h.give(session, "question.answer", fields{"tool_call_id": c.ID, "answer": h.text()})
		case c.Status == aggregate.CallUnknown && h.chance(50):
			h.give(session, "tool.resolve", fields{"tool_call_id": c.ID, "generation": c.Generation, "success": h.chance(50), "content": h.text()})
		default:
			h.give(session, "approval.decide", fields{
				"tool_call_id": c.ID, "generation": c.Generation, "note": h.text(),
				"decision": pick(h.random, "allow_once", "allow_once", "deny_once", "allow_session", "deny_session"),
			})
		}
		return
	}
}

// work does what the session's run is owed, mostly.
func (h *history) work(session string, s *aggregate.State) {
	step := aggregate.Next(s, aggregate.Config{})
	run := fields{"run_id": step.RunID, "fence": step.Fence}
	with := func(more fields) fields {
		out := maps.Clone(run)
		maps.Copy(out, more)
		return out
	}
	if step.Fence > 0 && h.chance(3) {
		h.give(session, "budget.exhaust", with(fields{"kind": pick(h.random, "tokens", "tool_calls")}))
		return
	}
	if step.Fence > 0 && h.chance(1) {
		h.give(session, "run.refuse", with(fields{"code": "provider_unavailable", "message": "gone"}))
		return
	}
	switch step.Kind {
	case aggregate.StepClaim:
		h.give(session, "run.claim", fields{"run_id": step.RunID, "runner": pick(h.random, "runner-1", "runner-2")})
	case aggregate.StepReplay:
		h.give(session, "replay.start", run)
	case aggregate.StepTools:
		h.tools(session, step, with)
	case aggregate.StepAdmit:
		h.give(session, "round.start", run)
	case aggregate.StepModel:
		h.model(session, step, with)
	case aggregate.StepFinish:
		data := with(fields{"outcome": step.Outcome})
		if step.Outcome == "error" {
			data["error"] = fields{"code": "model_failed", "message": h.text()}
		}
		h.give(session, "run.finish", data)
	}
}

func (h *history) tools(session string, step aggregate.Step, with func(fields) fields) {
	for _, c := range step.Running {
		if h.chance(20) && h.give(session, "tool.park", with(h.park(c))) {
			return
		}
		h.give(session, "tool.finish", with(fields{"tool_call_id": c.ID, "success": h.chance(70), "content": h.text(), "elapsed_ms": h.n % 900}))
		return
	}
	for _, c := range step.Calls {
		if h.chance(30) {
			h.give(session, "tool.authorize", with(fields{
				"tool_call_id": c.ID, "permission_type": pick(h.random, "read_file", "write_file", "execute_command"),
				"resource": pick(h.random, "/srv/x/a", "ls -l", "rm -rf /"), "risk": pick(h.random, "low", "high"), "mutating": h.chance(50),
			}))
			return
		}
		if h.chance(25) {
			h.give(session, "tool.park", with(h.park(c)))
			return
		}
		if !h.give(session, "tool.start", with(fields{"tool_call_id": c.ID, "mutating": h.chance(40)})) {
			h.give(session, "tool.park", with(h.park(c)))
		}
		return
	}
}

func (h *history) park(c aggregate.StepCall) fields {
	data := fields{"tool_call_id": c.ID, "question": h.text(), "options": []string{"yes", "no"}, "allow_custom": true}
	if h.chance(70) {
		data["request"] = fields{"tool_name": c.Name, "permission_type": "write", "resource": "/srv/x", "risk": "high"}
	}
	return data
}

func (h *history) model(session string, step aggregate.Step, with func(fields) fields) {
	if h.chance(5) {
		h.give(session, "round.fail", with(fields{"round": step.Round, "error": fields{"code": "overloaded", "message": "later"}}))
		return
	}
	message := fields{"content": h.text()}
	if h.chance(55) && !step.Summary {
		var calls []fields
		for i := range 1 + h.random.IntN(3) {
			calls = append(calls, fields{"id": pick(h.random, "", fmt.Sprint("c", i), "same"), "name": pick(h.random, "read", "write", "EnterPlanMode"), "arguments": `{"path":"` + fmt.Sprint(h.n) + `"}`})
		}
		message["tool_calls"] = calls
	}
	data := with(fields{"round": step.Round, "message": message, "finish_reason": "stop", "attempts": 1, "admit_next": h.chance(50)})
	if h.chance(90) {
		p, c := 10+h.random.IntN(90), h.random.IntN(50)
		data["usage"] = fields{"prompt": p, "completion": c, "total": p + c}
	}
	h.give(session, "round.finish", data)
}
