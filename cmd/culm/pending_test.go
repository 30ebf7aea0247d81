package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/events"
)

// several are three sessions in which something waits, one in which nothing
// does, and the policy.
func several(t *testing.T) *fake {
	t.Helper()
	created := events.SessionCreated{Kind: "root"}
	f := &fake{states: map[string]string{
		"a": waits(), "b": waits(asksPlan(`"Approve the plan","Stay in plan mode"`)), "c": waits(parked("c1", writeArguments)), "d": waits(lost()),
	}, stored: map[string][]events.Record{}}
	for name := range f.states {
		f.stored[name] = story(t, name, created, events.ToolStarted{CallRef: events.CallRef{ToolCallID: "u", MessageID: "m-u", Name: "Bash"}})
	}
	f.stored["gone"] = story(t, "gone", created)
	f.stored["_settings"] = story(t, "_settings", events.PolicyModeChanged{Mode: "auto"})
	return f
}

func TestPending(t *testing.T) {
	want := `c  approval of Write, 1 hour ago
  call      c1
  wants     write_file /src/a.go
  because   risk threshold, medium risk, default mode
  workspace /src
  with      path: "/src/a.go"
            text: "x\n  y"
            version: 9007199254740993
  digest    ` + events.Hash([]byte(writeArguments)) + `, 63 bytes
  allowed   allow_once, allow_session, allow_workspace, allow_global, deny_once, deny_session
  matchers  exact_resource         /src/a.go
            path_subtree           /src
  decide    culm approve c c1  or  culm deny c c1

d  unknown outcome of Bash, 59 minutes ago
  call      u
  asks      The outcome of Bash is not known. Run it again, or supply the outcome?
  with      {}
  digest    ` + events.Hash([]byte("{}")) + `, 2 bytes
  allowed   allow_once, deny_once
  decide    culm resolve d u --success|--failed "…"  or  culm approve d u (runs it again)  or  culm deny d u

b  question of ExitPlanMode, 30 minutes ago
  call      p
  asks      Leave?
          | Now?
  with      {}
  digest    ` + events.Hash([]byte("{}")) + `, 2 bytes
  answers   “Approve the plan” / “Stay in plan mode”
  decide    culm approve b p  or  culm deny b p
`
	r := culm(t, several(t), "pending")
	if diff := cmp.Diff(want, r.out); diff != "" || r.status != exitOK || r.err != "" {
		t.Errorf("status %d, err %q (-want +got):\n%s", r.status, r.err, diff)
	}
	if r := culm(t, several(t), "pending", "a"); r.out != "nothing waits for a person\n" {
		t.Errorf("nothing: %q", r.out)
	}
	if r := culm(t, several(t), "pending", "nowhere"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") {
		t.Errorf("no session: status %d, %q", r.status, r.err)
	}
}

func TestPendingJSON(t *testing.T) {
	r := culm(t, several(t), "pending", "--json")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	if len(lines) != 3 || r.status != exitOK {
		t.Fatalf("status %d, %q", r.status, r.out)
	}
	for i, want := range []string{
		`{"session":"c","tool_call_id":"c1","message_id":"m-c1","kind":"approval","tool":"Write","generation":"g-c1","since":"2026-11-30T12:00:00Z","sequence":3,"arguments":"{\"path\":`,
		`{"session":"d","tool_call_id":"u","message_id":"m-u","kind":"unknown","tool":"Bash","generation":"g-u","since":"2026-11-30T12:00:01Z","sequence":2,`,
		`{"session":"b","tool_call_id":"p","message_id":"m-p","kind":"question","tool":"ExitPlanMode","since":"2026-11-30T12:30:00Z",`,
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	for _, want := range []string{`"arguments_bytes":63`, `"arguments_digest":"`, `"allowed_decisions":["allow_once",`, `"request":{`, `"suggested_matchers":[{`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s is missing in %s", want, lines[0])
		}
	}
	if r := culm(t, several(t), "pending", "a", "--json"); r.out != "" || r.status != exitOK {
		t.Errorf("nothing: status %d, %q", r.status, r.out)
	}
}

// Arguments that are too long for a list are read whole before a decision.
func TestLongArgumentsAreShownWholeBeforeADecision(t *testing.T) {
	long := `{"text":"` + strings.Repeat("é", 500) + `THE END"}`
	item := strings.Replace(parked("c1", long), quote(long), quote(long[:101]), 1)
	transcript := func(arguments string) string {
		return fmt.Sprintf(`{"pending":[%s],"messages":[{"role":"assistant","tool_calls":[{"id":"c1","name":"Write","arguments":%s}]}]}`, item, quote(arguments))
	}
	f := &fake{state: transcript(long), replies: []aggregate.Reply{{OK: true, Event: &aggregate.EventRef{Sequence: 10}}}}
	if r := culmAt(t, f, true, "y\n", "approve", "demo"); r.status != exitOK || !strings.Contains(r.err, "THE END") || len(f.sent) != 1 {
		t.Errorf("status %d, err %q", r.status, r.err)
	}
	if r := culm(t, f, "pending", "demo"); !strings.Contains(r.out, "… the first 101 of 1,018 bytes") {
		t.Errorf("the list does not say that it cuts: %s", r.out)
	}
	if r := culm(t, f, "pending", "demo", "--full"); !strings.Contains(r.out, "THE END") {
		t.Errorf("--full cuts: %s", r.out)
	}
	f = &fake{state: transcript(strings.Replace(long, "END", "EVE", 1))}
	if r := culm(t, f, "approve", "demo"); r.status != exitFailed || len(f.sent) > 0 || !strings.Contains(r.err, "not those of its digest") {
		t.Errorf("other bytes: status %d, err %q", r.status, r.err)
	}
}

func TestPolicyCommands(t *testing.T) {
	rule := events.PolicyRuleAdded{RuleID: "no-etc", Effect: "deny", Scope: "global", PermissionType: "write_file", Matcher: events.Matcher{Kind: "path_subtree", Pattern: "/etc"}}
	local := events.PolicyRuleAdded{RuleID: "docs", Effect: "allow", Scope: "workspace", Workspace: "/w", PermissionType: "write_file", Matcher: events.Matcher{Kind: "path_subtree", Pattern: "/w/docs"}}
	f := &fake{stored: map[string][]events.Record{"_settings": story(t, "_settings", rule, local, events.PolicyModeChanged{Mode: "accept_edits"}, events.PolicyModeChanged{Mode: "default"})}}
	f.states = map[string]string{"s": `{"session":{"mode":"default","workspace":"/w","plan":null},"grants":[{"id":"g7","effect":"allow","tool":"Bash","permission_type":"execute_command","matcher":{"kind":"command_prefix","pattern":"go test"},"expires_at":"2026-11-30T14:00:00Z"}]}`}
	for _, c := range []struct{ args, want string }{
		{"policy list", "docs    allow   write_file  path_subtree  /w/docs  /w\nno-etc  deny    write_file  path_subtree  /etc     everywhere\n"},
		{"policy list --json", `{"mode":"default","revision":4,"rules":[{"rule_id":"docs",`},
		{"policy test Write /etc/hosts --mode bypass", `Denied: rule "no-etc" (write_file for path subtree "/etc", everywhere) denies it.`},
		{"policy test Write /w/docs/a --workspace /w", `Allowed: rule "docs"`},
		{"policy test Write /w/docs/a", "A person is asked"},
		{"policy test Bash --session s go", "A person is asked"},
		{`policy test Bash --session s --arguments {"command":"go\u0020test\u0020./..."}`, "Allowed: a person allowed execute_command"},
		{"policy test Write /w/docs/a --session s --plan", "Denied: plan mode"},
		{"policy test Write /w/docs/a --session s --read-only", "Denied: the session is read-only"},
		{"policy test Bash ls --no-human-approver", "Denied: nobody is there"},
		{"policy test Grep x", "Allowed: it only reads"},
		{"policy test Teleport x --type http_request --mode auto --json", `{"decision":"allow","step":"auto","why":"mode auto allows what no rule denies","permission_type":"http_request","resource":"x","risk":"medium","effective_mode":"auto","policy_revision":4}`},
	} {
		r := culm(t, f, strings.Fields(c.args)...)
		if r.status != exitOK || !strings.Contains(r.out, c.want) || len(f.sent) > 0 {
			t.Errorf("%s: status %d, %s%s", c.args, r.status, r.out, r.err)
		}
	}
	if r := culm(t, &fake{}, "policy", "list"); !strings.Contains(r.out, "mode default, revision 0") || !strings.Contains(r.out, "culm policy add") {
		t.Errorf("empty: %q", r.out)
	}
	f.replies = []aggregate.Reply{{OK: true, Result: []byte(`{"rule_id":"no-etc"}`)}}
	r := culm(t, f, "policy", "add", "deny", "write_file", "path_subtree", "/etc", "--rule-id", "no-etc")
	want := `{"effect":"deny","matcher":{"kind":"path_subtree","pattern":"/etc"},"permission_type":"write_file","rule_id":"no-etc","scope":"global"}`
	if r.status != exitOK || r.out != "rule no-etc is there already\n" || f.sent[0].body != want || f.sent[0].session != "_settings" {
		t.Errorf("add: status %d, %q %q, sent %v", r.status, r.out, r.err, f.sent)
	}
	if r := culm(t, f, "policy", "remove", "nix"); r.status != exitFailed || r.out != "" || !strings.HasPrefix(r.err, "culm: there is no rule nix;") {
		t.Errorf("remove: status %d, %q %q", r.status, r.out, r.err)
	}
	if r := culm(t, f, "policy", "remove", "nix", "--json"); r.status != exitFailed || !strings.Contains(r.out, `"ok":true`) {
		t.Errorf("remove with --json: status %d, %q %q", r.status, r.out, r.err)
	}
}
