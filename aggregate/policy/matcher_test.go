package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"culm/events"
)

// fits is which kinds go with which types, as the documentation has it.
var fits = map[string][]string{
	ExactResource: Types(),
	ToolAction:    Types(),
	PathSubtree:   {WriteFile, DeleteOperation},
	CommandPrefix: {ExecuteCommand, GitWrite, TerminalSession},
	HTTPOrigin:    {HTTPRequest},
}

// resources are, per type, a resource and a pattern per kind that covers it.
var covering = map[string]string{
	ExactResource: "", ToolAction: "", // the resource itself
	PathSubtree: "/work/p", CommandPrefix: "git push", HTTPOrigin: "https://example.com",
}

func resourceOf(permissionType string) string {
	switch permissionType {
	case WriteFile, DeleteOperation:
		return "/work/p/a.txt"
	case ExecuteCommand, GitWrite, TerminalSession:
		return "git push origin"
	case HTTPRequest:
		return "https://example.com/a"
	}
	return "click:submit"
}

func TestMatchers_EveryKindWithEveryType(t *testing.T) {
	t.Parallel()
	for _, kind := range append(Kinds(), "", "glob", "Exact_Resource") {
		for _, permissionType := range append(Types(), "", "something_else") {
			r := Request{Tool: "T", Type: permissionType, Resource: resourceOf(permissionType)}
			m := events.Matcher{Kind: kind, Pattern: covering[kind]}
			if m.Pattern == "" {
				m.Pattern = r.Resource
			}
			want := slices.Contains(fits[kind], permissionType)
			err := CheckMatcher(permissionType, m)
			if (err == nil) != want {
				t.Errorf("%s with %s: %v", kind, permissionType, err)
			}
			var field *FieldError
			if err != nil && !errors.As(err, &field) {
				t.Errorf("%s with %s: %v names no field", kind, permissionType, err)
			}
			if got := Match(m, r); got != want {
				t.Errorf("%s of %q covers %s of %q: %v", kind, m.Pattern, permissionType, r.Resource, got)
			}
			if !Touches(m, r) {
				t.Errorf("%s of %q does not touch %s of %q", kind, m.Pattern, permissionType, r.Resource)
			}
			// Something else of the same type is not covered, whatever the kind.
			other := r
			other.Resource = map[shape]string{shapePath: "/etc/b", shapeCommand: "go test", shapeURL: "http://other.net/", shapeText: "click:other"}[shapeOf(permissionType)]
			if Match(m, other) {
				t.Errorf("%s of %q covers %s of %q", kind, m.Pattern, permissionType, other.Resource)
			}
			if want && Touches(m, other) {
				t.Errorf("%s of %q touches %s of %q", kind, m.Pattern, permissionType, other.Resource)
			}
		}
	}
}

func TestExactResource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		permissionType, pattern, resource string
		match, touches                    bool
	}{
		{WriteFile, "/a/b", "/a/./b", true, true},
		{WriteFile, "/a/b", "/a/B", false, true},
		{WriteFile, "/a/b", "/a/b/c", false, false},
		{WriteFile, "a.txt", "a.txt", true, true},
		{WriteFile, "a.txt", "./a.txt", false, true}, // from the workspace
		{ExecuteCommand, "go test", "go test", true, true},
		{ExecuteCommand, "go test", "go  test", false, true},
		{ExecuteCommand, "go test", "true; go test", false, true},
		{ExecuteCommand, "go test", "go test ./...", false, false},
		{ExecuteCommand, "a; b", "a; b", true, true},
		{ExecuteCommand, "a; b", "a;  b", false, false},
		{HTTPRequest, "https://x.org/a", "https://x.org/a", true, true},
		{HTTPRequest, "https://x.org/a", "https://x.org/a ", false, true},
		{HTTPRequest, "https://x.org/a", "https://x.org/b", false, false},
		{BrowserInteraction, "x", "X", false, false},
	} {
		m, r := events.Matcher{Kind: ExactResource, Pattern: c.pattern}, Request{Type: c.permissionType, Resource: c.resource, Workspace: "/work/p"}
		if got := Match(m, r); got != c.match {
			t.Errorf("%q covers %q: %v", c.pattern, c.resource, got)
		}
		if got := Touches(m, r); got != c.touches {
			t.Errorf("%q touches %q: %v", c.pattern, c.resource, got)
		}
	}
}

func TestGitWrite_ReadsCommandsWithoutTheProgram(t *testing.T) {
	t.Parallel()
	m := events.Matcher{Kind: CommandPrefix, Pattern: "git push"}
	for resource, want := range map[string]bool{
		"git push": true, "push origin": true, "git -C /x push": true, "git -c a=b --git-dir /x push": true, "git commit": false, "commit": false,
	} {
		if got := Touches(m, Request{Type: GitWrite, Resource: resource}); got != want {
			t.Errorf("%q: %v", resource, got)
		}
	}
	if Match(m, Request{Type: GitWrite, Resource: "push origin"}) {
		t.Error("what allows takes the words as they stand")
	}
}

func TestCheckMatcher_NamesTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", MaxPattern+1)
	for _, c := range []struct{ permissionType, kind, pattern, field string }{
		{"x", ExactResource, "a", "permission_type"},
		{WriteFile, "x", "a", "matcher.kind"},
		{WriteFile, CommandPrefix, "a", "matcher.kind"},
		{WriteFile, ExactResource, "", "matcher.pattern"},
		{WriteFile, ExactResource, " \t", "matcher.pattern"},
		{WriteFile, ExactResource, long, "matcher.pattern"},
		{WriteFile, ExactResource, "a\x00", "matcher.pattern"},
		{WriteFile, ExactResource, "a\xff", "matcher.pattern"},
		{WriteFile, PathSubtree, "a/b", "matcher.pattern"},
		{WriteFile, PathSubtree, "/a/../b", "matcher.pattern"},
		{WriteFile, PathSubtree, "/a//b", "matcher.pattern"},
		{WriteFile, PathSubtree, "/a/./b", "matcher.pattern"},
		{ExecuteCommand, CommandPrefix, "a;b", "matcher.pattern"},
		{ExecuteCommand, CommandPrefix, "a *", "matcher.pattern"},
		{HTTPRequest, HTTPOrigin, "https://a/b", "matcher.pattern"},
		{HTTPRequest, HTTPOrigin, "https://a?b", "matcher.pattern"},
		{HTTPRequest, HTTPOrigin, "https://u@a", "matcher.pattern"},
		{HTTPRequest, HTTPOrigin, "a.com", "matcher.pattern"},
	} {
		err := CheckMatcher(c.permissionType, events.Matcher{Kind: c.kind, Pattern: c.pattern})
		var f *FieldError
		if !errors.As(err, &f) || f.Field != c.field || f.Problem == "" {
			t.Errorf("%s %s %.40q: %v, want field %s", c.permissionType, c.kind, c.pattern, err, c.field)
		}
	}
}

func TestMatch_NeverCoversAHardDeniedRequest(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"", " ", "a\x00", "a\xff", strings.Repeat("a", MaxResource+1)} {
		for _, permissionType := range Types() {
			for _, kind := range Kinds() {
				if Match(events.Matcher{Kind: kind, Pattern: resource}, Request{Type: permissionType, Resource: resource}) {
					t.Errorf("%s covers %s of %.20q", kind, permissionType, resource)
				}
			}
		}
	}
}

// genRequest draws requests whose resources often are near each other.
func genRequest() *rapid.Generator[Request] {
	resources := map[shape]*rapid.Generator[string]{
		shapePath: rapid.OneOf(rapid.SampledFrom([]string{"/work/p/a.txt", "/work/p/d/b", "/work/p", "/work/pq", "/etc/hosts", "a.txt", "../x", "~/x", "/"}),
			rapid.StringMatching(`/(work|etc)(/[a-c.]{1,2}){0,3}`)),
		shapeCommand: rapid.OneOf(rapid.SampledFrom([]string{
			"git push", "git push -f", "git status", "rm -rf /", "rm a", "cp a b", "go test ./...",
			"go test; rm a", "curl x | sh", "ls *", `git commit -m "a"`,
		}), rapid.StringMatching(`(git|go|rm)( (push|test|a|'b c'|;|\$x)){0,3}`)),
		shapeURL: rapid.OneOf(rapid.SampledFrom([]string{"https://example.com/a", "https://example.com", "http://example.com", "https://a@example.com/", "example.com"}),
			rapid.StringMatching(`https?://[ab]\.(com|org)(:[1-3])?(/[a-c]?)?`)),
		shapeText: rapid.SampledFrom([]string{"click:a", "click:b", "Read"}),
	}
	return rapid.Custom(func(t *rapid.T) Request {
		permissionType := rapid.SampledFrom(append(Types(), "something_else")).Draw(t, "type")
		return Request{
			Tool: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "tool"), Type: permissionType,
			Resource: resources[shapeOf(permissionType)].Draw(t, "resource"),
			Risk:     rapid.SampledFrom([]string{"", RiskLow, RiskMedium, RiskHigh}).Draw(t, "risk"),
			Mutating: rapid.Bool().Draw(t, "mutating"), Workspace: rapid.SampledFrom([]string{"", "/work/p", "/etc"}).Draw(t, "workspace"),
		}
	})
}

func TestSuggestMatchers_CoverTheRequestAndCanBeStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest().Draw(t, "request")
		got := SuggestMatchers(r)
		if (len(got) > 0) != KnownType(r.Type) {
			t.Fatalf("%d suggestions", len(got))
		}
		ids := map[string]bool{}
		for i, m := range got {
			if err := CheckMatcher(r.Type, m); err != nil || !Match(m, r) || !Touches(m, r) || m.ID == "" || ids[m.ID] {
				t.Fatalf("suggestion %+v: %v", m, err)
			}
			if (i == 0) != (m.Kind == ExactResource) {
				t.Fatalf("the exact resource comes first and once: %v", got)
			}
			ids[m.ID] = true
		}
	})
}

func TestSuggestMatchers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		permissionType, resource, workspace string
		want                                string // kind=pattern beside the exact resource
	}{
		{WriteFile, "/work/p/d/a.txt", "/work/p", "path_subtree=/work/p/d path_subtree=/work/p"},
		{WriteFile, "/work/p/a.txt", "/work/p", "path_subtree=/work/p"},
		{WriteFile, "/work/p/a.txt", "", "path_subtree=/work/p"},
		{WriteFile, "/etc/hosts", "", ""},
		{WriteFile, "/x", "/", ""},
		{WriteFile, "a.txt", "/work/p", ""},
		{DeleteOperation, "/work/p/a.txt", "/work", "path_subtree=/work/p"},
		{DeleteOperation, "/work/p/d/a.txt", "/work/p", "path_subtree=/work/p/d"},
		{ExecuteCommand, "go test ./...", "", "command_prefix=go test"},
		{ExecuteCommand, "go -C x test", "", ""},
		{ExecuteCommand, "pytest -x", "", "command_prefix=pytest"},
		{ExecuteCommand, "pytest -x; rm a", "", ""},
		{ExecuteCommand, "rm a", "", ""},
		{ExecuteCommand, "sudo ls", "", ""},
		{ExecuteCommand, "bash x.sh", "", ""},
		{ExecuteCommand, "python3.12 x.py", "", ""},
		{ExecuteCommand, "curl https://x", "", ""},
		{GitWrite, "git push origin main", "", "command_prefix=git push"},
		{HTTPRequest, "HTTPS://Example.com:8443/a?b", "", "http_origin=https://example.com:8443"},
		{HTTPRequest, "example.com", "", ""},
		{BrowserInteraction, "click:a", "", "tool_action=click:a"},
	} {
		var got []string
		for _, m := range SuggestMatchers(Request{Type: c.permissionType, Resource: c.resource, Workspace: c.workspace})[1:] {
			got = append(got, m.Kind+"="+m.Pattern)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s of %q in %q: %s; want %s", c.permissionType, c.resource, c.workspace, g, c.want)
		}
	}
}
