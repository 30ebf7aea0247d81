package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	// citation is how code and comments name a page: docs/rules.md#fence.
	citation = regexp.MustCompile(`\bdocs/([a-z0-9/-]+\.md)(?:#([a-z0-9-]+))?`)
	// reference is a link of a page to a page or to a place in itself.
	reference = regexp.MustCompile(`\]\(([A-Za-z0-9_./-]*\.md)?(?:#([A-Za-z0-9_-]+))?\)`)
	anchorID  = regexp.MustCompile(`<a id="([^"]+)">`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	fence     = regexp.MustCompile("(?ms)^```.*?^```")
)

// page is a Markdown page without its code blocks.
func page(t *testing.T, name string) (string, bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return "", false
	}
	return fence.ReplaceAllString(string(text), ""), true
}

// anchors are the places of a page that a link can name: its explicit anchors
// and its headings, spelled as GitHub does.
func anchors(text string) []string {
	var out []string
	for _, m := range anchorID.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		out = append(out, slug(m[1]))
	}
	return out
}

func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

// checkPlace fails unless the page exists and has the anchor, if one is named.
func checkPlace(t *testing.T, from, name, anchor string) {
	t.Helper()
	text, ok := page(t, name)
	switch {
	case !ok:
		t.Errorf("%s names %s, which is not there", from, name)
	case anchor != "" && !slices.Contains(anchors(text), anchor):
		t.Errorf("%s names %s#%s, and the page has no such place", from, name, anchor)
	}
}

// TestCitationsOfPagesAreThere: every page and place that the code names exists.
func TestCitationsOfPagesAreThere(t *testing.T) {
	found := 0
	walk(t, ".go", func(name, text string) {
		if strings.HasPrefix(name, "internal/archtest/") {
			return
		}
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			found++
			checkPlace(t, name, "docs/"+m[1], m[2])
		}
	})
	if found < 30 {
		t.Errorf("%d citations found; the search finds nothing any more", found)
	}
}

// TestLinksOfPagesAreThere: every link from page to page, and within a page.
func TestLinksOfPagesAreThere(t *testing.T) {
	walk(t, ".md", func(name, _ string) {
		text, _ := page(t, name)
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target := name
			if m[1] != "" {
				target = path.Join(path.Dir(name), m[1])
			}
			checkPlace(t, name, target, m[2])
		}
	})
}

// TestAnchorsAreUnique: a page has each explicit anchor once.
func TestAnchorsAreUnique(t *testing.T) {
	walk(t, ".md", func(name, text string) {
		seen := map[string]bool{}
		for _, m := range anchorID.FindAllStringSubmatch(text, -1) {
			if seen[m[1]] {
				t.Errorf("%s has the anchor %q twice", name, m[1])
			}
			seen[m[1]] = true
		}
	})
}

func walk(t *testing.T, ext string, visit func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ext:
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err == nil {
			visit(filepath.ToSlash(name), string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
