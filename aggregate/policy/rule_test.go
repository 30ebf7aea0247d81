package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/events"
)

func newPolicy(t *testing.T, c Config) Policy {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rule(id, effect string) Rule {
	return Rule{RuleID: id, Effect: effect, Scope: ScopeGlobal, PermissionType: WriteFile, Matcher: subtree("/work")}
}

func ids(p Policy) string {
	var out []string
	for _, r := range p.Rules() {
		out = append(out, r.RuleID)
	}
	return strings.Join(out, " ")
}

func TestPolicy_FoldsItsEvents(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, Config{Mode: ModeDontAsk})
	if p.Mode() != ModeDontAsk || p.Revision() != 0 {
		t.Fatalf("%s at %d", p.Mode(), p.Revision())
	}
	local := rule("w", EffectAllow)
	local.Scope, local.Workspace = ScopeWorkspace, "/work"
	history := []Policy{p}
	for i, e := range []events.Data{
		rule("b", EffectDeny), rule("a", EffectAllow), local,
		events.PolicyModeChanged{Mode: ModeAuto},
		rule("b", EffectAllow),
		events.PolicyRuleRemoved{RuleID: "a"},
		events.PolicyRuleRemoved{RuleID: "none"},
		events.NoteAppended{},
	} {
		p = p.Evolve(e, uint64(i+1))
		history = append(history, p)
	}
	for i, want := range []string{"", "b", "a b", "w a b", "w a b", "w a b", "w b", "w b", "w b"} {
		if got := ids(history[i]); got != want || history[i].Revision() != uint64(i) {
			t.Errorf("after %d events: %q at %d, want %q", i, got, history[i].Revision(), want)
		}
	}
	if r, ok := p.Rule("b"); !ok || r.Effect != EffectAllow || p.Mode() != ModeAuto || history[3].Mode() != ModeDontAsk {
		t.Errorf("%+v, mode %s", r, p.Mode())
	}
	if _, ok := p.Rule("a"); ok {
		t.Error("a is removed")
	}
}

func TestPolicy_IsAValue(t *testing.T) {
	t.Parallel()
	base := newPolicy(t, Config{}).Evolve(rule("m", EffectDeny), 1)
	before := base.Rules()
	x, y := base.Evolve(rule("a", EffectDeny), 2), base.Evolve(rule("z", EffectAllow), 2)
	x.Rules()[0].Effect = "changed"
	if diff := cmp.Diff(before, base.Rules()); diff != "" || ids(x) != "a m" || ids(y) != "m z" || x.Rules()[0].Effect != EffectDeny {
		t.Errorf("%s: %s; %s\n%s", ids(base), ids(x), ids(y), diff)
	}
	c := Config{ProtectedPaths: []string{"/work/data"}}
	p := newPolicy(t, c)
	c.ProtectedPaths[0] = "/other"
	if v := Evaluate(Input{Policy: p, Request: Request{Type: WriteFile, Resource: "/work/data/x"}}); v.Step != StepPlatform {
		t.Errorf("%+v: the configuration was shared", v)
	}
}

func TestCheckRule_NamesTheField(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*Rule){
		"":                  func(*Rule) {},
		"rule_id":           func(r *Rule) { r.RuleID = "" },
		"rule_id ":          func(r *Rule) { r.RuleID = "a b" },
		"rule_id  ":         func(r *Rule) { r.RuleID = strings.Repeat("a", 129) },
		"effect":            func(r *Rule) { r.Effect = "forbid" },
		"scope":             func(r *Rule) { r.Scope = "session" },
		"workspace":         func(r *Rule) { r.Workspace = "/w" },
		"workspace ":        func(r *Rule) { r.Scope = ScopeWorkspace },
		"workspace  ":       func(r *Rule) { r.Scope, r.Workspace = ScopeWorkspace, " " },
		"workspace   ":      func(r *Rule) { r.Scope, r.Workspace = ScopeWorkspace, "a\x00" },
		"workspace    ":     func(r *Rule) { r.Scope, r.Workspace = ScopeWorkspace, strings.Repeat("a", 5000) },
		"permission_type":   func(r *Rule) { r.PermissionType = "x" },
		"matcher.kind":      func(r *Rule) { r.Matcher.Kind = CommandPrefix },
		"matcher.pattern":   func(r *Rule) { r.Matcher.Pattern = "work" },
		"matcher.pattern  ": func(r *Rule) { r.Matcher.Pattern = "" },
	} {
		r := rule("r1", EffectDeny)
		change(&r)
		err := CheckRule(r)
		var f *FieldError
		if field == "" {
			if err != nil {
				t.Error(err)
			}
		} else if !errors.As(err, &f) || f.Field != strings.TrimSpace(field) {
			t.Errorf("%+v: %v, want field %s", r, err, field)
		}
	}
	r := rule("r1", EffectAlwaysAsk)
	r.Scope, r.Workspace = ScopeWorkspace, "my workspace"
	if err := CheckRule(r); err != nil {
		t.Error(err)
	}
}

func TestPolicyCheckRule_KnowsWhatIsThere(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, Config{}).Evolve(rule("r1", EffectDeny), 1)
	same := rule("r1", EffectDeny)
	same.Matcher.ID = "label"
	if err := p.CheckRule(same); err != nil {
		t.Errorf("the same rule again: %v", err)
	}
	if err := p.CheckRule(rule("r1", EffectAllow)); err == nil {
		t.Error("another rule under a taken id")
	}
	if err := p.CheckRule(Rule{RuleID: "r2"}); err == nil {
		t.Error("a rule that is none")
	}
	for i := range MaxRules - 1 {
		p = p.Evolve(rule(fmt.Sprintf("x%d", i), EffectAllow), uint64(i+2))
	}
	if err := p.CheckRule(rule("more", EffectAllow)); err == nil || p.CheckRule(same) != nil {
		t.Errorf("rule %d: %v", MaxRules+1, err)
	}
}

func TestRules_ThatAreNotUnderstoodRestrictOnly(t *testing.T) {
	t.Parallel()
	for _, m := range []events.Matcher{{Kind: "from_the_future", Pattern: "x"}, {Kind: PathSubtree, Pattern: "no path"}, {Kind: CommandPrefix, Pattern: "x"}, {}} {
		for effect, want := range map[string]string{EffectAllow: StepRisk, EffectDeny: StepDenyRule, EffectAlwaysAsk: StepAlwaysAsk} {
			r := rule("r", effect)
			r.Matcher = m
			v := Evaluate(Input{Policy: newPolicy(t, Config{}).Evolve(r, 1), Request: Request{Type: WriteFile, Resource: "/a"}})
			if v.Step != want {
				t.Errorf("%s %+v: %s", effect, m, v.Step)
			}
		}
	}
}

func TestRules_OfAWorkspaceNeedItOnBothSides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, request string
		want          bool
	}{
		{"/w", "/w", true},
		{"/w", "/w/", true},
		{" /w ", "/w", true},
		{"name", "name", true},
		{"/w", "", false},
		{"", "/w", false},
		{"", "", false},
		{" ", " ", false},
		{"/w", "/W", false},
		{"/w", "/w/x", false},
	} {
		r := rule("r", EffectAllow)
		r.Scope, r.Workspace = ScopeWorkspace, c.rule
		v := Evaluate(Input{Policy: newPolicy(t, Config{}).Evolve(r, 1), Request: Request{Type: WriteFile, Resource: "/work/a", Workspace: c.request}})
		if got := v.Step == StepAllowRule; got != c.want {
			t.Errorf("%q and %q: %s", c.rule, c.request, v.Step)
		}
	}
}

func TestConfigValidate_NamesTheField(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxRules+1)
	for want, c := range map[string]Config{
		"mode":                                           {Mode: "x"},
		"risk_threshold":                                 {RiskThreshold: "critical"},
		"session_lifetime":                               {SessionLifetime: -1},
		"always_ask[1].matcher.pattern":                  {AlwaysAsk: []AskRule{{WriteFile, subtree("/a")}, {WriteFile, subtree("a")}}},
		"always_ask[0].permission_type":                  {AlwaysAsk: []AskRule{{"x", subtree("/a")}}},
		"hard_dangerous[0].id":                           {HardDangerous: []DangerPattern{{Pattern: "x"}}},
		"hard_dangerous[1].id":                           {HardDangerous: []DangerPattern{{ID: "a", Pattern: "x"}, {ID: "a", Pattern: "y"}}},
		"hard_dangerous[0].id ":                          {HardDangerous: []DangerPattern{{ID: "danger:rm_root", Pattern: "x"}}},
		"hard_dangerous[0].permission_type":              {HardDangerous: []DangerPattern{{ID: "a", PermissionType: "x", Pattern: "x"}}},
		"hard_dangerous[0].pattern":                      {HardDangerous: []DangerPattern{{ID: "a", Pattern: "("}}},
		"hard_dangerous[0].pattern ":                     {HardDangerous: []DangerPattern{{ID: "a"}}},
		"protected_paths[0]":                             {ProtectedPaths: []string{"data"}},
		"always_ask, hard_dangerous and protected_paths": {ProtectedPaths: many},
	} {
		_, err := New(c)
		var f *FieldError
		if !errors.As(err, &f) || f.Field != strings.TrimSpace(want) || f.Problem == "" || !strings.Contains(err.Error(), f.Field) {
			t.Errorf("%v, want field %s", err, want)
		}
	}
	full := Config{
		Mode: ModeAcceptEdits, RiskThreshold: RiskMedium, ChecksOff: true, AlwaysAsk: []AskRule{{HTTPRequest, origin("https://a.example")}},
		HardDangerous: []DangerPattern{{"drop", ExecuteCommand, `(?i)\bdrop table\b`, "drops a table"}}, ProtectedPaths: []string{"/srv/data/"}, SessionLifetime: time.Hour,
	}
	if err := full.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfiguredDangers(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, Config{Mode: ModeBypass, HardDangerous: []DangerPattern{
		{"drop", ExecuteCommand, `(?i)\bdrop table\b`, "drops a table"}, {"prod", "", `prod`, ""},
	}})
	for _, c := range []struct{ permissionType, resource, rule string }{
		{ExecuteCommand, "psql -c 'DROP   TABLE x'", "drop"},
		{WriteFile, "/drop table", ""},
		{WriteFile, "/etc/prod.conf", "prod"},
		{ExecuteCommand, "rm -rf /; drop table", "danger:rm_root"}, // the built-in ones come first
		{ExecuteCommand, "ls", ""},
	} {
		v := Evaluate(Input{Policy: p, Request: Request{Type: c.permissionType, Resource: c.resource}})
		if v.RuleID != c.rule || (c.rule != "") != (v.Decision == Ask && v.Risk == RiskHigh) {
			t.Errorf("%s of %q: %+v", c.permissionType, c.resource, v)
		}
	}
}

func TestSessionExpiry(t *testing.T) {
	t.Parallel()
	if got := newPolicy(t, Config{}).SessionExpiry(noon); got != noon.Add(30*time.Minute) {
		t.Error(got)
	}
	if got := newPolicy(t, Config{SessionLifetime: time.Hour}).SessionExpiry(noon); got != noon.Add(time.Hour) {
		t.Error(got)
	}
}
