package version

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		"a release":         {"v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}}, "v1.2.3"},
		"a build of a tag":  {"", &debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}}, "v1.0.0"},
		"go run":            {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, unreleased},
		"nothing is known":  {"", nil, unreleased},
		"a stripped binary": {"", &debug.BuildInfo{}, unreleased},
	} {
		if got := of(c.release, c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A linker flag that names no variable is passed over in silence.
func TestTheBuildSetsTheRelease(t *testing.T) {
	for _, file := range []string{"../../Makefile", "../../Dockerfile"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "-X culm/internal/version.release=") || strings.Contains(string(text), "-X main.") {
			t.Errorf("%s does not set culm/internal/version.release", file)
		}
	}
}
