package main

import (
	"fmt"
	"slices"
)

// overview is what culm alone says: enough to begin with.
const overview = `culm drives, watches and audits agent sessions that a culm engine keeps.

  culm session create NAME                  a session
  culm run NAME "…" --follow                have the model answer, and look on
  culm loop start NAME "…" -n 3 --follow    the same three times over, counted
  culm session list                         what there is, and what it does
  culm pending                              what waits for a person
  culm approve NAME    culm deny NAME       decide it
  culm watch                                events as they happen
  culm log NAME                             what is stored
  culm audit NAME                           whether all of it is still there
  culm page                                 address of the engine's web page
  culm demo                                 a loop on an engine for the occasion

culm --help lists all commands, culm help COMMAND tells about one.
Without an engine yet: go run ./cmd/engine starts one.
`

// bare answers a call without any argument, which does nothing and so is no
// success.
func (a *app) bare() int {
	fmt.Fprint(a.errOut, overview)
	return exitUsage
}

type help struct {
	Command []string `arg:"" optional:"" help:"The command, one or two words; left out, all of them."`
}

// Run shows what --help shows.
func (c *help) Run(a *app) error {
	_, err := a.parser.Parse(append(slices.Clone(c.Command), "--help"))
	if err != nil {
		return usage(err, nil)
	}
	return nil // not reached: --help ends the program
}
