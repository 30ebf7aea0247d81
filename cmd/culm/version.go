package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the build (Makefile); "" means a build from the sources.
var release string

type version struct{}

func (version) Run(a *app) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if a.JSON {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, "culm %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
	return err
}

// buildVersion is the release, else the commit the build knows of.
func buildVersion() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "commit " + s.Value[:12]
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "built from sources"
}
