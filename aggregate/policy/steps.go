package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"culm/events"
)

// evaluation is one pass through the order.
type evaluation struct {
	Input
	subject *subject
	mode    string
	flags   events.ReplayFlags
}

// hardProblem says what makes a request one that nothing may allow, or "".
func hardProblem(r Request) string {
	switch {
	case strings.TrimSpace(r.Resource) == "":
		return "names no resource"
	case len(r.Resource) > MaxResource:
		return fmt.Sprintf("names a resource of %d bytes; at most %d are judged", len(r.Resource), MaxResource)
	case strings.ContainsRune(r.Resource, 0) || !utf8.ValidString(r.Resource):
		return "names a resource that is no plain text (a NUL or broken UTF-8)"
	}
	return ""
}

func (e *evaluation) platform(v *Verdict) bool {
	problem := hardProblem(e.Request)
	if problem == "" {
		if p, ok := e.subject.protected(e.Policy.config.ProtectedPaths, e.Policy.private); ok {
			problem = "touches " + clip(p) + ", which belongs to the engine"
		}
	}
	return problem != "" && v.deny(PlatformHardDeny, "", "the call "+problem+"; nothing lifts this")
}

func (e *evaluation) denyRule(v *Verdict) bool {
	for _, r := range e.Policy.rules {
		if r.Effect == EffectDeny && inScope(r, e.Request) && e.subject.touchedBy(r.Matcher) {
			return v.deny(ExplicitDeny, r.RuleID, ruleText(r)+" denies it")
		}
	}
	return false
}

func (e *evaluation) sessionDeny(v *Verdict) bool {
	for _, g := range e.Grants {
		if g.denies(e.subject, e.Now) {
			return v.deny(ExplicitDeny, g.ID, "a person denied "+matcherText(g.Type, g.Matcher)+" for this session")
		}
	}
	return false
}

func (e *evaluation) readOnly(v *Verdict) bool {
	return e.Session.ReadOnly && e.Request.Mutating &&
		v.deny(ModeDenied, "", "the session is read-only and the call may change the world")
}

func (e *evaluation) plan(v *Verdict) bool {
	switch {
	case !e.flags.PlanReadOnly:
		return false
	case RiskLess(RiskLow, v.Risk):
		return v.deny(ModeDenied, "", "plan mode lets only calls of low risk pass, and this one is "+v.Risk)
	}
	return e.Request.Mutating && v.deny(ModeDenied, "", "plan mode lets nothing pass that may change the world")
}

func (e *evaluation) oneShot(v *Verdict) bool {
	v.OneShot = slices.IndexFunc(e.OneShots, func(o OneShot) bool { return o.covers(e.Input) })
	return v.OneShot >= 0 && v.allow("", "a person approved this one call")
}

func (e *evaluation) auto(v *Verdict) bool {
	return e.flags.AutoApprove && v.allow("", "mode auto allows what no rule denies")
}

func (e *evaluation) dangerous(v *Verdict) bool {
	id, why := "", ""
	if d, ok := dangerOf(e.subject); ok {
		id, why = d.ID, d.Why
	} else if d, ok := e.Policy.configuredDanger(e.Request); ok {
		id, why = d.ID, d.Why
		if why == "" {
			why = "is configured as dangerous"
		}
	}
	v.Risk = RiskHigh
	return id != "" && e.ask(v, onceOnly(), HardDangerous, id, "the call is dangerous ("+id+"): it "+why)
}

func (p Policy) configuredDanger(r Request) (DangerPattern, bool) {
	if len(p.patterns) == 0 {
		return DangerPattern{}, false
	}
	squeezed := strings.Join(strings.Fields(r.Resource), " ")
	for i, d := range p.config.HardDangerous {
		if (d.PermissionType == "" || d.PermissionType == r.Type) && (p.patterns[i].MatchString(r.Resource) || p.patterns[i].MatchString(squeezed)) {
			return d, true
		}
	}
	return DangerPattern{}, false
}

func (e *evaluation) alwaysAsk(v *Verdict) bool {
	for _, r := range e.Policy.rules {
		if r.Effect == EffectAlwaysAsk && inScope(r, e.Request) && e.subject.touchedBy(r.Matcher) {
			return e.ask(v, onceOnly(), ConfiguredAlwaysAsk, r.RuleID, ruleText(r)+" says to ask every time")
		}
	}
	for i, a := range e.Policy.config.AlwaysAsk {
		if a.PermissionType == e.Request.Type && e.subject.touchedBy(a.Matcher) {
			return e.ask(v, onceOnly(), ConfiguredAlwaysAsk, fmt.Sprintf("always_ask[%d]", i),
				"the configuration says to ask every time for "+matcherText(a.PermissionType, a.Matcher))
		}
	}
	return false
}

func (e *evaluation) sessionGrant(v *Verdict) bool {
	for _, g := range e.Grants {
		if g.allows(e.Request, e.Now) {
			return v.allow(g.ID, "a person allowed "+matcherText(g.Type, g.Matcher)+" for this session")
		}
	}
	return false
}

func (e *evaluation) allowRule(v *Verdict) bool {
	for _, r := range e.Policy.rules {
		if r.Effect == EffectAllow && inScope(r, e.Request) && Match(r.Matcher, e.Request) {
			return v.allow(r.RuleID, ruleText(r)+" allows it")
		}
	}
	return false
}

func (e *evaluation) checksOff(v *Verdict) bool {
	return e.Policy.config.ChecksOff && v.allow("", "permission checks are switched off in the configuration")
}

func (e *evaluation) bypass(v *Verdict) bool {
	return e.flags.Bypass && v.allow("", "mode bypass allows what is not dangerous")
}

func (e *evaluation) dontAsk(v *Verdict) bool {
	return e.mode == ModeDontAsk && !e.onlyReads(v) && v.deny(ModeDenied, "", "mode dont_ask denies what no rule allows")
}

func (e *evaluation) acceptEdits(v *Verdict) bool {
	if e.mode != ModeAcceptEdits {
		return false
	}
	r := e.Request
	if r.Type == WriteFile {
		return v.allow("", "mode accept_edits allows writing files")
	}
	return r.Type == ExecuteCommand && isSafeEdit(r.Resource, r.Workspace) &&
		v.allow("", "mode accept_edits allows this command, which only arranges files of the workspace")
}

// onlyReads holds for a call of low risk that changes nothing: no threshold is
// low enough to ask about it. Deny rules and always-ask rules reach it.
func (e *evaluation) onlyReads(v *Verdict) bool {
	return e.Request.Type == Read && !e.Request.Mutating && v.Risk == RiskLow
}

func (e *evaluation) below(v *Verdict) bool {
	if e.onlyReads(v) {
		return v.allow("", "it only reads")
	}
	return RiskLess(v.Risk, e.Policy.threshold()) &&
		v.allow("", "its risk, "+v.Risk+", is below the threshold, "+e.Policy.threshold())
}

func (e *evaluation) risk(v *Verdict) bool {
	return e.ask(v, e.allScopes(), RiskThreshold, "",
		"its risk, "+v.Risk+", is not below the threshold, "+e.Policy.threshold()+", and no rule allows it")
}

// allScopes are the decisions for an ordinary question: for a workspace only
// where one is known, and none remembered where no matcher could be written.
func (e *evaluation) allScopes() []string {
	switch {
	case !KnownType(e.Request.Type) || len(SuggestMatchers(e.Request)) == 0:
		return onceOnly()
	case strings.TrimSpace(e.Request.Workspace) == "":
		return []string{AllowOnce, AllowSession, AllowGlobal, DenyOnce, DenySession}
	}
	return Decisions()
}
