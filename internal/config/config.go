package config

import (
	"time"

	"culm/aggregate/policy"
	"culm/aggregate/routing"
)

// File is a configuration file that has been read and checked.
type File struct {
	// Settings are the engine's settings by the names of their flags, each
	// spelled as for its flag. Flags and CULM_ variables win over them.
	Settings map[string]string
	Rules
}

// Rules are what decisions rest on. The zero value is an installation that
// configures nothing.
type Rules struct {
	Providers   []Provider // in the order of the file
	Defaults    routing.Defaults
	Permissions policy.Config
	Gold        []byte // JSON object with its keys in order; nil for none
}

// Provider is one configured provider instance.
type Provider struct {
	ID              string
	Type            string // one of routing.Types
	Enabled         bool
	Default         bool
	Models          []string
	ReasoningEffort string
	BaseURL         string // "" for that of the type; none for recorded
	APIKeyEnv       string // name of an environment variable, "" for no key
	File            string // recorded: path of the transcript
	Pace            time.Duration
}

// Routing is the part that the choice of providers and models rests on.
func (r Rules) Routing() routing.Config {
	c := routing.Config{Defaults: r.Defaults, Gold: r.Gold}
	for _, p := range r.Providers {
		c.Instances = append(c.Instances, routing.Instance{
			ID: p.ID, Type: p.Type, Enabled: p.Enabled, Default: p.Default, Models: p.Models, ReasoningEffort: p.ReasoningEffort,
		})
	}
	return c
}
