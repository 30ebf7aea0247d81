package policy

import (
	"slices"
	"testing"

	"culm/events"
)

func TestSteps_StandInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	want := []string{
		"platform_hard_deny", "deny_rule", "session_deny", "read_only", "plan", "one_shot", "auto", "hard_dangerous", "always_ask",
		"session_grant", "allow_rule", "checks_off", "bypass", "dont_ask", "accept_edits", "below_threshold", "risk_threshold",
	}
	if got := Steps(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestEvaluate_ThresholdAgainstRisk(t *testing.T) {
	t.Parallel()
	for i, threshold := range []string{RiskLow, RiskMedium, RiskHigh} {
		p, err := New(Config{RiskThreshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		for j, permissionType := range []string{Read, HTTPRequest, BrowserInteraction} {
			want := Ask
			if j < i || permissionType == Read { // what only reads is never asked about
				want = Allow
			}
			v := Evaluate(Input{Policy: p, Request: Request{Type: permissionType, Resource: "x"}})
			if v.Decision != want || v.Risk != risks[j] {
				t.Errorf("threshold %s, %s: %s (%s)", threshold, permissionType, v.Decision, v.Risk)
			}
		}
	}
}

func TestEvaluate_TypesThatAreNotKnownAreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	v := Evaluate(Input{Request: Request{Type: "teleport", Resource: "x", Workspace: "/w"}})
	if v.Decision != Ask || v.Risk != RiskHigh || !slices.Equal(v.AllowedDecisions, []string{AllowOnce, DenyOnce}) || v.Matchers != nil {
		t.Errorf("%+v", v)
	}
}

func TestEvaluate_LeavesOutWhatTheCallerCannotDo(t *testing.T) {
	t.Parallel()
	in := Input{Request: Request{Type: WriteFile, Resource: "/work/p/a", Workspace: "/work/p"}, Supported: []string{AllowSession}}
	if v := Evaluate(in); !slices.Equal(v.AllowedDecisions, []string{AllowOnce, AllowSession, DenyOnce}) || len(v.Matchers) == 0 {
		t.Errorf("%+v", v)
	}
	in.Supported = []string{}
	if v := Evaluate(in); !slices.Equal(v.AllowedDecisions, []string{AllowOnce, DenyOnce}) || v.Matchers != nil {
		t.Errorf("%+v", v)
	}
}

func TestEvaluate_NamesWorkspaceRulesBeforeGlobalOnesAndThenByID(t *testing.T) {
	t.Parallel()
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Request: Request{Type: WriteFile, Resource: "/work/p/a", Workspace: "/work/p"}}
	add := func(id, scope string) {
		r := Rule{RuleID: id, Effect: EffectDeny, Scope: scope, PermissionType: WriteFile, Matcher: events.Matcher{Kind: PathSubtree, Pattern: "/work"}}
		if scope == ScopeWorkspace {
			r.Workspace = "/work/p/"
		}
		p = p.Evolve(r, p.Revision()+1)
	}
	for _, step := range []struct{ id, scope, want string }{
		{"m", ScopeGlobal, "m"}, {"c", ScopeGlobal, "c"}, {"z", ScopeWorkspace, "z"}, {"b", ScopeGlobal, "z"}, {"y", ScopeWorkspace, "y"},
	} {
		add(step.id, step.scope)
		in.Policy = p
		if v := Evaluate(in); v.RuleID != step.want || v.PolicyRevision != p.Revision() {
			t.Errorf("after %s: %q at %d", step.id, v.RuleID, v.PolicyRevision)
		}
	}
	in.Request.Workspace = ""
	if v := Evaluate(in); v.RuleID != "b" {
		t.Errorf("without a workspace: %q", v.RuleID)
	}
}

func TestExplain_IsOneSentenceThatNamesTheRule(t *testing.T) {
	t.Parallel()
	w := world{configured: ModeDefault, requested: ModeDefault, request: Request{Type: WriteFile, Resource: "/work/p/a", Workspace: "/work/p", Mutating: true}}
	for set, want := range map[int]string{
		setPlatform:     `Denied: the call touches "/work/p", which belongs to the engine; nothing lifts this.`,
		setDenyRule:     `Denied: rule "rule-deny" (write_file for exact resource "/work/p/a", everywhere) denies it.`,
		setSessionDeny:  `Denied: a person denied write_file for exact resource "/work/p/a" for this session.`,
		setReadOnly:     `Denied: the session is read-only and the call may change the world.`,
		setOneShot:      `Allowed: a person approved this one call.`,
		setDangerous:    `A person is asked: the call is dangerous (marked): it is configured as dangerous.`,
		setAskRule:      `A person is asked: rule "rule-always_ask" (write_file for exact resource "/work/p/a", everywhere) says to ask every time.`,
		setAskConfig:    `A person is asked: the configuration says to ask every time for write_file for exact resource "/work/p/a".`,
		setSessionGrant: `Allowed: a person allowed write_file for exact resource "/work/p/a" for this session.`,
		setAllowRule:    `Allowed: rule "rule-allow" (write_file for exact resource "/work/p/a", everywhere) allows it.`,
		setChecksOff:    `Allowed: permission checks are switched off in the configuration.`,
		0:               `A person is asked: its risk, medium, is not below the threshold, low, and no rule allows it.`,
		setNoHuman:      `Denied: nobody is there to be asked in this session, and its risk, medium, is not below the threshold, low, and no rule allows it.`,
	} {
		w.set = set
		if got := Evaluate(w.input(t, map[world]Policy{})).Explain(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestVerdict_EventCarriesStepRuleAndRevision(t *testing.T) {
	t.Parallel()
	w := world{set: setDenyRule, configured: ModeDefault, requested: ModeDefault, request: Request{Type: WriteFile, Resource: "/a"}}
	if got, want := Evaluate(w.input(t, map[world]Policy{})).Event(), (events.Verdict{Step: "deny_rule", RuleID: "rule-deny", PolicyRevision: 1}); got != want {
		t.Errorf("%+v", got)
	}
}

// What only reads needs no permission, unless a rule says otherwise.
func TestEvaluate_ReadingIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode     string
		request  Request
		decision string
	}{
		{"default", Request{Type: Read, Resource: "/etc/x"}, Allow},
		{"dont_ask", Request{Type: Read, Resource: "/etc/x"}, Allow},
		{"default", Request{Type: Read, Resource: "/etc/x", Mutating: true}, Ask},
		{"default", Request{Type: Read, Resource: "/etc/x", Risk: RiskMedium}, Ask},
		{"dont_ask", Request{Type: Read, Resource: "/etc/x", Risk: RiskMedium}, Deny},
		{"default", Request{Type: HTTPRequest, Resource: "https://a.example", Risk: RiskLow}, Ask},
	} {
		p, err := New(Config{Mode: c.mode})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Policy: p, Request: c.request}
		if v := Evaluate(in); v.Decision != c.decision {
			t.Errorf("%s %+v: %s (%s)", c.mode, c.request, v.Decision, v.Step)
		}
		for effect, want := range map[string]string{EffectDeny: Deny, EffectAlwaysAsk: Ask} {
			in.Policy = p.Evolve(Rule{RuleID: "r", Effect: effect, Scope: ScopeGlobal, PermissionType: c.request.Type, Matcher: events.Matcher{Kind: ExactResource, Pattern: c.request.Resource}}, 1)
			if v := Evaluate(in); v.Decision != want {
				t.Errorf("%s rule, %+v: %s (%s)", effect, c.request, v.Decision, v.Step)
			}
		}
	}
}
