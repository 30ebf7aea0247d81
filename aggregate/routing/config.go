package routing

import (
	"cmp"
	"slices"

	"culm/events"
)

// Provider types that are built in: protocol families that runners speak.
const (
	TypeAnthropic = "anthropic"
	TypeGemini    = "gemini"
	TypeOpenAI    = "openai"
	TypeRecorded  = "recorded"
)

var builtIn = []string{TypeAnthropic, TypeGemini, TypeOpenAI, TypeRecorded}

// Types lists the built-in provider types in order.
func Types() []string { return slices.Clone(builtIn) }

// KnownType says whether t is a built-in provider type. Case counts.
func KnownType(t string) bool { return slices.Contains(builtIn, t) }

// Instance is one configured provider instance: an account at a provider.
type Instance struct {
	ID      string // token, unique
	Type    string // one of Types
	Enabled bool
	Default bool // at most one instance of a configuration
	// Models are those that the instance serves; empty is any. The first is
	// used where a role falls back on its provider.
	Models []string
	// ReasoningEffort is used where neither session nor request names one.
	ReasoningEffort string
}

// serves says whether the model may be asked of the instance.
func (i Instance) serves(model string) bool {
	return len(i.Models) == 0 || slices.Contains(i.Models, model)
}

// model is the one used where only the provider is known, "" for none.
func (i Instance) model() string {
	if len(i.Models) == 0 {
		return ""
	}
	return i.Models[0]
}

// Defaults are the models by role, for the whole installation. A session's own
// choice never reaches them. nil is a role that is not configured.
type Defaults struct {
	Chat          *events.Model // for sessions that name no model
	Fast          *events.Model
	Background    *events.Model
	Summarization *events.Model
}

// Config is one snapshot of what the installation configures. Functions of
// this package expect one that passes Check; the order of Instances does not
// matter.
type Config struct {
	// Instances is the list of providers. Where there is one it alone decides
	// what exists; where there is none, what a claiming runner holds decides.
	Instances []Instance
	Defaults  Defaults
	Gold      []byte // JSON object, empty for none
}

// Listed says that the configuration lists providers.
func (c Config) Listed() bool { return len(c.Instances) > 0 }

// Instance returns the instance with exactly this id.
func (c Config) Instance(id string) (Instance, bool) {
	for _, i := range c.Instances {
		if i.ID == id {
			return i, true
		}
	}
	return Instance{}, false
}

// DefaultInstance returns the instance that is marked as default.
func (c Config) DefaultInstance() (Instance, bool) {
	for _, i := range c.sorted() {
		if i.Default {
			return i, true
		}
	}
	return Instance{}, false
}

// enabled lists the enabled instances in the order of their ids.
func (c Config) enabled() []Instance {
	return slices.DeleteFunc(c.sorted(), func(i Instance) bool { return !i.Enabled })
}

func (c Config) sorted() []Instance {
	return slices.SortedFunc(slices.Values(c.Instances), func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// Live is the set of keys under which providers can be reached, each with the
// provider type that its registry knows, "" if it knows none.
type Live map[string]string

// LiveKeys makes a Live of keys whose types are not known.
func LiveKeys(keys ...string) Live {
	l := Live{}
	for _, k := range keys {
		l[k] = ""
	}
	return l
}

func (l Live) has(key string) bool { _, ok := l[key]; return ok }

// Exists is what a configuration with a list says is there: its enabled
// instances, and nothing else.
func (c Config) Exists() Live {
	l := Live{}
	for _, i := range c.enabled() {
		l[i.ID] = i.Type
	}
	return l
}
