package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/events"
)

// genMatcher draws a matcher that often has to do with the request, at times
// one that fits nothing.
func genMatcher(r Request) *rapid.Generator[events.Matcher] {
	return rapid.Custom(func(t *rapid.T) events.Matcher {
		if s := SuggestMatchers(r); len(s) > 0 && rapid.Bool().Draw(t, "suggested") {
			return rapid.SampledFrom(s).Draw(t, "matcher")
		}
		other := genRequest().Draw(t, "other")
		if s := SuggestMatchers(other); len(s) > 0 && rapid.IntRange(0, 9).Draw(t, "sound") > 0 {
			return rapid.SampledFrom(s).Draw(t, "matcher")
		}
		return events.Matcher{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Pattern: other.Resource}
	})
}

func genRule(r Request) *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		out := Rule{
			RuleID: rapid.StringMatching(`r[0-9]{1,3}`).Draw(t, "id"), Effect: rapid.SampledFrom([]string{EffectAllow, EffectDeny, EffectAlwaysAsk}).Draw(t, "effect"),
			Scope: ScopeGlobal, PermissionType: rapid.SampledFrom([]string{r.Type, r.Type, WriteFile}).Draw(t, "type"), Matcher: genMatcher(r).Draw(t, "matcher"),
		}
		if rapid.Bool().Draw(t, "local") {
			out.Scope, out.Workspace = ScopeWorkspace, rapid.SampledFrom([]string{"/work/p", "/etc"}).Draw(t, "workspace")
		}
		return out
	})
}

func genInput() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		r := genRequest().Draw(t, "request")
		p, err := New(Config{
			Mode: rapid.SampledFrom(ConfiguredModes()).Draw(t, "configured"), RiskThreshold: rapid.SampledFrom(risks).Draw(t, "threshold"),
			ChecksOff: rapid.IntRange(0, 5).Draw(t, "off") == 0,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range rapid.SliceOfN(genRule(r), 0, 4).Draw(t, "rules") {
			p = p.Evolve(d, uint64(i+1))
		}
		in := Input{
			Policy: p, Request: r, CallID: "c", Generation: "g", Now: noon,
			Session: Session{
				RequestedMode: rapid.SampledFrom(RequestedModes()).Draw(t, "requested"), Plan: rapid.IntRange(0, 4).Draw(t, "plan") == 0,
				ReadOnly: rapid.IntRange(0, 4).Draw(t, "read-only") == 0, NoHumanApprover: rapid.Bool().Draw(t, "nobody"),
			},
		}
		for range rapid.IntRange(0, 2).Draw(t, "grants") {
			in.Grants = append(in.Grants, Grant{
				ID: "grant", Deny: rapid.IntRange(0, 3).Draw(t, "deny") == 0, Tool: "A", Type: r.Type, Matcher: genMatcher(r).Draw(t, "grant"),
				ExpiresAt: noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "expires"))),
			})
		}
		if rapid.IntRange(0, 3).Draw(t, "approved") == 0 {
			in.OneShots = []OneShot{{"c", "g", r.Type, r.Resource}}
		}
		return in
	})
}

func TestProperty_EvaluateIsDeterministicAndWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		v := Evaluate(in)
		if diff := cmp.Diff(v, Evaluate(in)); diff != "" {
			t.Fatalf("two verdicts: %s", diff)
		}
		if !slices.Contains([]string{Allow, Deny, Ask}, v.Decision) || !slices.Contains(append(Steps(), StepNoHuman), v.Step) ||
			(v.ReasonCode == "") != (v.Decision == Allow) || (len(v.AllowedDecisions) > 0) != (v.Decision == Ask) || v.Why == "" || !slices.Contains(risks, v.Risk) {
			t.Fatalf("%+v", v)
		}
		if in.Session.NoHumanApprover && v.Decision == Ask {
			t.Fatalf("nobody is there and is asked: %+v", v)
		}
		if in.Session.ReadOnly && in.Request.Mutating && v.Decision != Deny {
			t.Fatalf("a read-only session changes the world: %+v", v)
		}
	})
}

func TestProperty_DenyRuleBeatsEverythingThatAllows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		d := genRule(in.Request).Draw(t, "rule")
		d.RuleID, d.Effect = "the-rule", EffectDeny
		before := Evaluate(in)
		in.Policy = in.Policy.Evolve(d, 99)
		after := Evaluate(in)
		covers := inScope(d, in.Request) && Match(d.Matcher, in.Request)
		if covers && after.Decision != Deny || before.Decision == Deny && after.Decision != Deny || before.Decision == Ask && after.Decision == Allow {
			t.Fatalf("%+v: %+v, then %+v", d, before, after)
		}
	})
}

func TestProperty_AlwaysAskRuleNeverLoosens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		d := genRule(in.Request).Draw(t, "rule")
		d.RuleID, d.Effect = "the-rule", EffectAlwaysAsk
		before := Evaluate(in)
		in.Policy = in.Policy.Evolve(d, 99)
		after := Evaluate(in)
		// In mode dont_ask a rule that says to ask every time does ask.
		if before.Decision != Allow && after.Decision == Allow || before.Decision == Deny && after.Decision == Ask && before.Step != StepDontAsk {
			t.Fatalf("%+v: %+v, then %+v", d, before, after)
		}
	})
}

func TestProperty_AllowRuleOrGrantNeverTightens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		d := genRule(in.Request).Draw(t, "rule")
		d.RuleID, d.Effect = "the-rule", EffectAllow
		before := Evaluate(in)
		with := in
		with.Policy = in.Policy.Evolve(d, 99)
		if rapid.Bool().Draw(t, "as a grant") {
			with = in
			with.Grants = append(slices.Clone(in.Grants), Grant{ID: "the-grant", Tool: "A", Type: d.PermissionType, Matcher: d.Matcher, ExpiresAt: noon.Add(1)})
		}
		after := Evaluate(with)
		if before.Decision == Allow && after.Decision != Allow || before.Decision == Ask && after.Decision == Deny {
			t.Fatalf("%+v: %+v, then %+v", d, before, after)
		}
		if before.Decision != after.Decision && !Match(d.Matcher, in.Request) {
			t.Fatalf("%+v covers what it does not match: %+v, then %+v", d, before, after)
		}
	})
}

// A grant for the exact resource of one request never lets another resource
// pass, but for another spelling of the same path.
func TestProperty_AGrantNeverCoversAnotherResource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given, other := genRequest().Draw(t, "given"), genRequest().Draw(t, "other")
		if rapid.Bool().Draw(t, "same type") {
			other.Type = given.Type
		}
		g := Grant{ID: "g", Tool: given.Tool, Type: given.Type, Matcher: events.Matcher{Kind: ExactResource, Pattern: given.Resource}, ExpiresAt: noon.Add(1)}
		in := Input{Request: other, Now: noon, Grants: []Grant{g}, OneShots: []OneShot{{"c", "g", given.Type, given.Resource}}, CallID: "c", Generation: "g"}
		v := Evaluate(in)
		same := given.Type == other.Type && given.Resource == other.Resource
		if v.Step == StepOneShot && !same {
			t.Fatalf("an approval for %+v lets %+v pass", given, other)
		}
		if v.Step == StepSessionGrant && !same && !(given.Type == other.Type && samePath(given.Resource, other.Resource)) {
			t.Fatalf("a grant for %+v lets %+v pass", given, other)
		}
	})
}

func TestProperty_WhatMatchesAlsoTouches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest().Draw(t, "request")
		if m := genMatcher(r).Draw(t, "matcher"); Match(m, r) && !Touches(m, r) {
			t.Fatalf("%+v covers %+v but does not touch it", m, r)
		}
	})
}

// The wider the posture, the more passes: what is allowed in mode default is
// allowed in bypass, and what is allowed in bypass is allowed in auto.
func TestProperty_ModesAreOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		allowed := func(mode string) bool {
			in.Session.RequestedMode = mode
			return Evaluate(in).Decision == Allow
		}
		in.Policy.mode = ModeDefault
		if d, b, a := allowed(ModeDefault), allowed(ModeBypass), allowed(ModeAuto); d && !b || b && !a {
			t.Fatalf("default %v, bypass %v, auto %v", d, b, a)
		}
	})
}
