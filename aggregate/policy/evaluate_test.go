package policy

import (
	"slices"
	"testing"
	"time"

	"culm/events"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// The conditions of the evaluation order that can be set one by one. The modes
// are set beside them, since one excludes another.
const (
	setPlatform = 1 << iota
	setDenyRule
	setSessionDeny
	setReadOnly
	setOneShot
	setDangerous
	setAskRule
	setAskConfig
	setSessionGrant
	setAllowRule
	setChecksOff
	setHighThreshold
	setNoHuman
	allSet = 1<<iota - 1
)

// world is one combination.
type world struct {
	set                   int
	configured, requested string
	plan                  bool
	request               Request
}

func (w world) has(flag int) bool { return w.set&flag != 0 }

// policy builds the policy of the world; the same one is built once only.
func (w world) policy(t *testing.T, built map[world]Policy) Policy {
	t.Helper()
	key := world{set: w.set &^ (setSessionDeny | setReadOnly | setOneShot | setSessionGrant | setNoHuman), configured: w.configured, request: w.request}
	if p, ok := built[key]; ok {
		return p
	}
	m := events.Matcher{Kind: ExactResource, Pattern: w.request.Resource}
	c := Config{Mode: w.configured, ChecksOff: w.has(setChecksOff)}
	if w.has(setPlatform) {
		c.ProtectedPaths = []string{"/work/p"}
	}
	if w.has(setDangerous) {
		c.HardDangerous = []DangerPattern{{ID: "marked", Pattern: "a"}}
	}
	if w.has(setAskConfig) {
		c.AlwaysAsk = []AskRule{{w.request.Type, m}}
	}
	if w.has(setHighThreshold) {
		c.RiskThreshold = RiskHigh
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []struct {
		set    int
		effect string
	}{{setDenyRule, EffectDeny}, {setAskRule, EffectAlwaysAsk}, {setAllowRule, EffectAllow}} {
		if w.has(r.set) {
			p = p.Evolve(Rule{RuleID: "rule-" + r.effect, Effect: r.effect, Scope: ScopeGlobal, PermissionType: w.request.Type, Matcher: m}, uint64(i+1))
		}
	}
	built[key] = p
	return p
}

func (w world) input(t *testing.T, built map[world]Policy) Input {
	t.Helper()
	m := events.Matcher{Kind: ExactResource, Pattern: w.request.Resource}
	in := Input{
		Policy: w.policy(t, built), Request: w.request, CallID: "c1", Generation: "g1", Now: noon,
		Session: Session{RequestedMode: w.requested, Plan: w.plan, ReadOnly: w.has(setReadOnly), NoHumanApprover: w.has(setNoHuman)},
	}
	if w.has(setSessionDeny) {
		in.Grants = append(in.Grants, Grant{ID: "denied", Deny: true, Type: w.request.Type, Matcher: m, ExpiresAt: noon.Add(time.Minute)})
	}
	if w.has(setSessionGrant) {
		in.Grants = append(in.Grants, Grant{ID: "granted", Type: w.request.Type, Matcher: m, ExpiresAt: noon.Add(time.Minute)})
	}
	if w.has(setOneShot) {
		in.OneShots = []OneShot{{"c1", "g1", w.request.Type, w.request.Resource}}
	}
	return in
}

// expected is one line of the documentation's table.
type expected struct{ decision, step, rule, reason string }

// oracle reads the order off the documentation, without the code under test.
func (w world) oracle() expected {
	command := w.request.Type == ExecuteCommand
	risk := "medium"
	if command {
		risk = "high"
	}
	if w.request.Risk == "low" && !w.request.Mutating {
		risk = "low"
	}
	plan := w.plan || w.configured == "plan"
	auto := w.requested == "auto" || !plan && w.requested == "default" && w.configured == "auto"
	bypass := !plan && (w.requested == "bypass" || w.requested == "default" && w.configured == "bypass_permissions")
	own := !plan && w.requested == "default"
	ask := func(step, rule, reason string) expected {
		if w.has(setNoHuman) {
			return expected{"deny", "no_human_approver", rule, reason}
		}
		return expected{"ask", step, rule, reason}
	}
	switch {
	case w.has(setPlatform):
		return expected{"deny", "platform_hard_deny", "", "platform_hard_deny"}
	case w.has(setDenyRule):
		return expected{"deny", "deny_rule", "rule-deny", "explicit_deny"}
	case w.has(setSessionDeny):
		return expected{"deny", "session_deny", "denied", "explicit_deny"}
	case w.has(setReadOnly) && w.request.Mutating:
		return expected{"deny", "read_only", "", "mode_denied"}
	case plan && risk != "low":
		return expected{"deny", "plan", "", "mode_denied"}
	case w.has(setOneShot):
		return expected{"allow", "one_shot", "", ""}
	case auto:
		return expected{"allow", "auto", "", ""}
	case w.has(setDangerous):
		return ask("hard_dangerous", "marked", "hard_dangerous")
	case w.has(setAskRule):
		return ask("always_ask", "rule-always_ask", "configured_always_ask")
	case w.has(setAskConfig):
		return ask("always_ask", "always_ask[0]", "configured_always_ask")
	case w.has(setSessionGrant):
		return expected{"allow", "session_grant", "granted", ""}
	case w.has(setAllowRule):
		return expected{"allow", "allow_rule", "rule-allow", ""}
	case w.has(setChecksOff):
		return expected{"allow", "checks_off", "", ""}
	case bypass:
		return expected{"allow", "bypass", "", ""}
	case own && w.configured == "dont_ask":
		return expected{"deny", "dont_ask", "", "mode_denied"}
	case own && w.configured == "accept_edits":
		return expected{"allow", "accept_edits", "", ""} // both requests are edits
	case w.has(setHighThreshold) && risk != "high":
		return expected{"allow", "below_threshold", "", ""}
	}
	return ask("risk_threshold", "", "risk_threshold")
}

func (w world) check(t *testing.T, built map[world]Policy) Verdict {
	t.Helper()
	in := w.input(t, built)
	v := Evaluate(in)
	got := expected{v.Decision, v.Step, v.RuleID, v.ReasonCode}
	if want := w.oracle(); got != want {
		t.Fatalf("%+v: %+v, want %+v", w, got, want)
	}
	once := v.ReasonCode == HardDangerous || v.ReasonCode == ConfiguredAlwaysAsk
	var allowed []string
	switch {
	case v.Decision == Ask && once:
		allowed = []string{"allow_once", "deny_once"}
	case v.Decision == Ask && w.request.Workspace == "":
		allowed = []string{"allow_once", "allow_session", "allow_global", "deny_once", "deny_session"}
	case v.Decision == Ask:
		allowed = []string{"allow_once", "allow_session", "allow_workspace", "allow_global", "deny_once", "deny_session"}
	}
	if !slices.Equal(v.AllowedDecisions, allowed) || (len(v.Matchers) > 0) != (v.Decision == Ask && !once) {
		t.Fatalf("%+v: allowed %v, matchers %v", w, v.AllowedDecisions, v.Matchers)
	}
	if (v.OneShot >= 0) != (v.Step == StepOneShot) || (v.Gate != "") != (v.Step == StepNoHuman) {
		t.Fatalf("%+v: one-shot %d, gate %q", w, v.OneShot, v.Gate)
	}
	if v.PolicyRevision != in.Policy.Revision() || v.Why == "" {
		t.Fatalf("%+v: %+v", w, v)
	}
	return v
}

// Every subset of the conditions, under every pair of modes, for requests of
// each risk: the earliest step that applies decides.
func TestEvaluate_EveryCombinationOfConditions(t *testing.T) {
	t.Parallel()
	requests := []Request{
		{Type: WriteFile, Resource: "/work/p/a", Workspace: "/work/p", Mutating: true},
		{Type: WriteFile, Resource: "/work/p/a", Risk: RiskLow},
		{Type: ExecuteCommand, Resource: "touch /work/p/a", Workspace: "/work/p", Mutating: true},
	}
	steps, built := map[string]bool{}, map[world]Policy{}
	for i, r := range requests {
		for _, configured := range ConfiguredModes() {
			for _, requested := range RequestedModes() {
				for _, plan := range []bool{false, true} {
					// The full product for the first request; for the others the
					// conditions alone, in pairs, and all but one.
					for set := 0; set <= allSet; set++ {
						if (i > 0 || testing.Short()) && !fewOrMost(set) {
							continue
						}
						v := world{set, configured, requested, plan, r}.check(t, built)
						steps[v.Step] = true
					}
				}
			}
		}
	}
	for _, s := range append(Steps(), StepNoHuman) {
		if !steps[s] {
			t.Errorf("step %s has never decided", s)
		}
	}
}

func fewOrMost(set int) bool {
	n := 0
	for s := set; s > 0; s &= s - 1 {
		n++
	}
	return n <= 2 || set|setPlatform == allSet || set|setPlatform|setDenyRule|setSessionDeny == allSet
}

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
