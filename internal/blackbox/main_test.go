package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// engineBinary and natsBinary are what the tests start.
var engineBinary, natsBinary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "culm-blackbox-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer stopShared()
	// Another user must be able to run what is built here (disk_test.go).
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // binaries only
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	engineBinary, natsBinary = os.Getenv("CULM_ENGINE"), filepath.Join(dir, "natsd")
	builds := map[string]string{natsBinary: "culm/internal/blackbox/natsd"}
	if engineBinary == "" {
		engineBinary = filepath.Join(dir, "engine")
		builds[engineBinary] = "culm/cmd/engine"
	}
	for out, pkg := range builds {
		args := append([]string{"build"}, raceArgs...)
		build := exec.Command("go", append(args, "-o", out, pkg)...) //nolint:gosec // fixed names
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n", pkg, err)
			return 1
		}
	}
	return m.Run()
}
