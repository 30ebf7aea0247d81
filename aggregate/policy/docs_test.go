package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readDocs(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The page names every step in its order, and every type, kind, mode,
// decision and danger.
func TestDocs_SayWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	text := readDocs(t)
	var steps []string
	for _, m := range regexp.MustCompile("(?m)^\\| [0-9]+ \\| `([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		steps = append(steps, m[1])
	}
	if got, want := strings.Join(steps, " "), strings.Join(Steps(), " "); got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
	for _, permissionType := range Types() {
		if !regexp.MustCompile("(?m)^\\| `" + permissionType + "` .*\\| " + TypeRisk(permissionType) + " \\|$").MatchString(text) {
			t.Errorf("type %s with its risk is missing", permissionType)
		}
	}
	names := append(append(append(Kinds(), Decisions()...), ConfiguredModes()...), StepNoHuman)
	for _, d := range Dangers() {
		names = append(names, d.ID)
	}
	for _, n := range names {
		if !strings.Contains(text, "`"+n+"`") {
			t.Errorf("%s is missing", n)
		}
	}
}

func TestDocs_HaveEveryAnchorThatIsReferredTo(t *testing.T) {
	t.Parallel()
	text := readDocs(t)
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		anchors[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	refs := regexp.MustCompile(`(?:permissions\.md|\]\()#([a-z-]+)`).FindAllStringSubmatch(text, -1)
	if len(refs) < 20 {
		t.Errorf("%d references", len(refs))
	}
	for _, m := range refs {
		if !anchors[m[1]] {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
}
