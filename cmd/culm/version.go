package main

import (
	"fmt"
	"runtime"

	"github.com/alecthomas/kong"

	build "culm/internal/version"
)

type version struct{}

func (version) Run(a *app) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{build.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if a.JSON {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, "culm %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
	return err
}

// versionFlag is --version, which needs no command.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(k *kong.Kong, a *app) error {
	if err := (version{}).Run(a); err != nil {
		return err
	}
	k.Exit(exitOK)
	return nil
}
