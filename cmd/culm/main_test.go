package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
)

func TestBadArgumentsExitWith2(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":                        {},
		"unknown command":                {"dance"},
		"unknown flag":                   {"session", "list", "--loud"},
		"missing session":                {"send"},
		"bad session":                    {"send", "a b", "hello"},
		"bad prefix":                     {"--prefix", "a.>", "session", "list"},
		"reserved actor":                 {"--actor", "_engine", "session", "list"},
		"bad timeout":                    {"--timeout", "-1s", "session", "list"},
		"bad number":                     {"loop", "start", "demo", "x", "-n", "-3"},
		"missing iterations":             {"loop", "start", "demo", "x"},
		"bad on-park":                    {"loop", "start", "demo", "x", "-n", "3", "--on-park", "dream"},
		"prompt given twice":             {"run", "demo", "x", "--prompt", "y"},
		"bad model":                      {"session", "create", "demo", "--model", "gpt"},
		"from without session":           {"watch", "--from", "3"},
		"audit of nothing":               {"audit"},
		"audit of two things":            {"audit", "demo", "--all"},
		"head for all":                   {"audit", "--all", "--head", "3:" + strings.Repeat("a", 64)},
		"bad head":                       {"audit", "demo", "--head", "3:abc"},
		"no such file":                   {"audit", "--file", "/does/not/exist"},
		"unknown shell":                  {"completion", "tcsh"},
		"delete without --yes at a pipe": {"session", "delete", "demo"},
		"two scopes":                     {"approve", "demo", "--session", "--global"},
		"answer without text":            {"answer", "demo"},
		"answer of three words":          {"answer", "demo", "c1", "two", "words"},
		"resolve without outcome":        {"resolve", "demo", "c1"},
		"resolve with two outcomes":      {"resolve", "demo", "c1", "--success", "x", "--failed", "y"},
		"unknown mode":                   {"mode", "demo", "yolo"},
		"reason without plan":            {"mode", "demo", "auto", "--reason", "x"},
		"allow without --yes at a pipe":  {"policy", "add", "allow", "execute_command", "command_prefix", "bash"},
		"unknown effect":                 {"policy", "add", "maybe", "read", "exact_resource", "x"},
		"unknown permission type":        {"policy", "add", "deny", "fly", "exact_resource", "x"},
		"matcher that does not fit":      {"policy", "add", "deny", "write_file", "command_prefix", "x"},
		"unknown mode of policy":         {"policy", "mode", "yolo"},
		"test of an unknown type":        {"policy", "test", "Write", "x", "--type", "fly"},
		"test with no such file":         {"policy", "test", "Write", "x", "--config", "/does/not/exist"},
		"asking a program":               {"watch", "--approvals", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			r := culm(t, &fake{state: "{}"}, args...)
			if r.status != exitUsage || r.err == "" || r.out != "" || !strings.Contains(r.err, "--help") {
				t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
			}
			if len(r.back.sent) > 0 {
				t.Errorf("something was sent: %v", r.back.sent)
			}
		})
	}
}

func TestHelpDocumentsTheExitStatus(t *testing.T) {
	r := culm(t, &fake{}, "--help")
	if r.status != exitOK || !strings.Contains(r.out, "Exit status: 0") || !strings.Contains(r.out, "CULM_NATS") {
		t.Errorf("status %d: %s", r.status, r.out)
	}
}

func TestCommandsSayWhatTheContractSays(t *testing.T) {
	seq := uint64(7)
	for _, c := range []struct {
		args          string
		session, name string
		body          string
	}{
		{"session create demo --title T --model p/m/x --mode auto --metadata a=b", "demo", "session.create", `{"metadata":{"a":"b"},"mode":"auto","model":{"model":"m/x","provider":"p"},"title":"T"}`},
		{"session close demo --reason done", "demo", "session.close", `{"reason":"done"}`},
		{"session delete demo --yes", "demo", "session.delete", `{"birth":"01BIRTH"}`},
		{"session delete demo --birth 01B", "demo", "session.delete", `{"birth":"01B"}`},
		{"send demo hello", "demo", "message.submit", `{"content":"hello"}`},
		{"send demo -", "demo", "message.submit", `{"content":"from stdin"}`},
		{"run demo", "demo", "run.request", `{"budget":{"max_rounds":50}}`},
		{"run demo --max-rounds 0", "demo", "run.request", `{}`},
		{"run demo do --max-tokens 9 --max-rounds 2", "demo", "run.request", `{"budget":{"max_rounds":2,"max_total_tokens":9},"prompt":"do"}`},
		{"run demo --prompt do", "demo", "run.request", `{"budget":{"max_rounds":50},"prompt":"do"}`},
		{"loop start demo do -n 3", "demo", "run.request", `{"loop":{"max_iterations":3,"max_total_rounds":30,"on_park":"pause"},"prompt":"do"}`},
		{"loop start demo -n 100 --rounds 200 --on-park end", "demo", "run.request", `{"loop":{"max_iterations":100,"max_total_rounds":200,"on_park":"end"}}`},
		{"loop start demo do -n 101", "demo", "run.request", `{"loop":{"max_iterations":101,"max_total_rounds":1000,"on_park":"pause"},"prompt":"do"}`},
		{"loop stop demo", "demo", "loop.stop", `{}`},
		{"loop continue demo --acknowledge-unknown", "demo", "loop.continue", `{"acknowledge_unknown":true,"generation":"g1"}`},
		{"loop abandon demo --acknowledge-unknown --generation g2", "demo", "loop.abandon", `{"acknowledge_unknown":true,"generation":"g2"}`},
		{"cancel demo --run r1", "demo", "run.cancel", `{"run_id":"r1"}`},
		{"resume demo", "demo", "run.resume", `{}`},
		{"session create demo --enforce-policy --no-human-approver --read-only --workspace /w", "demo", "session.create", `{"enforce_policy":true,"no_human_approver":true,"read_only":true,"workspace":"/w"}`},
		{"mode demo bypass", "demo", "session.set_mode", `{"mode":"bypass"}`},
		{"mode demo plan --reason look", "demo", "session.enter_plan", `{"reason":"look"}`},
		{"mode demo exit-plan", "demo", "session.exit_plan", `{}`},
		{"policy mode dont_ask", "_settings", "policy.set_mode", `{"mode":"dont_ask"}`},
		{"policy remove r1", "_settings", "policy.remove_rule", `{"rule_id":"r1"}`},
	} {
		t.Run(c.args, func(t *testing.T) {
			f := &fake{state: `{"loop":{"generation":"g1","status":"recovery_unsupported"},"future":{"x":1}}`}
			args := append(strings.Fields(c.args), "--id", "id-1", "--expect", "7")
			r := culmAt(t, f, false, "from stdin\n", args...)
			if r.status != exitOK || r.out == "" || r.err != "" {
				t.Fatalf("status %d, out %q, err %q", r.status, r.out, r.err)
			}
			got := f.sent[len(f.sent)-1]
			if got.session != c.session || got.name != c.name || got.body != c.body {
				t.Errorf("sent %s %s %s\nwant %s %s %s", got.session, got.name, got.body, c.session, c.name, c.body)
			}
			if got.opts.ID != "id-1" || got.opts.Expected == nil || *got.opts.Expected != seq {
				t.Errorf("options %+v", got.opts)
			}
			if !f.closed {
				t.Error("the connection was left open")
			}
		})
	}
}

func TestRefusalsTellCodeMessageAndHint(t *testing.T) {
	refusal := aggregate.Reply{Session: "demo", Error: &aggregate.Error{Code: "session_not_found", Message: "no session \x1b[2J demo"}}
	r := culm(t, &fake{replies: []aggregate.Reply{refusal}}, "send", "demo", "hello")
	want := "culm: refused, session_not_found: no session \\x1b[2J demo\n" +
		"      culm session list shows what there is; culm session create demo makes it\n"
	if r.status != exitFailed || r.err != want || r.out != "" {
		t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
	}
	r = culm(t, &fake{replies: []aggregate.Reply{refusal}}, "send", "demo", "hello", "--json")
	if r.status != exitFailed || !strings.Contains(r.out, `"code":"session_not_found"`) {
		t.Errorf("with --json: status %d, out %q", r.status, r.out)
	}
}

// With --json a refusal is a document, whoever refuses: once, and once in words.
func TestRefusalsAreJSONWithJSON(t *testing.T) {
	no := &aggregate.Error{Code: "session_not_found", Message: "there is no session demo"}
	want := `{"error":{"code":"session_not_found","message":"there is no session demo"},"ok":false,"session":"demo"}` + "\n"
	for args, want := range map[string]string{ // "" is the reply as it came
		"session show demo": want, "state demo": want, "loop status demo": want, "log demo": want, "watch demo": want, "pending demo": want,
		"approve demo": want, "audit demo": want, "session delete demo --yes": want, "search x --session demo": want,
		"send demo x": "", "loop abandon demo --ack": want,
	} {
		f := &fake{refuse: no, replies: []aggregate.Reply{{Session: "demo", Error: no}}, views: map[string][]string{
			"messages.search": {`{"ok":false,"error":{"code":"session_not_found","message":"there is no session demo"}}`},
		}}
		r := culm(t, f, append([]string{"--json"}, strings.Fields(args)...)...)
		var got aggregate.Reply
		if err := json.Unmarshal([]byte(r.out), &got, json.RejectUnknownMembers(true)); err != nil || got.OK || got.Error == nil {
			t.Errorf("%s: %v", args, err)
		}
		if r.status != exitFailed || want != "" && r.out != want || strings.Count(r.err, "session_not_found: ") != 1 {
			t.Errorf("%s: status %d, out %q, err %q", args, r.status, r.out, r.err)
		}
	}
}

// What is not UTF-8 would be stored with other characters in its place.
func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	f := &fake{}
	if r := culm(t, f, "send", "demo", "a\xffb"); r.status != exitUsage || !strings.Contains(r.err, "argument 3 is not UTF-8") {
		t.Errorf("as an argument: status %d, err %q", r.status, r.err)
	}
	if r := culmAt(t, f, false, "a\xffb", "send", "demo", "-"); r.status != exitFailed || !strings.Contains(r.err, "standard input is not UTF-8") {
		t.Errorf("from standard input: status %d, err %q", r.status, r.err)
	}
	if len(f.sent) != 0 {
		t.Errorf("sent %+v", f.sent)
	}
}

func TestHintsNameTheSessionAndNothingElse(t *testing.T) {
	for code := range hints {
		if h := hintFor(code, "demo"); strings.Contains(h, "%!") || strings.Contains(h, "%s") {
			t.Errorf("%s: %s", code, h)
		}
	}
	if h := hintFor("session_not_found", "_settings"); strings.Contains(h, "session create") {
		t.Errorf("the policy's session: %s", h)
	}
	if h := hintFor("never_heard_of", "demo"); h != "" {
		t.Errorf("a code without hint has %q", h)
	}
}

func TestUnavailableIsTriedAgainUnderTheSameID(t *testing.T) {
	f := &fake{replies: []aggregate.Reply{
		{Error: &aggregate.Error{Code: "unavailable"}}, {Error: &aggregate.Error{Code: "unavailable"}}, {OK: true, Event: &aggregate.EventRef{Sequence: 2}},
	}}
	r := culm(t, f, "send", "demo", "hello")
	if r.status != exitOK || len(f.sent) != 3 {
		t.Fatalf("status %d after %d attempts: %s", r.status, len(f.sent), r.err)
	}
	if a, b := f.sent[0].opts.ID, f.sent[2].opts.ID; a == "" || a != b {
		t.Errorf("ids %q and %q", a, b)
	}
}

func TestTroubleSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		f    *fake
		want []string
	}{
		"no server": {nil, []string{"no NATS server answers at nats://xxxxx@127.0.0.1:9", "go run ./cmd/engine"}},
		"no engine": {&fake{doErr: errNoEngine}, []string{"no engine answers at nats://127.0.0.1:4222 (prefix agent)", "go run ./cmd/engine"}},
		"no answer": {&fake{doErr: errors.New("nats: timeout")}, []string{"not known whether it happened", "--id id-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := culm(t, c.f, "send", "demo", "hello", "--id", "id-1")
			if r.status != exitFailed {
				t.Errorf("status %d", r.status)
			}
			for _, want := range c.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q is missing in %q", want, r.err)
				}
			}
			if strings.Contains(r.err, "secret") {
				t.Errorf("a password is shown: %q", r.err)
			}
		})
	}
}

func TestRunUnderWayLosesThePrompt(t *testing.T) {
	f := func() *fake {
		return &fake{replies: []aggregate.Reply{{OK: true, Result: []byte(`{"outcome":"already_running","run_id":"r"}`)}}}
	}
	if r := culm(t, f(), "run", "demo", "do this"); r.status != exitFailed || !strings.Contains(r.err, "not stored") {
		t.Errorf("with a prompt: status %d, %q", r.status, r.err)
	}
	if r := culm(t, f(), "run", "demo"); r.status != exitOK || r.out != "a run is under way already; culm watch demo shows it\n" {
		t.Errorf("without: status %d, %q %q", r.status, r.out, r.err)
	}
	for args, want := range map[string]string{"run demo again": ", so the prompt was not stored; ", "run demo": "; culm watch demo shows it\n"} {
		requested := f()
		requested.state = `{"run":{"run_id":"r","status":"requested"}}`
		if r := culm(t, requested, strings.Fields(args)...); !strings.Contains(r.out+r.err, "a run is requested already, and no runner has taken it yet"+want) {
			t.Errorf("%s, not taken: status %d, %q %q", args, r.status, r.out, r.err)
		}
	}
}

func TestToToken(t *testing.T) {
	for in, want := range map[string]string{
		"alice": "alice", "Jörg Müller": "J-rg-M-ller", "_engine": "engine", "": "user", "日本": "user", strings.Repeat("x", 99): strings.Repeat("x", 64),
	} {
		if got := toToken(in); got != want {
			t.Errorf("toToken(%q) = %q, want %q", in, got, want)
		}
	}
}
