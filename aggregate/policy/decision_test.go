package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/events"
)

func waiting() events.PermissionRequest {
	r := Request{Tool: "Write", Type: WriteFile, Resource: "/work/p/d/a.txt", Workspace: "/work/p"}
	return events.PermissionRequest{
		Generation: "g1", ToolName: r.Tool, PermissionType: r.Type, Resource: r.Resource, Workspace: r.Workspace, PolicyRevision: 7,
		AllowedDecisions: Decisions(), SuggestedMatchers: SuggestMatchers(r),
	}
}

func rev(n uint64) *uint64 { return &n }

// What a decision may be, and its neighbours that it may not.
func TestCheckDecision(t *testing.T) {
	t.Parallel()
	noWorkspace, onceRequest, wide := waiting(), waiting(), waiting()
	noWorkspace.Workspace = " "
	onceRequest.AllowedDecisions, onceRequest.SuggestedMatchers = onceOnly(), nil
	wide.SuggestedMatchers = wide.SuggestedMatchers[1:]
	for _, c := range []struct {
		name    string
		request events.PermissionRequest
		choice  Choice
		code    string
		matcher string // its kind
	}{
		{"once", waiting(), Choice{Decision: AllowOnce}, "", ""},
		{"deny once", waiting(), Choice{Decision: DenyOnce, ExpectedRevision: rev(7)}, "", ""},
		{"once with a matcher", waiting(), Choice{Decision: AllowOnce, MatcherID: ExactResource}, CodeUnknownMatcher, ""},
		{"session, default matcher", waiting(), Choice{Decision: AllowSession}, "", ExactResource},
		{"session, named matcher", waiting(), Choice{Decision: AllowSession, MatcherID: PathSubtree}, "", PathSubtree},
		{"deny session", waiting(), Choice{Decision: DenySession, MatcherID: "path_subtree:workspace"}, "", PathSubtree},
		{"session, unknown matcher", waiting(), Choice{Decision: AllowSession, MatcherID: "m9"}, CodeUnknownMatcher, ""},
		{"session, no exact matcher", wide, Choice{Decision: AllowSession}, CodeUnknownMatcher, ""},
		{"session where only once is allowed", onceRequest, Choice{Decision: AllowSession}, CodeDecisionNotAllowed, ""},
		{"global where only once is allowed", onceRequest, Choice{Decision: AllowGlobal, MatcherID: "x"}, CodeDecisionNotAllowed, ""},
		{"no decision at all", waiting(), Choice{Decision: "maybe"}, CodeDecisionNotAllowed, ""},
		{"workspace", waiting(), Choice{Decision: AllowWorkspace, ExpectedRevision: rev(7)}, "", ExactResource},
		{"workspace without revision", waiting(), Choice{Decision: AllowWorkspace}, CodeInvalidCommand, ""},
		{"workspace without workspace", noWorkspace, Choice{Decision: AllowWorkspace, ExpectedRevision: rev(7)}, CodeWorkspaceRequired, ""},
		{"global without revision", waiting(), Choice{Decision: AllowGlobal, ConfirmGlobal: true}, CodeInvalidCommand, ""},
		{"global without confirmation", waiting(), Choice{Decision: AllowGlobal, ExpectedRevision: rev(7)}, CodeConfirmationRequired, ""},
		{"global", waiting(), Choice{Decision: AllowGlobal, ExpectedRevision: rev(7), ConfirmGlobal: true, MatcherID: PathSubtree}, "", PathSubtree},
		{"old revision", waiting(), Choice{Decision: AllowGlobal, ExpectedRevision: rev(6), ConfirmGlobal: true}, CodePolicyConflict, ""},
		{"old revision for once", waiting(), Choice{Decision: AllowOnce, ExpectedRevision: rev(0)}, CodePolicyConflict, ""},
	} {
		m, r := CheckDecision(c.request, c.choice, 7)
		code, kind := "", ""
		if r != nil {
			code = r.Code
		}
		if m != nil {
			kind = m.Kind
		}
		if code != c.code || kind != c.matcher {
			t.Errorf("%s: %v, matcher %q", c.name, r, kind)
		}
	}
}

// The same decision again, said with other words around it.
func TestSameChoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b Choice
		want bool
	}{
		{Choice{Decision: AllowSession}, Choice{Decision: AllowSession, MatcherID: ExactResource}, true},
		{Choice{Decision: AllowGlobal, ExpectedRevision: rev(1), ConfirmGlobal: true}, Choice{Decision: AllowGlobal, ExpectedRevision: rev(2)}, true},
		{Choice{Decision: AllowOnce}, Choice{Decision: AllowOnce, ExpectedRevision: rev(2)}, true},
		{Choice{Decision: AllowSession}, Choice{Decision: AllowSession, MatcherID: PathSubtree}, false},
		{Choice{Decision: AllowOnce}, Choice{Decision: AllowSession}, false},
		{Choice{Decision: AllowOnce}, Choice{Decision: AllowOnce, MatcherID: ExactResource}, false},
	} {
		if got := SameChoice(c.a, c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}

func TestRuleFor_IsTheSameForARetryAndPassesTheCheck(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, decision := range []string{AllowWorkspace, AllowGlobal} {
		for _, session := range []string{"s", "s 1", "s2"} {
			for _, call := range []string{"c", "1 c", "c\n", "emoji 🙂 * >"} {
				for _, generation := range []string{"g1", "g2"} {
					req := waiting()
					req.Generation = generation
					r := RuleFor(session, call, req, decision, req.SuggestedMatchers[0])
					if again := RuleFor(session, call, req, decision, req.SuggestedMatchers[0]); r != again {
						t.Fatalf("%+v, then %+v", r, again)
					}
					if err := CheckRule(r); err != nil {
						t.Fatal(err)
					}
					key := fmt.Sprintf("%q %q %q %q", decision, session, call, generation)
					if other, ok := seen[r.RuleID]; ok {
						t.Fatalf("%s and %s have one id", key, other)
					}
					seen[r.RuleID] = key
				}
			}
		}
	}
	r := RuleFor("s", "c", waiting(), AllowWorkspace, subtree("/work/p"))
	if r.Scope != ScopeWorkspace || r.Workspace != "/work/p" || r.Effect != EffectAllow {
		t.Errorf("%+v", r)
	}
}

func approval(decision string) Approval {
	a := Approval{Request: waiting(), Decision: decision, ExpiresAt: noon.Add(time.Minute)}
	if Remembered(decision) {
		a.Matcher = &a.Request.SuggestedMatchers[0]
	}
	return a
}

func restore(as ...Approval) ([]OneShot, []Grant, *Refusal) {
	return Restore("c1", "g1", "Write", "/work/p", as)
}

func TestRestore_GivesBackWhatWasApproved(t *testing.T) {
	t.Parallel()
	earlier := approval(AllowOnce)
	earlier.Request.Generation, earlier.Request.Resource = "g0", "/work/p/earlier"
	once, grants, r := restore(earlier, approval(AllowSession), approval(AllowWorkspace), approval(AllowGlobal), approval(AllowOnce))
	if r != nil {
		t.Fatal(r)
	}
	// The earlier gate's approval counts under the newest generation.
	if diff := cmp.Diff([]OneShot{{"c1", "g1", WriteFile, "/work/p/earlier"}, {"c1", "g1", WriteFile, "/work/p/d/a.txt"}}, once); diff != "" {
		t.Errorf("one-shots (-want +got):\n%s", diff)
	}
	want := []Grant{{ID: "g1", Tool: "Write", Type: WriteFile, Matcher: waiting().SuggestedMatchers[0], ExpiresAt: noon.Add(time.Minute)}}
	if diff := cmp.Diff(want, grants); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

// One bad approval, and nothing counts.
func TestRestore_RefusesWhatCannotBeProven(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Approval){
		"other workspace":     func(a *Approval) { *a = approval(AllowWorkspace); a.Request.Workspace = "/other" },
		"no workspace":        func(a *Approval) { *a = approval(AllowWorkspace); a.Request.Workspace = "" },
		"deny once":           func(a *Approval) { *a = approval(DenyOnce) },
		"deny session":        func(a *Approval) { *a = approval(DenySession) },
		"no decision":         func(a *Approval) { a.Decision = "" },
		"not allowed":         func(a *Approval) { a.Request.AllowedDecisions = []string{DenyOnce} },
		"blank generation":    func(a *Approval) { a.Request.Generation = " " },
		"other generation":    func(a *Approval) { a.Request.Generation = "g0" },
		"other tool":          func(a *Approval) { a.Request.ToolName = "Edit" },
		"session, no matcher": func(a *Approval) { *a = approval(AllowSession); a.Matcher = nil },
		"session, other matcher": func(a *Approval) {
			*a = approval(AllowSession)
			a.Matcher = &events.Matcher{ID: ExactResource, Kind: ExactResource, Pattern: "/x"}
		},
		"global, blank matcher": func(a *Approval) { *a = approval(AllowGlobal); a.Matcher = &events.Matcher{} },
	} {
		bad := approval(AllowOnce)
		change(&bad)
		once, grants, r := restore(approval(AllowSession), bad)
		if r == nil || r.Code != CodeAuthorizationRefused || once != nil || grants != nil {
			t.Errorf("%s: %v, %v, %v", name, once, grants, r)
		}
	}
	if _, _, r := Restore("c1", " ", "Write", "/work/p", []Approval{approval(AllowOnce)}); r == nil {
		t.Error("a blank generation")
	}
	if _, _, r := restore(slices.Repeat([]Approval{approval(AllowOnce)}, MaxApprovals)...); r != nil {
		t.Errorf("%d approvals: %v", MaxApprovals, r)
	}
	if _, _, r := restore(slices.Repeat([]Approval{approval(AllowOnce)}, MaxApprovals+1)...); r == nil {
		t.Errorf("%d approvals", MaxApprovals+1)
	}
}
