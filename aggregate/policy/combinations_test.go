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
