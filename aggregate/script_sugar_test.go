package aggregate

import (
	"regexp"
	"strings"
	"testing"
)

// sugar spells short forms out:
//
//	claim                     run.claim of the requested run
//	answer TEXT, answer+ TEXT round.finish with a final answer, + with admit_next
//	call ID NAME …            round.finish with calls whose arguments are {"n":ID}
//	done ID, failed ID        tool.finish
//	gate ID [NAME]            tool.park with a typed request
//	ask ID A B …              tool.park with a question and its options
//	approve ID, deny ID       approval.decide of the call's generation
//	finish OUTCOME [REASON]   run.finish
func (s *script) sugar(t *testing.T, line string) (name, body string) {
	name, body, _ = strings.Cut(line, " ")
	body = strings.TrimSpace(body)
	words := strings.Fields(body)
	spell := func(v any) string { return string(rawJSON(t, v)) }
	switch name {
	case "claim":
		return "run.claim", `{"run_id":"$run","runner":"r1"}`
	case "answer", "answer+":
		return "round.finish", spell(obj{"message": obj{"content": body}, "admit_next": name == "answer+"})
	case "call":
		var calls []obj
		for i := 0; i+1 < len(words); i += 2 {
			calls = append(calls, obj{"id": strings.Trim(words[i], `"`), "name": words[i+1], "arguments": `{"n":"` + strings.Trim(words[i], `"`) + `"}`})
		}
		return "round.finish", spell(obj{"message": obj{"content": "", "tool_calls": calls}})
	case "done", "failed":
		return "tool.finish", spell(obj{"tool_call_id": words[0], "success": name == "done", "content": name + " " + words[0]})
	case "use":
		return "tool.start", spell(obj{"tool_call_id": words[0]})
	case "gate":
		tool := append(words, "Write")[1]
		return "tool.park", spell(obj{"tool_call_id": words[0], "question": "May " + words[0] + " run?", "request": obj{"tool_name": tool, "permission_type": "write_file", "resource": words[0]}})
	case "ask":
		return "tool.park", spell(obj{"tool_call_id": words[0], "question": "Which?", "options": words[1:], "allow_custom": len(words) == 1})
	case "approve", "deny":
		kind := map[string]string{"approve": allowOnce, "deny": denyOnce}[name]
		return "approval.decide", spell(obj{"tool_call_id": words[0], "generation": "$gen(" + words[0] + ")", "decision": kind})
	case "finish":
		o := obj{"outcome": words[0]}
		if len(words) > 1 {
			o["completion_reason"] = words[1]
		}
		if words[0] == "error" {
			o["error"] = obj{"code": "model", "message": "it broke"}
		}
		return "run.finish", spell(o)
	}
	return name, body
}

var variable = regexp.MustCompile(`\$(run|loop|birth|gen\(([^)]*)\)|#\d+)`)

// expand puts in what the session holds.
func (s *script) expand(body string) string {
	if !strings.Contains(body, "$") {
		return body
	}
	state := s.b.fold(s.session)
	return variable.ReplaceAllStringFunc(body, func(v string) string {
		switch {
		case v == "$run" && state.Run != nil:
			return state.Run.ID
		case v == "$loop" && state.Loop != nil:
			return state.Loop.Generation
		case v == "$birth":
			return state.Head.Birth
		case strings.HasPrefix(v, "$gen("):
			if c := state.call(v[len("$gen(") : len(v)-1]); c != nil {
				return c.Generation
			}
		case strings.HasPrefix(v, "$#"):
			for uuid, name := range s.names {
				if name == v[1:] {
					return uuid
				}
			}
		}
		return v
	})
}
