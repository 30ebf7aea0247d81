package routing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/aggregate/routing"
	"culm/events"
)

func TestCheck_NamesTheField(t *testing.T) {
	t.Parallel()
	many := make([]routing.Instance, routing.MaxInstances+1)
	for i := range many {
		many[i] = instance(fmt.Sprint("i", i), "openai")
	}
	ref := func(provider, model string) routing.Defaults {
		return routing.Defaults{Fast: &events.Model{Provider: provider, Model: model}}
	}
	for _, c := range []struct {
		name  string
		cfg   routing.Config
		paths []string
	}{
		{"empty", routing.Config{}, nil},
		{"good", routing.Config{Instances: []routing.Instance{instance("a", "openai", marked, models("m")), instance("b", "gemini", off)}, Defaults: ref("a", "m")}, nil},
		{"an id like its own type", routing.Config{Instances: []routing.Instance{instance("openai", "openai")}}, nil},
		{"an id like another type", routing.Config{Instances: []routing.Instance{instance("openai", "gemini")}}, []string{"providers[0].id"}},
		{"no id, no type", routing.Config{Instances: []routing.Instance{{}}}, []string{"providers[0].id", "providers[0].type"}},
		{"id with a dot", routing.Config{Instances: []routing.Instance{instance("a.b", "openai")}}, []string{"providers[0].id"}},
		{"twice", routing.Config{Instances: []routing.Instance{instance("a", "openai"), instance("a", "openai")}}, []string{"providers[1].id"}},
		{"two defaults", routing.Config{Instances: []routing.Instance{instance("a", "openai", marked), instance("b", "openai"), instance("c", "openai", marked)}}, []string{"providers[2].default"}},
		{"models", routing.Config{Instances: []routing.Instance{instance("a", "openai", models("m", " ", "unknown", "m", " x", "x\ny", strings.Repeat("x", 257)))}}, []string{"providers[0].models[1]", "providers[0].models[2]", "providers[0].models[3]", "providers[0].models[4]", "providers[0].models[5]", "providers[0].models[6]"}},
		{"too many models", routing.Config{Instances: []routing.Instance{instance("a", "openai", models(make([]string, 257)...))}}, []string{"providers[0].models"}},
		{"too many instances", routing.Config{Instances: many}, []string{"providers"}},
		{"effort", routing.Config{Instances: []routing.Instance{{ID: "a", Type: "openai", ReasoningEffort: "hihg"}}}, []string{"providers[0].reasoning_effort"}},
		{"role without a list", routing.Config{Defaults: ref("a", "m")}, []string{"defaults.fast"}},
		{"role without a provider", routing.Config{Instances: []routing.Instance{instance("a", "openai")}, Defaults: ref("", "m")}, []string{"defaults.fast.provider"}},
		{"role without a model", routing.Config{Instances: []routing.Instance{instance("a", "openai")}, Defaults: ref("a", "")}, []string{"defaults.fast.model"}},
		{"role of a disabled instance", routing.Config{Instances: []routing.Instance{instance("a", "openai", off)}, Defaults: ref("a", "m")}, []string{"defaults.fast.provider"}},
		{"role with a model of another", routing.Config{Instances: []routing.Instance{instance("a", "openai", models("m"))}, Defaults: ref("openai", "n")}, []string{"defaults.fast.model"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var paths []string
			for _, f := range c.cfg.Check() {
				paths = append(paths, f.Path)
				if f.Problem == "" {
					t.Errorf("%s: no problem is told", f.Path)
				}
			}
			if diff := cmp.Diff(c.paths, paths); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheck_RolesOfACheckedConfigurationResolve: what passes Check gives every
// session that can be served all of its roles.
func TestCheck_RolesOfACheckedConfigurationResolve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		if len(c.Check()) > 0 || !c.Listed() {
			return
		}
		for id, typ := range c.Exists() {
			if _, err := routing.Roster(events.RosterModel{Provider: id, Type: typ}, c, routing.Resume{}, c.Exists()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
