package policy

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"culm/events"
)

func subtree(p string) events.Matcher { return events.Matcher{Kind: PathSubtree, Pattern: p} }

func TestPathSubtree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, resource string
		match             bool
	}{
		{"/work/p", "/work/p", true},
		{"/work/p", "/work/p/", true},
		{"/work/p/", "/work/p/a", true},
		{"/work/p", "/work/p/a/b.txt", true},
		{"/work/p", "/work//p/./a", true},
		{"/work/p", "/work/x/../p/a", true},
		{"/work/p", "/work/p/../q", false},
		{"/work/p", "/work/p/../../etc/passwd", false},
		{"/work/p", "/work/pq", false},
		{"/work/p", "/work", false},
		{"/work/p", "work/p/a", false},
		{"/work/p", "a", false},
		{"/work/p", "/WORK/p/a", false},
		{"/work/p", "/work/p\x00/a", false},
		{"/work/p", "/work/p/a\nb", false},
		{"/work/p", "/work/p/\xff", false},
		{"/work/p", "/work/p/" + strings.Repeat("a", 5000), false},
		{"/work/p", "~/a", false},
		{"/", "/anything", true},
		{"/work/../p", "/p/a", false}, // no clean pattern
		{"work", "/work/a", false},
	} {
		for _, permissionType := range []string{WriteFile, DeleteOperation} {
			r := Request{Type: permissionType, Resource: c.resource, Workspace: "/work/p"}
			if got := Match(subtree(c.pattern), r); got != c.match {
				t.Errorf("%q covers %s of %q: %v", c.pattern, permissionType, c.resource, got)
			}
			if c.match && !Touches(subtree(c.pattern), r) {
				t.Errorf("%q covers %q but does not touch it", c.pattern, c.resource)
			}
		}
	}
}

func TestPathSubtree_RestrictsWidely(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, resource, workspace string
		touches                   bool
	}{
		{WriteFile, "/etc/hosts", "", true},
		{WriteFile, "/ETC/hosts", "", true},
		{WriteFile, "/etcetera", "", false},
		{WriteFile, "../../etc/hosts", "/work/p", true},
		{WriteFile, "../etc/hosts", "/work/p", false},
		{WriteFile, "etc/hosts", "/work/p", false},
		{WriteFile, "etc/hosts", "/", true},
		{WriteFile, "a.txt", "", false},
		{WriteFile, "../a.txt", "", true},
		{WriteFile, "~/a.txt", "/work/p", true},
		{WriteFile, "/", "", false},
		{DeleteOperation, "/", "", true},
		{DeleteOperation, "/etc", "", true},
		{DeleteOperation, "/usr", "", false},
		{DeleteOperation, "..", "/etc/x", true},
	} {
		if got := Touches(subtree("/etc"), Request{Type: c.kind, Resource: c.resource, Workspace: c.workspace}); got != c.touches {
			t.Errorf("%s of %q in %q: %v", c.kind, c.resource, c.workspace, got)
		}
	}
}

func TestPathSubtree_AgreesWithWalkingUp(t *testing.T) {
	t.Parallel()
	elements := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "..", ".", ""}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		root := path.Clean("/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 3).Draw(t, "root"), "/"))
		resource := "/" + strings.Join(elements.Draw(t, "elements"), "/")
		var stack []string
		for _, e := range strings.Split(resource, "/") {
			switch e {
			case "", ".":
			case "..":
				stack = stack[:max(0, len(stack)-1)]
			default:
				stack = append(stack, e)
			}
		}
		want := root == "/"
		for n := range len(stack) + 1 {
			want = want || "/"+strings.Join(stack[:n], "/") == root
		}
		if got := Match(subtree(root), Request{Type: WriteFile, Resource: resource}); got != want {
			t.Fatalf("%q covers %q: %v", root, resource, got)
		}
	})
}

func FuzzPathSubtree(f *testing.F) {
	f.Add("/work/p", "/work/p/../q", "/w")
	f.Add("/", "..", "")
	f.Fuzz(func(t *testing.T, pattern, resource, workspace string) {
		for _, permissionType := range []string{WriteFile, DeleteOperation} {
			r := Request{Type: permissionType, Resource: resource, Workspace: workspace}
			touches := Touches(subtree(pattern), r)
			if !Match(subtree(pattern), r) {
				continue
			}
			if !touches {
				t.Fatalf("%q covers %q but does not touch it", pattern, resource)
			}
			clean := path.Clean(resource)
			if !strings.HasPrefix(resource, "/") || strings.ContainsRune(resource, 0) || !strings.HasPrefix(clean+"/", strings.TrimRight(pattern, "/")+"/") {
				t.Fatalf("%q covers %q", pattern, resource)
			}
		}
	})
}
