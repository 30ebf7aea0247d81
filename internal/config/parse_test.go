package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate/policy"
	"culm/aggregate/routing"
	"culm/events"
	"culm/internal/config"
)

func mustParse(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse_TheExampleHoldsEveryKey(t *testing.T) {
	t.Parallel()
	f, err := config.Load("../../examples/engine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	demo := &events.Model{Provider: "demo", Model: "drafts"}
	want := &config.File{
		Settings: map[string]string{
			"listen": "127.0.0.1:4222", "data": "./data", "sync": "group", "prefix": "agent", "lease": "15s", "replicas": "1", "layout": "per-session",
			"no-runner": "false", "no-projector": "false", "http": "127.0.0.1:8280", "sessions": "64", "log-level": "info",
			"http-hosts": "", "http-tokens": "", "http-actor": "alice",
		},
		Rules: config.Rules{
			Providers: []config.Provider{
				{ID: "demo", Type: "recorded", Enabled: true, Default: true, File: "examples/three_drafts.jsonl", Pace: 20 * time.Millisecond},
				{ID: "work", Type: "openai", BaseURL: "https://api.openai.com/v1", APIKeyEnv: "OPENAI_API_KEY", Models: []string{"gpt-5", "gpt-5-mini"}, ReasoningEffort: "medium"},
			},
			Defaults: routing.Defaults{Chat: demo, Fast: demo, Background: demo, Summarization: demo},
			Permissions: policy.Config{
				Mode: "default", RiskThreshold: "low", SessionLifetime: 30 * time.Minute, ProtectedPaths: []string{"/etc"},
				AlwaysAsk: []policy.AskRule{
					{PermissionType: "git_write", Matcher: events.Matcher{Kind: "command_prefix", Pattern: "git push"}},
					{PermissionType: "http_request", Matcher: events.Matcher{Kind: "http_origin", Pattern: "https://billing.example"}},
				},
				HardDangerous: []policy.DangerPattern{
					{ID: "hard_dangerous:0", Pattern: `terraform\s+destroy`},
					{ID: "drop-table", PermissionType: "execute_command", Pattern: `(?i)\bdrop\s+table\b`, Why: "drops a table"},
				},
			},
			Gold: []byte(`{"auto_answer_enabled":false,"auto_continue_enabled":false,"enabled":false,"evaluation_prompt":"Is the goal reached?",` +
				`"goal":"Three drafts, each better than the last.","max_auto_continuations":3,"max_output_tokens":1024,"minimum_confidence":"medium","model_name":"drafts"}`),
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range config.SettingNames() {
		if _, ok := f.Settings[name]; !ok && name != "nats" {
			t.Errorf("the example does not show %s", name)
		}
	}
	if g := routing.ResolveGold(nil, f.Gold, nil); g.Source != routing.SourceConfig {
		t.Errorf("the rules cannot read the gold of the file: %+v", g)
	}
}

func TestParse_WhatIsLeftOutIsNotThere(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "a comment": "# nothing\n", "a document marker": "---\n", "empty sections": "providers:\ndefaults:\npermissions: ~\ngold: null\nlease:\n",
		"empty mapping": "{}", "CR LF": "lease:\r\n# x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&config.File{Settings: map[string]string{}}, mustParse(t, text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse_SpellingsOfYAML(t *testing.T) {
	t.Parallel()
	plain := mustParse(t, "http: off\nproviders:\n  - id: a\n    type: openai\n    models:\n      - m\n      - n\n")
	flow := mustParse(t, "{providers: [{models: [m, 'n'], type: \"openai\", id: a, enabled: true}], http: \"off\"} # all on one line\n")
	if diff := cmp.Diff(plain, flow); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gold := mustParse(t, "gold:\n  goal: |\n    one\n    two\n")
	if want := `{"goal":"one\ntwo\n"}`; string(gold.Gold) != want {
		t.Errorf("%s, want %s", gold.Gold, want)
	}
}

// TestParse_EveryErrorNamesLineAndKey has one file for each thing that can be
// wrong; want is "line key: part of the problem" of each error in order.
func TestParse_EveryErrorNamesLineAndKey(t *testing.T) {
	t.Parallel()
	provider := func(more string) string { return "providers:\n  - id: a\n    type: openai\n" + more }
	recorded := func(more string) string { return "providers:\n  - id: a\n    type: recorded\n    file: f\n" + more }
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "lease: 15s\nlaese: 15s\n", []string{"2 laese: not known here; known are"}},
		{"unknown key inside", provider("    modles: [m]\n"), []string{"4 providers[0].modles: not known here"}},
		{"flag that is no setting", "config: x\nversion: true\n", []string{"1 config: not known", "2 version: not known"}},
		{"key twice", "lease: 15s\n\nlease: 16s\n", []string{`3 : already defined`}},
		{"key of a number", "1: x\n", []string{"1 : key that is no text"}},
		{"root is a list", "- a\n", []string{"1 : is a list, not a mapping"}},
		{"root is a text", "a\n", []string{"1 : is a text, not a mapping"}},
		{"not closed", "http: off\nproviders: [\n", []string{"2 : cannot be read as YAML"}},
		{"indentation", "lease: 15s\n  data: x\n", []string{"1 : cannot be read as YAML"}},
		{"second document", "lease: 15s\n---\nhttp: off\n", []string{"3 : second document"}},
		{"anchor", "data: &x y\nhttp: *x\n", []string{"1 : an anchor"}},
		{"alias", "http: off\ndata: *x\n", []string{"2 : an alias"}},
		{"tag", "\ndata: !!str 1\n", []string{"2 : a tag"}},
		{"merge", "<<: {a: 1}\n", []string{"1 : a merge key"}},
		{"explicit key", "? a\n: b\n", []string{"1 : an explicit key"}},
		{"too deep in brackets", "providers: " + strings.Repeat("[", 40) + "\n", []string{"1 : deeper than 8"}},
		{"too deep in dashes", "providers:\n" + strings.Repeat("- ", 40) + "a\n", []string{"2 : deeper than 8"}},
		{"NUL", "lease: 15s\ndata: \"\x00\"\n", []string{"2 : NUL"}},
		{"no UTF-8", "lease: 15s\n\ndata: \xff\n", []string{"3 : no UTF-8"}},
		{"long line", "lease: 15s\ndata: " + strings.Repeat("x ", 10_000) + "\n", []string{"2 : a line of more than"}},
		{"long file", strings.Repeat("# comment\n", 30_000), []string{"0 : longer than 131072 bytes"}},

		{"lease without unit", "lease: 15\n", []string{"1 lease: no duration"}},
		{"lease too short", "lease: 10ms\n", []string{"1 lease: is 10ms, allowed are 1s to"}},
		{"replicas", "replicas: 6\n", []string{"1 replicas: out of bounds: 1 to 5"}},
		{"replicas as text", "replicas: \"3\"\n", []string{"1 replicas: is a text, not a whole number"}},
		{"replicas below", "replicas: -1\n", []string{"1 replicas: out of bounds"}},
		{"replicas in part", "replicas: 1.5\n", []string{"1 replicas: is a number, not a whole number"}},
		{"sessions", "sessions: 0\n", []string{"1 sessions: out of bounds"}},
		{"flag", "no-runner: yes\n", []string{"1 no-runner: is a text, not true or false"}},
		{"listen", "listen: 4222\n", []string{"1 listen: is a number, not a text: put it in quotes"}},
		{"listen without port", "listen: localhost\n", []string{"1 listen: no host:port"}},
		{"http", "http: on\n", []string{"1 http: neither"}},
		{"sync", "sync: never\n", []string{"1 sync: none of group, always, none"}},
		{"layout", "layout: flat\n", []string{"1 layout: none of"}},
		{"prefix", "prefix: a..b\n", []string{"1 prefix: no prefix"}},
		{"prefix reserved", "prefix: a._b\n", []string{"1 prefix: no prefix"}},
		{"log level", "log-level: loud\n", []string{"1 log-level: none of"}},
		{"data", "data: ''\n", []string{"1 data: empty"}},
		{"data is a list", "data: [x]\n", []string{"1 data: is a list, not a text"}},
		{"data is long", "data: '" + strings.Repeat("x/", 2100) + "'\n", []string{"1 data: is 4200 bytes long"}},

		{"empty list", "providers: []\n", []string{"1 providers: empty list"}},
		{"list is a mapping", "providers:\n  a: b\n", []string{"2 providers: is a mapping, not a list"}},
		{"entry is empty", "providers:\n  - id: a\n    type: openai\n  -\n", []string{"4 providers[1]: is empty"}},
		{"entry is a text", "providers:\n  - a\n", []string{"2 providers[0]: is a text, not a mapping"}},
		{"no id", "providers:\n  - type: openai\n", []string{"2 providers[0].id: no id"}},
		{"no type", "http: off\nproviders:\n\n  - id: a\n", []string{`4 providers[0].type: "" is none of`}},
		{"type", "providers:\n  - id: a\n    enabled: true\n    type: opnai\n", []string{`4 providers[0].type: "opnai" is none of anthropic`}},
		{"id twice", provider("  - type: gemini\n    id: a\n"), []string{"5 providers[1].id: earlier instance"}},
		{"id of a type", "providers:\n  - {id: gemini, type: openai}\n", []string{"2 providers[0].id: name of a provider type"}},
		{"two defaults", provider("    default: true\n  - id: b\n    type: openai\n    default: true\n"), []string{"7 providers[1].default: mark one"}},
		{"model is a number", provider("    models:\n      - m\n      - 4.5\n"), []string{"6 providers[0].models[1]: put it in quotes"}},
		{"model twice", provider("    models: [m, m]\n"), []string{"4 providers[0].models[1]: listed twice"}},
		{"effort", provider("    reasoning_effort: hihg\n"), []string{"4 providers[0].reasoning_effort: none of minimal"}},
		{"file of a client", provider("    file: x\n    pace: 1ms\n"), []string{"4 providers[0].file: belongs to instances of type recorded", "5 providers[0].pace: belongs to"}},
		{"recording without file", "providers:\n  - id: a\n    type: recorded\n", []string{"2 providers[0].file: missing"}},
		{"recording with address", recorded("    base_url: http://x\n    api_key_env: X\n"), []string{"5 providers[0].base_url: does not go", "6 providers[0].api_key_env: does not go"}},
		{"pace", recorded("    pace: 2m\n"), []string{"5 providers[0].pace: is 2m0s, allowed are 0s to 1m0s"}},
		{"address", provider("    base_url: api.example/v1\n"), []string{"4 providers[0].base_url: no URL"}},
		{"address of a file", provider("    base_url: file:///etc\n"), []string{"4 providers[0].base_url: no URL"}},
		{"address with query", provider("    base_url: https://x/?v=1\n"), []string{"4 providers[0].base_url: has a query"}},
		{"variable", provider("    api_key_env: MY KEY\n"), []string{"4 providers[0].api_key_env: no name of an environment variable"}},

		{"role unknown", "defaults:\n  chatt: {}\n", []string{"2 defaults.chatt: not known here; known are background, chat, fast, summarization"}},
		{"role without list", "defaults:\n  chat: {provider: a, model: m}\n", []string{"2 defaults.chat: none are listed"}},
		{"role without model", provider("defaults:\n  fast:\n    provider: a\n"), []string{"5 defaults.fast.model: names no model"}},
		{"role of nobody", provider("defaults:\n  fast:\n    model: m\n    provider: b\n"), []string{`7 defaults.fast.provider: there is no provider "b"`}},
		{"role of another's model", provider("    models: [m]\ndefaults:\n  fast: {provider: openai, model: n}\n"), []string{"6 defaults.fast.model: does not list the model"}},

		{"mode", "permissions:\n  mode: yolo\n", []string{"2 permissions.mode: "}},
		{"threshold", "permissions:\n  mode: auto\n  risk_threshold: none\n", []string{"3 permissions.risk_threshold: "}},
		{"ask type", "permissions:\n  always_ask:\n    - permission_type: x\n      matcher: {kind: exact_resource, pattern: y}\n", []string{"3 permissions.always_ask[0].permission_type: "}},
		{"ask kind", "permissions:\n  always_ask:\n    - permission_type: git_write\n      matcher:\n        kind: path_subtree\n        pattern: /y\n", []string{"5 permissions.always_ask[0].matcher.kind: "}},
		{"ask without matcher", "permissions:\n  always_ask:\n    - permission_type: git_write\n", []string{"3 permissions.always_ask[0].matcher.kind: "}},
		{"danger is no pattern", "permissions:\n  hard_dangerous:\n    - ok\n    - '('\n", []string{"4 permissions.hard_dangerous[1].pattern: "}},
		{"danger twice", "permissions:\n  hard_dangerous:\n    - {id: d, pattern: x}\n    - {id: d, pattern: y}\n", []string{"4 permissions.hard_dangerous[1].id: "}},
		{"protected path", "permissions:\n  protected_paths: [relative]\n", []string{"2 permissions.protected_paths[0]: "}},
		{"question lifetime", "permissions:\n  mode: auto\n  question_lifetime: 500ms\n", []string{"3 permissions.question_lifetime: is 500ms, allowed are"}},
		{"question lifetime, negative", "permissions:\n  question_lifetime: -1s\n", []string{"2 permissions.question_lifetime: is -1s, allowed are"}},
		{"question lifetime, no duration", "permissions:\n  question_lifetime: never\n", []string{"2 permissions.question_lifetime: no duration"}},
		{"lifetime", "permissions:\n  session_lifetime: 0s\n", []string{"2 permissions.session_lifetime: is 0s, allowed are"}},

		{"gold field", "gold:\n  enabeld: true\n", []string{"2 gold.enabeld: not known here"}},
		{"gold kind", "gold:\n  enabled: 1\n  goal: [x]\n", []string{"2 gold.enabled: not true or false", "3 gold.goal: is a list"}},
		{"gold number", "gold:\n  max_output_tokens: 3000000000\n", []string{"2 gold.max_output_tokens: out of bounds"}},
		{"gold confidence", "gold:\n  minimum_confidence: some\n", []string{"2 gold.minimum_confidence: none of low, medium, high"}},

		{"several at once", "lease: x\nhttp: y\nproviders: z\n", []string{"1 lease: ", "2 http: ", "3 providers: "}},
	} {
		t.Run(c.name, func(t *testing.T) { checkErrors(t, c.text, c.want) })
	}
}

func checkErrors(t *testing.T, text string, want []string) {
	t.Helper()
	f, err := config.Parse("c.yaml", []byte(text))
	es, ok := errors.AsType[config.Errors](err)
	if !ok || f != nil {
		t.Fatalf("%+v, %v: want errors", f, err)
	}
	if len(es) != len(want) {
		t.Fatalf("%d errors, want %d:\n%v", len(es), len(want), err)
	}
	for i, e := range es {
		place, part, _ := strings.Cut(want[i], ": ")
		if got := fmt.Sprintf("%d %s", e.Line, e.Key); got != place || !strings.Contains(e.Problem, part) || e.File != "c.yaml" {
			t.Errorf("%v; want %s", e, want[i])
		}
		if !strings.HasPrefix(e.Error(), "c.yaml") || len(e.Error()) > 1000 {
			t.Errorf("error is spelled %s", e)
		}
	}
}

func TestErrors_AreBoundedAndCanBeFound(t *testing.T) {
	t.Parallel()
	text := "providers:\n" + strings.Repeat("  - {id: 'a b', type: x}\n", 30)
	_, err := config.Parse("c.yaml", []byte(text))
	if lines := strings.Count(err.Error(), "\n"); lines != 10 || !strings.HasSuffix(err.Error(), "and 79 more") {
		t.Errorf("%v", err)
	}
	if e, ok := errors.AsType[*config.Error](err); !ok || e.Line != 2 {
		t.Errorf("%v is not found", e)
	}
}

func TestLoad_NamesTheFile(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"testdata/nowhere.yaml", t.TempDir()} {
		if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Load(%s): %v", path, err)
		}
	}
}

func TestRules_CheckJudgesWhatAProgramBuilds(t *testing.T) {
	t.Parallel()
	good := config.Rules{Providers: []config.Provider{{ID: "a", Type: "recorded", File: "f", Enabled: true}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := config.Rules{Providers: []config.Provider{{ID: "a", Type: "recorded"}}, Permissions: policy.Config{Mode: "x"}}
	if es, ok := errors.AsType[config.Errors](bad.Check()); !ok || len(es) != 2 || es[0].Key != "providers[0].file" {
		t.Errorf("%v", es)
	}
}
