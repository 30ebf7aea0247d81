package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"culm/events"
)

// Effects of a durable rule.
const (
	EffectAllow     = "allow"
	EffectDeny      = "deny"
	EffectAlwaysAsk = "always_ask"
)

// Scopes of a durable rule.
const (
	ScopeGlobal    = "global"
	ScopeWorkspace = "workspace"
)

// Rule is a durable rule as it was added.
type Rule = events.PolicyRuleAdded

// Policy is the installation's configuration with the mode and rules of the
// _settings session folded over it. It is a value: Evolve returns a new one
// and copies share nothing that changes. Make one with New.
type Policy struct {
	config   Config
	patterns []*regexp.Regexp // of config.HardDangerous
	private  []string         // paths, see Keep
	mode     string           // set by an event, "" for that of config
	rules    []Rule           // ordered: workspace before global, then by id
	revision uint64
}

// New makes a policy without rules. The error is a *FieldError.
func New(c Config) (Policy, error) {
	if err := c.Validate(); err != nil {
		return Policy{}, err
	}
	p := Policy{config: c}
	p.config.AlwaysAsk = slices.Clone(c.AlwaysAsk)
	p.config.HardDangerous = slices.Clone(c.HardDangerous)
	p.config.ProtectedPaths = slices.Clone(c.ProtectedPaths)
	for _, d := range c.HardDangerous {
		p.patterns = append(p.patterns, regexp.MustCompile(d.Pattern)) // Validate has compiled it
	}
	return p, nil
}

// Keep is the policy with private paths, absolute ones: they are protected, and
// no call of type read may name them. They are the engine's own data, with the
// token by which a person decides.
func (p Policy) Keep(private ...string) Policy {
	p.private = private
	return p
}

// Evolve returns the policy after an event of the _settings session, which
// stands at sequence seq of it. It judges nothing: what is stored holds.
// Events that are none of the policy's count as revisions only.
func (p Policy) Evolve(d events.Data, seq uint64) Policy {
	p.revision = seq
	switch d := d.(type) {
	case events.PolicyModeChanged:
		p.mode = d.Mode
	case events.PolicyRuleAdded:
		p.rules = slices.Insert(p.without(d.RuleID), p.place(d), d)
	case events.PolicyRuleRemoved:
		p.rules = p.without(d.RuleID)
	}
	return p
}

// without copies the rules but the one of the id.
func (p Policy) without(id string) []Rule {
	out := make([]Rule, 0, len(p.rules)+1)
	for _, r := range p.rules {
		if r.RuleID != id {
			out = append(out, r)
		}
	}
	return out
}

// place is where a rule belongs among the others.
func (p Policy) place(r Rule) int {
	i, _ := slices.BinarySearchFunc(p.without(r.RuleID), r, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(scopeRank(a), scopeRank(b)), cmp.Compare(a.RuleID, b.RuleID))
	})
	return i
}

func scopeRank(r Rule) int {
	if r.Scope == ScopeWorkspace {
		return 0
	}
	return 1
}

// Mode is the configured mode: that of the last event, else the configuration's.
func (p Policy) Mode() string { return cmp.Or(p.mode, p.config.Mode, ModeDefault) }

// Revision is the sequence of the last event folded, 0 for none.
func (p Policy) Revision() uint64 { return p.revision }

// Rules are the durable rules in the order in which they are named: those of a
// workspace before the global ones, then by id. The caller owns the slice.
func (p Policy) Rules() []Rule { return slices.Clone(p.rules) }

// Rule finds a durable rule by its id.
func (p Policy) Rule(id string) (Rule, bool) {
	for _, r := range p.rules {
		if r.RuleID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// SessionExpiry is when a decision remembered for a session at now ends.
func (p Policy) SessionExpiry(now time.Time) time.Time {
	return now.Add(cmp.Or(p.config.SessionLifetime, DefaultSessionLifetime))
}

func (p Policy) threshold() string { return cmp.Or(p.config.RiskThreshold, RiskLow) }

// CheckRule judges a rule before it is stored; the id has been given to it.
// A rule that is there already in the same words is fine: adding it again
// changes nothing. The error is a *FieldError.
func (p Policy) CheckRule(r Rule) error {
	if err := CheckRule(r); err != nil {
		return err
	}
	switch old, ok := p.Rule(r.RuleID); {
	case ok && !sameRule(old, r):
		return &FieldError{"rule_id", fmt.Sprintf("%q is the id of another rule; remove it first", r.RuleID)}
	case !ok && len(p.rules) >= MaxRules:
		return &FieldError{"rule_id", fmt.Sprintf("would be rule %d; at most %d are kept", len(p.rules)+1, MaxRules)}
	}
	return nil
}

// sameRule compares two rules; the id of the matcher is a label only.
func sameRule(a, b Rule) bool {
	a.Matcher.ID, b.Matcher.ID = "", ""
	return a == b
}

// CheckRule judges a rule by itself. The error is a *FieldError.
func CheckRule(r Rule) error {
	problem := func(field, format string, args ...any) error {
		return &FieldError{field, fmt.Sprintf(format, args...)}
	}
	switch {
	case !validID(r.RuleID):
		return problem("rule_id", idProblem)
	case r.Effect != EffectAllow && r.Effect != EffectDeny && r.Effect != EffectAlwaysAsk:
		return problem("effect", "%.40q is none of allow, deny, always_ask", r.Effect)
	case r.Scope != ScopeGlobal && r.Scope != ScopeWorkspace:
		return problem("scope", "%.40q is none of global, workspace", r.Scope)
	case r.Scope == ScopeGlobal && r.Workspace != "":
		return problem("workspace", "does not go with scope global")
	case r.Scope == ScopeWorkspace && strings.TrimSpace(r.Workspace) == "":
		return problem("workspace", "is missing: scope workspace needs one")
	case len(r.Workspace) > maxPath || !utf8.ValidString(r.Workspace) || strings.ContainsFunc(r.Workspace, isControl):
		return problem("workspace", "is longer than %d bytes or no plain text", maxPath)
	}
	return CheckMatcher(r.PermissionType, r.Matcher)
}

// inScope says that the rule is there for the request's type and workspace.
func inScope(r Rule, q Request) bool {
	return r.PermissionType == q.Type && (r.Scope != ScopeWorkspace || sameWorkspace(r.Workspace, q.Workspace))
}
