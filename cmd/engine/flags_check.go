package main

import (
	"fmt"
	"strconv"

	"culm/internal/config"
)

// check judges the flags one by one, by the rules of the configuration file: to
// engine.Config a zero value means the default, here it is what somebody wrote.
func (f *flags) check() error {
	given := []struct {
		name, value string
		optional    bool // empty means not given
	}{
		{"nats", f.NATS, true},
		{"listen", f.Listen, false},
		{"data", f.Data, false},
		{"sync", f.Sync, true},
		{"prefix", f.Prefix, false},
		{"lease", f.Lease.String(), false},
		{"replicas", strconv.Itoa(f.Replicas), false},
		{"layout", f.Layout, false},
		{"http", f.HTTP, false},
		{"http-tokens", f.HTTPTokens, true},
		{"http-actor", f.HTTPActor, true},
		{"sessions", strconv.Itoa(f.Sessions), false},
	}
	for _, g := range given {
		if g.optional && g.value == "" {
			continue
		}
		switch problem := config.SettingProblem(g.name, g.value); {
		case problem == "":
		case g.name == "nats": // it may hold a password
			return fmt.Errorf("--%s %s", g.name, problem)
		default:
			return fmt.Errorf("--%s %q %s", g.name, g.value, problem)
		}
	}
	return nil
}
