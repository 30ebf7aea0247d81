// Package version says which culm this is, the same for all of its programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// release is set by the build (Makefile, Dockerfile); "" means a build without
// them.
var release string

// unreleased is what a build says that knows nothing of itself.
const unreleased = "0.1.0-dev"

// String is the release, else what the Go tool knows of the build: the version
// of the module or of the commit. It is never empty.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return of(release, info)
}

func of(release string, info *debug.BuildInfo) string {
	built := ""
	if info != nil && info.Main.Version != "(devel)" {
		built = info.Main.Version
	}
	return cmp.Or(release, built, unreleased)
}
