package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipe is how the Makefile builds the binaries; it names the linker's flags.
var recipe = regexp.MustCompile(`\$\(GO\) build -ldflags '([^']*)' -o bin/ \./cmd/\.\.\.`)

// TestBuild_EveryBinarySaysItsRelease: what `make build` makes starts, has help
// on standard output, and knows the release that it was given.
func TestBuild_EveryBinarySaysItsRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	must(t, err)
	found := recipe.FindSubmatch(text)
	if found == nil {
		t.Fatal("the Makefile builds in another way than this test")
	}
	const release = "v9.8.7-test"
	flags := strings.ReplaceAll(string(found[1]), "$(VERSION)", release)
	mains, err := filepath.Glob("../../cmd/*/main.go")
	must(t, err)
	if len(mains) < 3 {
		t.Fatalf("binaries: %v", mains)
	}
	dir := t.TempDir()
	args := slices.Concat([]string{"build"}, raceArgs, []string{"-ldflags", flags, "-o", dir + "/", "culm/cmd/..."})
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil { //nolint:gosec // fixed names
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		for flag, want := range map[string]string{"--version": release, "--help": "Usage: " + name} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), flag) //nolint:gosec // built above
			cmd.Dir, cmd.Stderr = dir, os.Stderr
			if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s %s: %v, want %q in\n%s", name, flag, err, want, out)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(mains) {
		t.Errorf("saying so left something behind: %v %v", left, err)
	}
}
