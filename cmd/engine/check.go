package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"culm/aggregate/routing"
	"culm/events"
	"culm/internal/config"
	"culm/internal/engine"
)

// checkConfig prints what the configuration means and returns the exit status:
// exitUsage where an engine would not start with it.
func checkConfig(file *settings, cfg engine.Config, stdout, stderr io.Writer) int {
	err := errors.Join(cfg.Check(), recordings(file))
	if err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return exitUsage
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if file.path == "" {
		fmt.Fprintln(w, "no configuration file is named: defaults, flags and CULM_ variables hold")
	} else {
		fmt.Fprintf(w, "%s is good\n", file.path)
	}
	fmt.Fprintf(w, "digest %s\n", file.Digest())
	if len(file.Providers) == 0 {
		fmt.Fprintf(w, "\nno providers are listed: what runners hold decides; the built-in runner holds %q, a sample recording\n", engine.SampleProvider)
	} else {
		printInstances(w, file.Providers)
		printNames(w, file.Routing())
		printRoles(w, file.Routing())
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return exitUsage
	}
	return exitOK
}

// recordings says which recordings of enabled instances cannot be read.
func recordings(file *settings) error {
	var errs []error
	for _, p := range file.Providers {
		if !p.Enabled || p.Type != routing.TypeRecorded {
			continue
		}
		if info, err := os.Stat(p.File); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", p.ID, err))
		} else if info.IsDir() {
			errs = append(errs, fmt.Errorf("provider %s: %s is a folder", p.ID, p.File))
		}
	}
	return errors.Join(errs...)
}

func printInstances(w io.Writer, list []config.Provider) {
	fmt.Fprintln(w, "\nINSTANCE\tTYPE\tSTATE\tKEY")
	for _, p := range list {
		state := "enabled"
		if !p.Enabled {
			state = "disabled"
		}
		if p.Default {
			state += ", default"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", p.ID, p.Type, state, keyState(p.APIKeyEnv))
		if p.Enabled && !engine.Serves(p.Type) {
			fmt.Fprint(w, "\tno client in this engine: its runs wait for a runner elsewhere")
		}
		fmt.Fprintln(w)
	}
}

// keyState says whether the key is there, and never what it is.
func keyState(env string) string {
	switch {
	case env == "":
		return "none"
	case os.Getenv(env) == "":
		return env + " (not set)"
	}
	return env + " (set)"
}

func printNames(w io.Writer, c routing.Config) {
	fmt.Fprintln(w, "\nA SESSION NAMES\tAND GETS")
	for _, i := range c.Instances {
		fmt.Fprintf(w, "%s\t%s\n", i.ID, resolved(i.ID, c))
	}
	for _, t := range routing.Types() {
		if _, shadowed := c.Instance(t); !shadowed {
			fmt.Fprintf(w, "%s\t%s\n", t, resolved(t, c))
		}
	}
	p, err := c.Plan(routing.Claim{})
	if err != nil {
		fmt.Fprintf(w, "no model\t%s\n", refusal(err))
		return
	}
	fmt.Fprintf(w, "no model\t%s\n", pairOf(&p.Roster.Primary))
}

func resolved(name string, c routing.Config) string {
	key, err := routing.Resolve(name, c, c.Exists())
	if err != nil {
		return refusal(err)
	}
	return key
}

func refusal(err error) string {
	if e, ok := errors.AsType[*routing.Error](err); ok {
		return "refused: " + e.Message
	}
	return "refused: " + err.Error()
}

// printRoles prints the roles that are the same for every session.
func printRoles(w io.Writer, c routing.Config) {
	r, err := routing.Roster(events.RosterModel{}, c, routing.Resume{}, c.Exists())
	if err != nil {
		fmt.Fprintf(w, "\nROLES\t%s\n", refusal(err))
		return
	}
	fmt.Fprintln(w, "\nROLE\tMODEL")
	for _, role := range []struct {
		name string
		m    *events.RosterModel
	}{{routing.RoleFast, r.Fast}, {routing.RoleBackground, r.Background}, {routing.RoleSummarization, r.Summarization}} {
		fmt.Fprintf(w, "%s\t%s\n", role.name, pairOf(role.m))
	}
}

func pairOf(m *events.RosterModel) string {
	switch {
	case m == nil:
		return "the first that the run's own instance lists"
	case m.Model == "":
		return m.Provider + ", its own default model"
	}
	return m.Provider + ", " + m.Model
}
