package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/events"
)

const (
	writeArguments = `{"path":"/src/a.go","text":"x\n  y","version":9007199254740993}`
)

// waits is the state of a session in which these items wait.
func waits(items ...string) string {
	return `{"session":{"mode":"default"},"pending":[` + strings.Join(items, ",") + `]}`
}

// parked is a waiting approval; its arguments are checked against their digest.
func parked(call, arguments string) string {
	return fmt.Sprintf(`{"tool_call_id":%q,"message_id":"m-%s","kind":"approval","name":"Write","generation":"g-%s","arguments":%s,"arguments_bytes":%d,"arguments_digest":%q,
		"sequence":3,"parked_at":"2026-11-30T12:00:00Z","question":{"question":"Allow this?","options":["Approve","Deny"],"source":"policy"},
		"request":{"generation":"g-%s","tool_name":"Write","permission_type":"write_file","resource":"/src/a.go","risk":"medium","reason_code":"risk_threshold","workspace":"/src","effective_mode":"default","requested_mode":"default","policy_revision":4,
		"allowed_decisions":["allow_once","allow_session","allow_workspace","allow_global","deny_once","deny_session"],
		"suggested_matchers":[{"id":"exact_resource","kind":"exact_resource","pattern":"/src/a.go"},{"id":"path_subtree","kind":"path_subtree","pattern":"/src"}]}}`,
		call, call, call, quote(arguments), len(arguments), events.Hash([]byte(arguments)), call)
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x1b", `\u001b`).Replace(s) + `"`
}

func asksPlan(options string) string {
	return `{"tool_call_id":"p","message_id":"m-p","kind":"question","name":"ExitPlanMode","arguments":"{}","arguments_bytes":2,"arguments_digest":"` + events.Hash([]byte("{}")) +
		`","sequence":3,"parked_at":"2026-11-30T12:30:00Z","question":{"question":"Leave?\nNow?","options":[` + options + `],"source":"pause_tool"}}`
}

func lost() string {
	return `{"tool_call_id":"u","message_id":"m-u","kind":"unknown","name":"Bash","generation":"g-u","arguments":"{}","arguments_bytes":2,"arguments_digest":"` + events.Hash([]byte("{}")) +
		`","sequence":2,"question":{"question":"The outcome of Bash is not known. Run it again, or supply the outcome?","source":"engine"}}`
}

func TestDecisionsNameExactlyWhatWasRead(t *testing.T) {
	one := waits(parked("c1", writeArguments))
	for _, c := range []struct{ args, state, name, body string }{
		{"approve demo", one, "approval.decide", `{"decision":"allow_once","generation":"g-c1","tool_call_id":"c1"}`},
		{"approve demo c1 --note fine", one, "approval.decide", `{"decision":"allow_once","generation":"g-c1","note":"fine","tool_call_id":"c1"}`},
		{"approve demo m-c1", one, "approval.decide", `{"decision":"allow_once","generation":"g-c1","tool_call_id":"c1"}`},
		{"approve demo --session", one, "approval.decide", `{"decision":"allow_session","generation":"g-c1","matcher_id":"exact_resource","tool_call_id":"c1"}`},
		{"approve demo --session --matcher path_subtree", one, "approval.decide", `{"decision":"allow_session","generation":"g-c1","matcher_id":"path_subtree","tool_call_id":"c1"}`},
		{"approve demo --workspace", one, "approval.decide", `{"decision":"allow_workspace","expected_policy_revision":9,"generation":"g-c1","matcher_id":"exact_resource","tool_call_id":"c1"}`},
		{"approve demo --global --confirm-global", one, "approval.decide", `{"confirm_global":true,"decision":"allow_global","expected_policy_revision":9,"generation":"g-c1","matcher_id":"exact_resource","tool_call_id":"c1"}`},
		{"deny demo", one, "approval.decide", `{"decision":"deny_once","generation":"g-c1","tool_call_id":"c1"}`},
		{"deny demo --session --matcher path_subtree", one, "approval.decide", `{"decision":"deny_session","generation":"g-c1","matcher_id":"path_subtree","tool_call_id":"c1"}`},
		{"approve demo c2", waits(parked("c1", "{}"), parked("c2", "{}")), "approval.decide", `{"decision":"allow_once","generation":"g-c2","tool_call_id":"c2"}`},
		{"approve demo", waits(asksPlan(`"Approve the plan","Stay in plan mode"`)), "question.answer", `{"answer":"Approve the plan","tool_call_id":"p"}`},
		{"deny demo", waits(asksPlan(`"Approve the plan","Stay in plan mode"`)), "question.answer", `{"answer":"Stay in plan mode","tool_call_id":"p"}`},
		{"answer demo blue", waits(asksPlan(`"red","blue"`)), "question.answer", `{"answer":"blue","tool_call_id":"p"}`},
		{"answer demo p -", waits(asksPlan(``), parked("c1", "{}")), "question.answer", `{"answer":"from stdin","tool_call_id":"p"}`},
		{"resolve demo u --success done", waits(lost()), "tool.resolve", `{"content":"done","generation":"g-u","success":true,"tool_call_id":"u"}`},
		{"resolve demo u --failed=", waits(lost()), "tool.resolve", `{"content":"","generation":"g-u","success":false,"tool_call_id":"u"}`},
		{"approve demo u", waits(lost()), "approval.decide", `{"decision":"allow_once","generation":"g-u","tool_call_id":"u"}`},
	} {
		t.Run(c.args, func(t *testing.T) {
			f := &fake{states: map[string]string{"demo": c.state, "_settings": "{}"}, replies: []aggregate.Reply{
				{OK: true, Sequence: 10, Event: &aggregate.EventRef{Sequence: 10}, Result: []byte(`{"run_id":"r2"}`)},
			}}
			r := culmAt(t, f, false, "from stdin\n", strings.Fields(c.args)...)
			if r.status != exitOK || !strings.Contains(r.out, "the run goes on") || r.err != "" || len(f.sent) != 1 {
				t.Fatalf("status %d, out %q, err %q, sent %v", r.status, r.out, r.err, f.sent)
			}
			if got := f.sent[0]; got.name != c.name || got.body != c.body || got.session != "demo" {
				t.Errorf("sent %s %s\nwant %s %s", got.name, got.body, c.name, c.body)
			}
		})
	}
}

func TestDecisionsThatAreNotSent(t *testing.T) {
	one, two := waits(parked("c1", "{}")), waits(parked("c1", "{}"), parked("c2", "{}"))
	tampered := strings.Replace(one, events.Hash([]byte("{}")), strings.Repeat("0", 64), 1)
	for name, c := range map[string]struct {
		args, state string
		status      int
		err         string
	}{
		"several wait":          {"approve demo", two, exitUsage, "2 items wait in demo (culm pending demo shows them); name one: c1 (Write), c2 (Write)"},
		"another waits":         {"approve demo c9", one, exitFailed, "no call c9 waits; another does"},
		"nothing waits":         {"approve demo", waits(), exitFailed, "nothing ever did"},
		"global at a pipe":      {"approve demo --global", one, exitUsage, "--confirm-global"},
		"global with --yes":     {"approve demo --global --yes", one, exitUsage, "--confirm-global"},
		"digest of other bytes": {"approve demo", tampered, exitFailed, "not those of its digest"},
		"matcher for once":      {"approve demo --matcher path_subtree", one, exitUsage, "--matcher needs --session, --workspace or --global"},
		"matcher, denied once":  {"deny demo --matcher path_subtree", one, exitUsage, "--matcher needs --session\n"},
		"not offered":           {"approve demo --session --matcher command_prefix", one, exitFailed, "refused, unknown_matcher: this call offers exact_resource or path_subtree to remember, not command_prefix"},
		"not allowed":           {"approve demo u --session", waits(lost()), exitFailed, "this call takes allow once, deny once"},
		"a question":            {"approve demo", waits(asksPlan(`"red","blue"`)), exitFailed, `culm answer demo p "…"`},
		"a scope for a plan":    {"approve demo --session", waits(asksPlan(`"Approve the plan","Stay in plan mode"`)), exitUsage, "not remembered"},
		"answer to an approval": {"answer demo Approve", one, exitFailed, "this is no question; culm approve demo c1"},
		"resolve what waits":    {"resolve demo c1 --success x", one, exitFailed, "this call has not run"},
		"no session":            {"approve other", one, exitFailed, "session_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{states: map[string]string{"demo": c.state, "_settings": "{}"}, stored: map[string][]events.Record{"demo": story(t, "demo", events.SessionCreated{Kind: "root"})}}
			r := culm(t, f, strings.Fields(c.args)...)
			if r.status != c.status || !strings.Contains(r.err, c.err) || len(f.sent) > 0 {
				t.Errorf("status %d, err %q, sent %v", r.status, r.err, f.sent)
			}
		})
	}
}

func TestAtATerminalTheCallIsShownAndAskedAbout(t *testing.T) {
	for _, c := range []struct {
		args, in string
		shown    string
		sent     string // part of the body, "" for nothing
	}{
		{"approve demo", "y\n", "Run exactly this, once? [y/N]", `"allow_once"`},
		{"approve demo", "\n", "Run exactly this, once? [y/N]", ""},
		{"approve demo", "", "Run exactly this, once? [y/N]", ""},
		{"deny demo", "yes\n", "Deny it? [y/N]", `"deny_once"`},
		{"approve demo --session --matcher path_subtree", "y\n", "from now on write_file for path subtree /src?", `"allow_session"`},
		{"approve demo --global", "yes\n", "everywhere, in every session", ""},
		{"approve demo --global", "global\n", "everywhere, in every session", `"confirm_global":true`},
		{"approve demo --global --yes", "no\n", "everywhere, in every session", ""},
		{"policy add allow write_file path_subtree /src", "n\n", "Allow write_file for path subtree /src everywhere", ""},
		{"policy add allow write_file path_subtree /src", "", "without asking?", ""},
		{"policy add allow write_file path_subtree /src --workspace /src", "y\n", "in workspace /src, without asking?", `"scope":"workspace"`},
	} {
		f := &fake{states: map[string]string{"demo": waits(parked("c1", writeArguments)), "_settings": "{}"}, replies: []aggregate.Reply{
			{OK: true, Sequence: 3, Event: &aggregate.EventRef{Sequence: 3}, Result: []byte(`{"rule_id":"r1"}`)},
		}}
		r := culmAt(t, f, true, c.in, strings.Fields(c.args)...)
		sent := ""
		if len(f.sent) > 0 {
			sent = f.sent[0].body
		}
		if !strings.Contains(r.err, c.shown) || !strings.Contains(sent, c.sent) || (sent == "") != (c.sent == "") || (r.status == exitOK) != (c.sent != "") {
			t.Errorf("%s with %q: status %d, sent %q, err %q", c.args, c.in, r.status, sent, r.err)
		}
		if strings.HasPrefix(c.args, "approve demo") && !strings.Contains(c.args, "--yes") && !strings.Contains(r.err, `text: "x\n  y"`) {
			t.Errorf("%s does not show the arguments: %q", c.args, r.err)
		}
	}
	unknown := &fake{state: waits(lost())}
	if r := culmAt(t, unknown, true, "n\n", "approve", "demo"); !strings.Contains(r.err, "may have happened already") || len(unknown.sent) > 0 {
		t.Errorf("unknown: %q", r.err)
	}
}

// Who comes late is told who was faster, and when.
func TestTooLate(t *testing.T) {
	call := events.CallRef{ToolCallID: "c1", MessageID: "m-c1", Name: "Write"}
	refuse := func(code string) aggregate.Reply {
		return aggregate.Reply{Session: "demo", Error: &aggregate.Error{Code: code, Message: "as the engine says"}}
	}
	for name, c := range map[string]struct {
		happened events.Data
		reply    aggregate.Reply
		args     string
		status   int
		want     string
	}{
		"decided": {events.ApprovalDecided{CallRef: call, Decision: "deny_once", Note: "no"}, refuse("already_decided"), "approve demo", exitFailed,
			"already_decided: too late: alice decided deny once on Write (call c1), 59 minutes ago: “no”"},
		"decided the same": {events.ApprovalDecided{CallRef: call, Decision: "allow_once"}, aggregate.Reply{OK: true, Result: []byte(`{"replayed":true}`)}, "approve demo", exitOK,
			"nothing changes, the same was decided before: alice decided allow once"},
		"expired":   {events.QuestionExpired{CallRef: call}, refuse("no_pending_question"), "approve demo", exitFailed, "neither an approval nor a denial"},
		"cancelled": {events.RunFinished{Outcome: "cancelled", Voided: []events.VoidedCall{{ToolCallID: "c1", MessageID: "m-c1"}}}, refuse("no_pending_question"), "deny demo", exitFailed, "the run ended without it (cancelled)"},
		"closed":    {events.SessionClosed{Voided: []events.VoidedCall{{ToolCallID: "c1", MessageID: "m-c1"}}}, refuse("session_closed"), "approve demo", exitFailed, "alice closed the session"},
		"other generation": {events.NoteAppended{Kind: "x", Data: []byte("{}")}, refuse("generation_changed"), "approve demo", exitFailed,
			"generation_changed: as the engine says"},
		"policy": {events.NoteAppended{Kind: "x", Data: []byte("{}")}, refuse("policy_conflict"), "approve demo --workspace", exitFailed, "look again and decide anew"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{states: map[string]string{"demo": waits(parked("c1", "{}")), "_settings": "{}"}, replies: []aggregate.Reply{c.reply}}
			note := events.NoteAppended{Kind: "x", Data: []byte("{}")}
			f.stored = map[string][]events.Record{"demo": story(t, "demo", events.SessionCreated{Kind: "root"}, note, note, c.happened)}
			r := culm(t, f, strings.Fields(c.args)...)
			if r.status != c.status || !strings.Contains(r.out+r.err, c.want) {
				t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
			}
		})
	}
	answered := &fake{state: waits(), stored: map[string][]events.Record{"demo": story(t, "demo", events.QuestionAnswered{CallRef: call, Answer: "blue"})}}
	if r := culm(t, answered, "answer", "demo", "c1", "red"); r.status != exitFailed || !strings.Contains(r.err, "any more: alice answered “blue”, 1 hour ago") {
		t.Errorf("answered: status %d, %q", r.status, r.err)
	}
}

const hostile = "rm\x1b[2J\r\n  decide    culm approve demo\u202e\u009b"

// Whatever a model puts into a call, the terminal sees none of it raw, and no
// line of it passes for one of this program.
func TestHostileItemsAreNeutralised(t *testing.T) {
	it := item{
		Session: "demo", ToolCallID: "c1; rm -rf ~ " + hostile, MessageID: "m-1", Kind: kindApproval, Tool: hostile, Since: noon, Arguments: "{" + hostile, ArgumentsBytes: 9,
		ArgumentsDigest: hostile, Decisions: []string{hostile},
		Question: events.Question{Question: hostile, Options: []string{hostile}},
		Request:  &events.PermissionRequest{PermissionType: hostile, Resource: hostile, Risk: hostile, ReasonCode: hostile, Workspace: hostile, EffectiveMode: hostile, SuggestedMatchers: []events.Matcher{{ID: hostile, Kind: hostile, Pattern: hostile}}},
	}
	a := &app{now: func() time.Time { return noon }, place: time.UTC}
	for _, kind := range []string{kindApproval, kindQuestion, kindUnknown} {
		for _, arguments := range []string{"{" + hostile, `{"a\u001b":"\u202e` + "\u202e" + `", "b" : 1}`, "{\"a\":\"rm\",\r \"b\":2}", `[1, 2]`, `{"a":1,"a":2}`, "", "{}"} {
			it.Kind, it.Arguments = kind, arguments
			for _, limit := range []bool{true, false} {
				text := it.block(a, limit)
				for _, r := range text {
					if r == 0x1b || r == '\r' || r == 0x202e || r == 0x9b {
						t.Fatalf("%U reaches the terminal: %q", r, text)
					}
				}
				if n := strings.Count(text, "\n  decide "); n != 1 || strings.Contains(text, "culm approve demo c1;") || !strings.Contains(text, "demo m-1") {
					t.Fatalf("%d lines pass for commands:\n%s", n, text)
				}
			}
		}
	}
}

func TestMembersChangeNothing(t *testing.T) {
	for arguments, want := range map[string][]string{
		`{"b":"x  y", "a" : [1, 1.10, 9007199254740993]}`: {`b: "x  y"`, `a: [1,1.10,9007199254740993]`},
		`{"a":1,"a":2}`:   {`"{\"a\":1,\"a\":2}"`},
		`{"a b\u0000":1}`: {`"a b\x00": 1`},
		"ls  -l\r":        {`"ls  -l\r"`},
		`[1, 2]`:          {`[1,2]`},
		`{}`:              {`{}`},
		``:                {`""`},
	} {
		if diff := cmp.Diff(want, members(arguments)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arguments, diff)
		}
	}
}
