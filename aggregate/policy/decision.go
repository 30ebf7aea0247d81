package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"culm/events"
)

// The decisions a person can give.
const (
	AllowOnce      = "allow_once"
	AllowSession   = "allow_session"
	AllowWorkspace = "allow_workspace"
	AllowGlobal    = "allow_global"
	DenyOnce       = "deny_once"
	DenySession    = "deny_session"
)

// Decisions lists every decision.
func Decisions() []string {
	return []string{AllowOnce, AllowSession, AllowWorkspace, AllowGlobal, DenyOnce, DenySession}
}

func onceOnly() []string { return []string{AllowOnce, DenyOnce} }

// Allows says that the decision lets the call run.
func Allows(decision string) bool {
	return decision == AllowOnce || decision == AllowSession || Durable(decision)
}

// Remembered says that the decision covers more than the one call.
func Remembered(decision string) bool {
	return decision == AllowSession || decision == DenySession || Durable(decision)
}

// Durable says that the decision becomes a rule of the installation.
func Durable(decision string) bool { return decision == AllowWorkspace || decision == AllowGlobal }

// Refusal is a decision or a restore that may not be. Code is one of the codes
// of docs/contract.md#error-codes.
type Refusal struct {
	Code    string
	Message string
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// Codes of refusals.
const (
	CodeInvalidCommand       = "invalid_command"
	CodeDecisionNotAllowed   = "decision_not_allowed"
	CodePolicyConflict       = "policy_conflict"
	CodeConfirmationRequired = "confirmation_required"
	CodeWorkspaceRequired    = "workspace_required"
	CodeUnknownMatcher       = "unknown_matcher"
	CodeAuthorizationRefused = "authorization_refused"
)

// Choice is what a person answers.
type Choice struct {
	Decision  string
	MatcherID string // "" for a remembered decision means the exact resource
	// ExpectedRevision is the policy revision that the person saw, nil if not said.
	ExpectedRevision *uint64
	ConfirmGlobal    bool
}

// SameChoice says that two choices mean the same: a missing matcher of a
// remembered decision is the exact resource, and neither the revision seen nor
// the confirmation counts.
func SameChoice(a, b Choice) bool {
	return a.Decision == b.Decision && a.matcherID() == b.matcherID()
}

func (c Choice) matcherID() string {
	if c.MatcherID == "" && Remembered(c.Decision) {
		return ExactResource
	}
	return c.MatcherID
}

// CheckDecision judges a choice on a request that waits, and returns the
// matcher to remember, nil for a decision for once. current is the newest
// policy revision. It refuses, in this order:
//
//   - unknown_matcher: a matcher with a decision for once, one that was not
//     suggested, or none where there is no exact one
//   - decision_not_allowed: not among the request's allowed decisions
//   - invalid_command: a workspace or global decision that does not say which
//     policy revision was seen
//   - policy_conflict: the policy has moved on from the revision seen
//   - workspace_required, confirmation_required
func CheckDecision(req events.PermissionRequest, c Choice, current uint64) (*events.Matcher, *Refusal) {
	m, r := chosenMatcher(req, c)
	if r != nil {
		return nil, r
	}
	switch {
	case !slices.Contains(req.AllowedDecisions, c.Decision):
		return nil, refuse(CodeDecisionNotAllowed, "%.40q is not among the allowed decisions %v", c.Decision, req.AllowedDecisions)
	case Durable(c.Decision) && c.ExpectedRevision == nil:
		return nil, refuse(CodeInvalidCommand, "%s needs expected_policy_revision, the revision that was seen", c.Decision)
	case c.ExpectedRevision != nil && *c.ExpectedRevision != current:
		return nil, refuse(CodePolicyConflict, "the policy stands at revision %d, not %d; look at the request again", current, *c.ExpectedRevision)
	case c.Decision == AllowWorkspace && strings.TrimSpace(req.Workspace) == "":
		return nil, refuse(CodeWorkspaceRequired, "the session has no workspace to remember this for")
	case c.Decision == AllowGlobal && !c.ConfirmGlobal:
		return nil, refuse(CodeConfirmationRequired, "a global rule needs confirm_global")
	}
	return m, nil
}

// chosenMatcher finds the matcher that the choice names.
func chosenMatcher(req events.PermissionRequest, c Choice) (*events.Matcher, *Refusal) {
	if !Remembered(c.Decision) {
		if c.MatcherID != "" {
			return nil, refuse(CodeUnknownMatcher, "a decision for once takes no matcher")
		}
		return nil, nil
	}
	for _, m := range req.SuggestedMatchers {
		if m.ID == c.MatcherID || c.MatcherID == "" && m.Kind == ExactResource {
			return &m, nil
		}
	}
	// What does not allow remembering suggests no matcher; then the decision
	// itself is what is wrong.
	if !slices.Contains(req.AllowedDecisions, c.Decision) {
		return nil, refuse(CodeDecisionNotAllowed, "%.40q is not among the allowed decisions %v", c.Decision, req.AllowedDecisions)
	}
	return nil, refuse(CodeUnknownMatcher, "%.80q is none of the suggested matchers", c.MatcherID)
}

// RuleFor spells the durable rule of a workspace or global decision. Its id
// follows from scope, session, call and generation, so that a retry makes the
// same rule again.
func RuleFor(session, callID string, req events.PermissionRequest, decision string, m events.Matcher) Rule {
	r := Rule{Effect: EffectAllow, Scope: ScopeGlobal, PermissionType: req.PermissionType, Matcher: m}
	if decision == AllowWorkspace {
		r.Scope, r.Workspace = ScopeWorkspace, strings.TrimSpace(req.Workspace)
	}
	// The parts are told apart by their lengths: a call id may hold anything.
	key := fmt.Sprintf("%s %d:%s %d:%s %s", r.Scope, len(session), session, len(callID), callID, req.Generation)
	r.RuleID = "decision-" + events.Hash([]byte(key))[:32]
	return r
}

// GrantFor spells what a session decision leaves to remember.
func GrantFor(req events.PermissionRequest, decision string, m events.Matcher, expiresAt time.Time) Grant {
	return Grant{
		ID: req.Generation, Deny: decision == DenySession, Tool: req.ToolName, Type: req.PermissionType, Matcher: m, ExpiresAt: expiresAt,
	}
}
