package policy

import (
	"slices"
	"strings"
	"time"

	"culm/events"
)

// MaxApprovals is how many approvals one call may have gathered, the newest
// included.
const MaxApprovals = 64

// Approval is a decision on a request, as it was stored.
type Approval struct {
	Request   events.PermissionRequest
	Decision  string
	Matcher   *events.Matcher // of a remembered decision
	ExpiresAt time.Time       // of a session decision
}

// Restore turns the approvals of one call, oldest first, into what they allow
// now that it is replayed under generation. tool and workspace are the call's
// and the session's own. Every approval is checked before any counts; the
// refusal is authorization_refused (docs/permissions.md#replay).
//
// Durable decisions leave nothing here: their rules are the policy's. What an
// approval allows is judged again by Evaluate, so that a deny rule that came
// later still holds.
func Restore(callID, generation, tool, workspace string, approvals []Approval) ([]OneShot, []Grant, *Refusal) {
	if len(approvals) > MaxApprovals {
		return nil, nil, refuse(CodeAuthorizationRefused, "%d approvals, at most %d may be gathered", len(approvals), MaxApprovals)
	}
	if callID == "" || strings.TrimSpace(generation) == "" {
		return nil, nil, refuse(CodeAuthorizationRefused, "the call or its generation is blank")
	}
	for _, a := range approvals {
		if r := checkApproval(a, tool, workspace); r != nil {
			return nil, nil, r
		}
	}
	if n := len(approvals); n > 0 && approvals[n-1].Request.Generation != generation {
		return nil, nil, refuse(CodeAuthorizationRefused, "the newest approval is for another generation")
	}
	var once []OneShot
	var grants []Grant
	for _, a := range approvals {
		switch a.Decision {
		case AllowOnce: // earlier gates of the same call are passed again
			once = append(once, OneShot{CallID: callID, Generation: generation, Type: a.Request.PermissionType, Resource: a.Request.Resource})
		case AllowSession:
			grants = append(grants, GrantFor(a.Request, a.Decision, *a.Matcher, a.ExpiresAt))
		}
	}
	return once, grants, nil
}

func checkApproval(a Approval, tool, workspace string) *Refusal {
	q := a.Request
	switch {
	case strings.TrimSpace(q.Generation) == "":
		return refuse(CodeAuthorizationRefused, "an approval has no generation")
	case !Allows(a.Decision):
		return refuse(CodeAuthorizationRefused, "%.40q does not allow the call", a.Decision)
	case !slices.Contains(q.AllowedDecisions, a.Decision):
		return refuse(CodeAuthorizationRefused, "%s was not among the allowed decisions %v", a.Decision, q.AllowedDecisions)
	case !strings.EqualFold(q.ToolName, tool):
		return refuse(CodeAuthorizationRefused, "the approval is for tool %.64q, the call is of %.64q", q.ToolName, tool)
	case a.Decision == AllowWorkspace && !sameWorkspace(q.Workspace, workspace):
		return refuse(CodeAuthorizationRefused, "the approval is for another workspace than the session's")
	case Remembered(a.Decision) && (a.Matcher == nil || !suggested(q, *a.Matcher)):
		return refuse(CodeAuthorizationRefused, "the approval names none of the suggested matchers")
	}
	return nil
}

func suggested(q events.PermissionRequest, m events.Matcher) bool {
	return m.ID != "" && slices.Contains(q.SuggestedMatchers, m)
}
