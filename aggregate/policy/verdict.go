package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"culm/events"
)

// Reason codes: why a call was denied or has to be asked about.
const (
	PlatformHardDeny    = "platform_hard_deny"
	HardDangerous       = "hard_dangerous"
	ConfiguredAlwaysAsk = "configured_always_ask"
	ExplicitDeny        = "explicit_deny"
	ModeDenied          = "mode_denied"
	RiskThreshold       = "risk_threshold"
)

// Verdict is what the policy says about a call.
type Verdict struct {
	Decision string // allow, deny or ask
	Step     string // of the evaluation order
	// RuleID names the rule, danger or remembered decision that answered, if
	// the step has one.
	RuleID         string
	ReasonCode     string // "" where the call is allowed
	Risk           string
	PolicyRevision uint64
	RequestedMode  string
	EffectiveMode  string
	// AllowedDecisions and Matchers are for a person who is asked; Matchers is
	// empty where nothing may be remembered.
	AllowedDecisions []string
	Matchers         []events.Matcher
	// OneShot is the index in Input.OneShots of the approval that allowed the
	// call and is used up by it, or -1.
	OneShot int
	// Gate is the step that asked, where Step says that nobody can be asked.
	Gate string
	// Why completes "because ...".
	Why string
}

// Event is the verdict as tool.authorized and tool.denied carry it.
func (v Verdict) Event() events.Verdict {
	return events.Verdict{Step: v.Step, RuleID: v.RuleID, PolicyRevision: v.PolicyRevision}
}

// Explain is one sentence for people; it names the rule.
func (v Verdict) Explain() string {
	verb := map[string]string{Allow: "Allowed", Deny: "Denied", Ask: "A person is asked"}[v.Decision]
	return verb + ": " + v.Why + "."
}

func (v *Verdict) allow(rule, why string) bool {
	v.Decision, v.RuleID, v.Why = Allow, rule, why
	return true
}

func (v *Verdict) deny(reason, rule, why string) bool {
	v.Decision, v.ReasonCode, v.RuleID, v.Why = Deny, reason, rule, why
	return true
}

// ask fills in a question with the decisions that the caller supports; only to
// approve or deny this once can always be carried out.
func (e *evaluation) ask(v *Verdict, decisions []string, reason, rule, why string) bool {
	v.Decision, v.ReasonCode, v.RuleID, v.Why = Ask, reason, rule, why
	for _, d := range decisions {
		if e.Supported == nil || d == AllowOnce || d == DenyOnce || slices.Contains(e.Supported, d) {
			v.AllowedDecisions = append(v.AllowedDecisions, d)
		}
	}
	if slices.ContainsFunc(v.AllowedDecisions, Remembered) {
		v.Matchers = SuggestMatchers(e.Request)
	}
	return true
}

// finish turns a question that nobody can answer into a denial.
func (e *evaluation) finish(v Verdict) Verdict {
	if v.Decision == Ask && e.Session.NoHumanApprover {
		v.Gate, v.Step, v.Decision = v.Step, StepNoHuman, Deny
		v.AllowedDecisions, v.Matchers = nil, nil
		v.Why = "nobody is there to be asked in this session, and " + v.Why
	}
	return v
}

func ruleText(r Rule) string {
	where := "everywhere"
	if r.Scope == ScopeWorkspace {
		where = "in workspace " + clip(r.Workspace)
	}
	return fmt.Sprintf("rule %q (%s, %s)", r.RuleID, matcherText(r.PermissionType, r.Matcher), where)
}

func matcherText(permissionType string, m events.Matcher) string {
	kind := strings.ReplaceAll(m.Kind, "_", " ")
	return permissionType + " for " + kind + " " + clip(m.Pattern)
}

// maxClip bounds what is quoted of a resource or a pattern, in bytes.
const maxClip = 120

// clip quotes a text for a sentence, cut to a readable length.
func clip(s string) string {
	if len(s) <= maxClip {
		return fmt.Sprintf("%q", s)
	}
	cut := maxClip
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q...", s[:cut])
}
