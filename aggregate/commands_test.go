package aggregate

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"culm/events"
)

// wholeBodies is one body of every command with every field of it.
var wholeBodies = map[string]string{
	"session.create":     `{"kind":"child","parent":{"session":"p","tool_call_id":"c"},"title":"t","model":{"provider":"p","model":"m"},"reasoning_effort":"high","mode":"auto","workspace":"/w","gold":{"enabled":true},"read_only":true,"no_human_approver":true,"enforce_policy":true,"metadata":{"a":"b"}}`,
	"session.configure":  `{"title":"t","model":{"provider":"p","model":"m"},"reasoning_effort":"high","workspace":"/w","gold":null,"metadata":{"a":"b","c":null}}`,
	"session.set_mode":   `{"mode":"bypass"}`,
	"session.enter_plan": `{"reason":"r"}`,
	"session.exit_plan":  `{}`,
	"policy.set_mode":    `{"mode":"auto"}`,
	"policy.add_rule":    `{"rule_id":"r","effect":"deny","scope":"workspace","workspace":"/w","permission_type":"write_file","matcher":{"kind":"exact_resource","pattern":"/w/x"}}`,
	"policy.remove_rule": `{"rule_id":"r"}`,
	"tool.authorize":     `{"run_id":"r","fence":3,"tool_call_id":"i","permission_type":"write_file","resource":"/w/x","summary":"s","risk":"low","mutating":true}`,
	"session.close":      `{"reason":"r"}`,
	"session.delete":     `{"birth":"b"}`,
	"message.submit":     `{"content":"c"}`,
	"note.append":        `{"kind":"k","data":{"a":9007199254740993}}`,
	"run.request":        `{"prompt":"p","loop":{"max_iterations":2,"max_total_rounds":5,"objective":"o","on_park":"pause"},"budget":{"max_rounds":1,"max_total_tokens":2,"max_tool_calls":3,"max_subagents":4}}`,
	"run.resume":         `{}`,
	"run.cancel":         `{"run_id":"r"}`,
	"loop.stop":          `{"generation":"g"}`,
	"loop.continue":      `{"generation":"g","acknowledge_unknown":true}`,
	"loop.abandon":       `{"generation":"g","acknowledge_unknown":true}`,
	"run.claim":          `{"run_id":"r","runner":"r1","providers":["p"]}`,
	"run.renew":          `{"run_id":"r","fence":3}`,
	"run.refuse":         `{"run_id":"r","fence":3,"code":"c","message":"m"}`,
	"run.finish":         `{"run_id":"r","fence":3,"outcome":"error","completion_reason":"x","error":{"code":"c","message":"m","retryable":true}}`,
	"round.start":        `{"run_id":"r","fence":3}`,
	"round.finish":       `{"run_id":"r","fence":3,"round":0,"message":{"content":"c","tool_calls":[{"id":"i","name":"n","arguments":"a"}]},"usage":{"prompt":1,"completion":2,"total":3},"finish_reason":"stop","attempts":2,"admit_next":true}`,
	"round.fail":         `{"run_id":"r","fence":3,"round":0,"error":{"code":"c","message":"m","retryable":false}}`,
	"tool.start":         `{"run_id":"r","fence":3,"tool_call_id":"i","mutating":false}`,
	"tool.finish":        `{"run_id":"r","fence":3,"tool_call_id":"i","success":false,"content":"","error":"e","elapsed_ms":5}`,
	"tool.park":          `{"run_id":"r","fence":3,"tool_call_id":"i","question":"q","options":["a"],"allow_custom":false,"source":"s","request":{"tool_name":"n","permission_type":"write_file","resource":"r","summary":"s","risk":"low","reason_code":"r","allowed_decisions":["allow_once"],"suggested_matchers":[{"id":"i","kind":"exact_resource","pattern":"p"}]}}`,
	"replay.start":       `{"run_id":"r","fence":3}`,
	"budget.exhaust":     `{"run_id":"r","fence":3,"kind":"tokens"}`,
	"approval.decide":    `{"tool_call_id":"i","generation":"g","decision":"allow_global","matcher_id":"m","expected_policy_revision":0,"confirm_global":true,"note":"n"}`,
	"question.answer":    `{"tool_call_id":"i","answer":"","model":{"provider":"p","model":"m"},"reasoning_effort":"low"}`,
	"tool.resolve":       `{"tool_call_id":"i","generation":"g","success":true,"content":""}`,
}

// TestDecodeCommand_Whole: every command takes every field of the contract; one
// more, a field too many or in another case, and it takes none.
func TestDecodeCommand_Whole(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(commandTypes)), slices.Sorted(maps.Keys(wholeBodies))); diff != "" {
		t.Errorf("commands and their bodies here (-commands +bodies):\n%s", diff)
	}
	for name, body := range wholeBodies {
		c, r := DecodeCommand(name, []byte(body))
		if r != nil {
			t.Errorf("%s: %v", name, r)
			continue
		}
		if v := reflect.ValueOf(c); body != "{}" && v.IsZero() {
			t.Errorf("%s: nothing was read", name)
		}
		extra := strings.Replace(body, "{", `{"surplus":1,`, 1)
		if body == "{}" {
			extra = `{"surplus":1}`
		}
		want := `unknown field "surplus" in ` + name
		if _, r := DecodeCommand(name, []byte(extra)); r == nil || r.Code != CodeInvalidCommand || r.Message != want {
			t.Errorf("%s with a surplus field: %v", name, r)
		}
		if _, r := DecodeCommand(name, []byte(body+"{}")); r == nil || r.Code != CodeInvalidJSON {
			t.Errorf("%s with trailing data: %v", name, r)
		}
	}
}

// TestDecodeCommand_Missing: a body without a field that is needed is refused.
func TestDecodeCommand_Missing(t *testing.T) {
	t.Parallel()
	optional := map[string][]string{
		"session.create":    {"kind", "title", "model", "reasoning_effort", "mode", "workspace", "gold", "read_only", "no_human_approver", "enforce_policy", "metadata"},
		"session.configure": {"title", "model", "reasoning_effort", "workspace", "gold", "metadata"}, "session.enter_plan": {"reason"}, "session.close": {"reason"},
		"run.request": {"prompt", "loop", "budget"}, "run.cancel": {"run_id"}, "loop.stop": {"generation"}, "run.claim": {"providers"}, "run.refuse": {"message"},
		"run.finish": {"completion_reason", "error"}, "round.finish": {"usage", "finish_reason", "attempts", "admit_next"}, "tool.start": {"mutating"},
		"tool.finish": {"error", "elapsed_ms"}, "tool.park": {"options", "allow_custom", "source", "request"},
		"approval.decide": {"matcher_id", "expected_policy_revision", "confirm_global", "note"}, "question.answer": {"tool_call_id", "model", "reasoning_effort"},
		"tool.resolve": {"generation"}, "tool.authorize": {"summary", "risk", "mutating"}, "policy.add_rule": {"rule_id"},
	}
	for name, body := range wholeBodies {
		whole := map[string]any{}
		if err := json.Unmarshal([]byte(body), &whole); err != nil {
			t.Fatal(err)
		}
		for field := range whole {
			part := maps.Clone(whole)
			delete(part, field)
			raw := rawJSON(t, part)
			_, r := DecodeCommand(name, raw)
			if slices.Contains(optional[name], field) != (r == nil) {
				t.Errorf("%s without %s: %v", name, field, r)
			}
		}
	}
}

// FuzzDecodeCommand: whatever comes in, a command or a refusal comes out, and a
// command that came out decides without a panic on a session in any state.
func FuzzDecodeCommand(f *testing.F) {
	for name, body := range wholeBodies {
		f.Add(name, []byte(body))
	}
	f.Add("message.submit", []byte(`{"content":`+strings.Repeat("[", 100)))
	f.Add("message.submit", []byte("{\"content\":\"\\ud800\"}"))
	states := fuzzStates(f)
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		c, r := DecodeCommand(name, body)
		if (c == nil) == (r == nil) {
			t.Fatalf("command %v, rejection %v", c, r)
		}
		if r != nil {
			return
		}
		for _, s := range states {
			d, r := Decide(s, c, testEnv("fuzz"))
			if r != nil || d.Event == nil {
				continue
			}
			after := s.Clone()
			Evolve(after, eventOf(d, s))
			if err := after.Validate(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func eventOf(d Decision, s *State) *events.Event {
	return &events.Event{Type: d.Event.EventType(), Seq: s.Head.Seq + 1, Time: testEnv("").Now, Command: "fuzz", Data: d.Event}
}

// fuzzStates are a session that is not there, one with a live loop and an open
// round, one whose calls wait, one that crashed, and one that is closed. Their
// run is r with fence 3, their loop's generation g cannot be: a body with $… is
// no use to a fuzzer, so the ids are short.
func fuzzStates(tb testing.TB) []*State {
	tb.Helper()
	b := newBench(tb)
	e := b.engine()
	e.begin("open", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5}}).must("round.start", nil)
	h := e.begin("wait", obj{"prompt": "p"})
	h.callTools(0, "i", "j")
	h.park("i")
	h.must("tool.start", obj{"tool_call_id": "j"})
	e.begin("dead", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5}})
	b.leases.expire("dead")
	e.refused(CodeRecoveryUnsupported, "dead", "run.resume", nil)
	e.must("closed", "session.create", nil)
	e.must("closed", "session.close", nil)
	out := []*State{{}}
	for _, name := range []string{"open", "wait", "dead", "closed"} {
		s := b.fold(name)
		if s.Run != nil {
			s.Run.ID, s.Run.Fence = "r", 3
			if s.Loop != nil {
				s.Loop.Owner = "r"
			}
		}
		for i := range s.Calls {
			if s.Calls[i].Generation != "" {
				s.Calls[i].Generation = "g"
			}
		}
		out = append(out, s)
	}
	return out
}

// The tokens of a session are summed up; a sum that wraps would lift a budget.
func TestDecodeCommand_UsageIsBounded(t *testing.T) {
	for _, field := range []string{"prompt", "completion", "total"} {
		for tokens, want := range map[string]string{"1099511627776": "", "1099511627777": CodeInvalidCommand, "18446744073709551615": CodeInvalidCommand} {
			body := `{"run_id":"r","fence":3,"round":0,"message":{"content":"c"},"usage":{"` + field + `":` + tokens + `}}`
			_, r := DecodeCommand("round.finish", []byte(body))
			got := ""
			if r != nil {
				got = r.Code
			}
			if got != want {
				t.Errorf("%s %s: %q, want %q", field, tokens, got, want)
			}
		}
	}
}

// TestDecodeCommand_SaysWhatIsWrong: a refusal names the field, what it is and
// what it must be, and nothing of Go.
func TestDecodeCommand_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, code, want string }{
		{"run.request", `{"loop":{"y":3}}`, CodeInvalidCommand, `unknown field "y" in "/loop" of run.request`},
		{"run.request", `{"loop":{"max_iterations":"3"}}`, CodeInvalidCommand, `run.request: "/loop/max_iterations" is a string, must be a whole number from 0 to 4294967295`},
		{"message.submit", `[]`, CodeInvalidCommand, `message.submit: it is a list, must be an object`},
		{"message.submit", `null`, CodeInvalidCommand, `message.submit: the body is no JSON object`},
		{"message.submit", `{"content":"a"`, CodeInvalidJSON, `the body is not one well-formed JSON object: unexpected end after offset 14`},
	} {
		if _, r := DecodeCommand(c.name, []byte(c.body)); r == nil || r.Code != c.code || r.Message != c.want {
			t.Errorf("%s %s:\n got %v\nwant %s", c.name, c.body, r, c.want)
		}
	}
}
