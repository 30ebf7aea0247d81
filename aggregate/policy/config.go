package policy

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"culm/events"
)

// DefaultSessionLifetime is how long a decision is remembered for a session.
const DefaultSessionLifetime = 30 * time.Minute

// Config is the installation's part of the policy: what stands under
// `permissions` in the configuration. The zero value is the default.
type Config struct {
	Mode          string // a configured mode, "" means default
	RiskThreshold string // risks below it are not asked about; "" means low
	// ChecksOff lets everything pass that no deny rule, plan, danger or
	// always-ask rule stops.
	ChecksOff     bool
	AlwaysAsk     []AskRule
	HardDangerous []DangerPattern // beside the built-in Dangers
	// ProtectedPaths are absolute paths that no call may write to or delete.
	// No approval lifts this.
	ProtectedPaths []string
	// SessionLifetime of remembered decisions, 0 means DefaultSessionLifetime.
	SessionLifetime time.Duration
	// QuestionLifetime is how long a call waits for a person before it expires;
	// 0 means for ever.
	QuestionLifetime time.Duration
}

// AskRule names what is always asked about.
type AskRule struct {
	PermissionType string
	Matcher        events.Matcher
}

// DangerPattern is a configured danger: an RE2 pattern that is looked for in
// the resource, with and without its runs of white space made one space.
type DangerPattern struct {
	ID             string // names it in verdicts
	PermissionType string // "" means every type
	Pattern        string
	Why            string // completes "it ..."
}

// MinQuestionLifetime is the shortest wait that may be configured.
const MinQuestionLifetime = time.Second

// Bounds of lists, so that one evaluation stays cheap.
const (
	MaxRules = 1000 // durable rules, and each list of the configuration
	maxID    = 128
)

// Validate returns the first fault as a *FieldError whose field is spelled as
// in the configuration: "always_ask[2].matcher.pattern".
func (c Config) Validate() error {
	if err := CheckMode(c.Mode); err != nil {
		return err
	}
	if c.RiskThreshold != "" && riskAt(c.RiskThreshold) < 0 {
		return &FieldError{"risk_threshold", fmt.Sprintf("%.40q is none of %s", c.RiskThreshold, strings.Join(risks, ", "))}
	}
	if c.SessionLifetime < 0 {
		return &FieldError{"session_lifetime", "is negative"}
	}
	if c.QuestionLifetime < 0 || c.QuestionLifetime > 0 && c.QuestionLifetime < MinQuestionLifetime {
		return &FieldError{"question_lifetime", fmt.Sprintf("is %s, allowed are %s and more, or 0s for no end", c.QuestionLifetime, MinQuestionLifetime)}
	}
	if len(c.AlwaysAsk) > MaxRules || len(c.HardDangerous) > MaxRules || len(c.ProtectedPaths) > MaxRules {
		return &FieldError{"always_ask, hard_dangerous and protected_paths", fmt.Sprintf("hold at most %d entries each", MaxRules)}
	}
	for i, a := range c.AlwaysAsk {
		if err := CheckMatcher(a.PermissionType, a.Matcher); err != nil {
			return within(fmt.Sprintf("always_ask[%d]", i), err)
		}
	}
	for i, p := range c.ProtectedPaths {
		if problem := checkPathPattern(p); problem != "" {
			return &FieldError{fmt.Sprintf("protected_paths[%d]", i), problem}
		}
	}
	return c.validateDangers()
}

func (c Config) validateDangers() error {
	seen := map[string]bool{}
	for i, d := range c.HardDangerous {
		at := fmt.Sprintf("hard_dangerous[%d]", i)
		switch {
		case !validID(d.ID):
			return &FieldError{at + ".id", idProblem}
		case seen[d.ID] || strings.HasPrefix(d.ID, "danger:"):
			return &FieldError{at + ".id", fmt.Sprintf("%q is taken", d.ID)}
		case d.PermissionType != "" && !KnownType(d.PermissionType):
			return &FieldError{at + ".permission_type", fmt.Sprintf("%.40q is none of %s", d.PermissionType, strings.Join(Types(), ", "))}
		case d.Pattern == "" || len(d.Pattern) > MaxPattern:
			return &FieldError{at + ".pattern", fmt.Sprintf("is empty or longer than %d bytes", MaxPattern)}
		}
		if _, err := regexp.Compile(d.Pattern); err != nil {
			return &FieldError{at + ".pattern", err.Error()}
		}
		seen[d.ID] = true
	}
	return nil
}

// within puts a path before the field that a *FieldError names.
func within(path string, err error) error {
	if f, ok := err.(*FieldError); ok {
		return &FieldError{path + "." + f.Field, f.Problem}
	}
	return err
}

const idProblem = "is no id: 1 to 128 letters, digits and any of . _ : -"

func validID(id string) bool {
	return id != "" && len(id) <= maxID &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == ""
}
