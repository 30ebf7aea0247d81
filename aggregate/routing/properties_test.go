package routing_test

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/aggregate/routing"
	"culm/events"
)

func drawConfig(t *rapid.T) routing.Config {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "openai", "openai-a", "openai-b", "gem"}), 0, 8, rapid.ID).Draw(t, "ids")
	var c routing.Config
	for _, id := range ids {
		c.Instances = append(c.Instances, routing.Instance{
			ID: id, Type: rapid.SampledFrom(routing.Types()).Draw(t, "type"), Enabled: rapid.Bool().Draw(t, "enabled"),
			Models: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m", "n", "o"}), 0, 3, rapid.ID).Draw(t, "models"),
		})
	}
	if n := len(ids); n > 0 {
		if i := rapid.IntRange(-1, n-1).Draw(t, "default"); i >= 0 {
			c.Instances[i].Default = true
		}
	}
	for _, into := range []**events.Model{&c.Defaults.Chat, &c.Defaults.Fast, &c.Defaults.Background, &c.Defaults.Summarization} {
		if rapid.Bool().Draw(t, "role") {
			*into = &events.Model{Provider: drawName(t), Model: rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "model")}
		}
	}
	return c
}

func drawName(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "c", "openai", "openai-a", " openai-b ", "gem", "gemini", "recorded"}), rapid.StringMatching(`[a-z]{0,8}`),
	).Draw(t, "name")
}

func drawLive(t *rapid.T) routing.Live {
	return routing.LiveKeys(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "openai", "openai-a", "openai-b", "gem", "gemini", "x"})).Draw(t, "live")...)
}

// allowed says what a key may be: live, and if it is configured, enabled and of
// the asked id or type.
func allowed(t *rapid.T, c routing.Config, live routing.Live, name, key string) {
	name = strings.TrimSpace(name)
	if _, ok := live[key]; !ok {
		t.Fatalf("%q is not live", key)
	}
	in, configured := c.Instance(key)
	switch {
	case key == "":
		t.Fatal("the key is blank")
	case configured && !in.Enabled:
		t.Fatalf("%q is disabled", key)
	case key != name && (!configured || in.Type != name):
		t.Fatalf("%q is neither the asked id nor of the asked type %q", key, name)
	}
}

func TestResolve_KeyIsLiveEnabledAndWhatWasAsked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, live, name := drawConfig(t), drawLive(t), drawName(t)
		if key, err := routing.Resolve(name, c, live); err == nil {
			allowed(t, c, live, name, key)
		}
	})
}

func TestResolve_TypoNeverResolves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, live := drawConfig(t), drawLive(t)
		known := append(routing.Types(), slices.Collect(maps.Keys(live))...)
		for _, i := range c.Instances {
			known = append(known, i.ID)
		}
		meant := rapid.Custom(func(t *rapid.T) string { return mutate(t, rapid.SampledFrom(known).Draw(t, "meant")) })
		typo := meant.Filter(func(s string) bool { return !slices.Contains(known, strings.TrimSpace(s)) }).Draw(t, "typo")
		if key, err := routing.Resolve(typo, c, live); err == nil {
			t.Fatalf("%q resolved to %q", typo, key)
		}
	})
}

// mutate makes one slip of the finger.
func mutate(t *rapid.T, s string) string {
	at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
	switch rapid.IntRange(0, 3).Draw(t, "slip") {
	case 0:
		return s[:at] + s[at+1:]
	case 1:
		return s[:at] + s[at:at+1] + s[at:]
	case 2:
		return s[:at] + strings.ToUpper(s[at:at+1]) + s[at+1:]
	}
	return s[:at] + rapid.StringMatching(`[a-z-]`).Draw(t, "letter") + s[at:]
}

func TestPlan_DoesNotDependOnTheOrderOfTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		q := routing.Claim{Session: session(drawName(t), rapid.SampledFrom([]string{"m", "n", "unknown"}).Draw(t, "model"))}
		if rapid.Bool().Draw(t, "held") {
			q.Held = append([]string{}, slices.Sorted(maps.Keys(drawLive(t)))...)
		}
		p, err := c.Plan(q)
		shuffled := c
		shuffled.Instances = slices.Clone(c.Instances)
		rand.New(rand.NewSource(rapid.Int64().Draw(t, "order"))).Shuffle(len(c.Instances), func(i, j int) {
			shuffled.Instances[i], shuffled.Instances[j] = shuffled.Instances[j], shuffled.Instances[i]
		})
		again, errAgain := shuffled.Plan(q)
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(err, errAgain); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestPlan_EveryPairOfAListIsAllowed: whatever a plan holds, each of its pairs
// is of an enabled instance, which lists the model if it lists any.
func TestPlan_EveryPairOfAListIsAllowed(t *testing.T) {
	t.Parallel()
	plans := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		q := routing.Claim{Session: session(drawName(t), "m"), Held: append([]string{}, slices.Sorted(maps.Keys(drawLive(t)))...)}
		if on := slices.Sorted(maps.Keys(c.Exists())); len(on) > 0 && rapid.Bool().Draw(t, "likely") {
			q.Session.Model.Provider = rapid.SampledFrom(on).Draw(t, "provider")
			q.Held, c.Defaults = on, routing.Defaults{Fast: &events.Model{Provider: rapid.SampledFrom(on).Draw(t, "role"), Model: "m"}}
		}
		q.Resume.Fast = rapid.SampledFrom([]string{"", "n", "p"}).Draw(t, "fast")
		q.Resume.Background.Provider = rapid.SampledFrom([]string{"", "a", "openai"}).Draw(t, "background")
		p, err := c.Plan(q)
		if err != nil || !c.Listed() {
			return
		}
		plans++
		if !slices.Contains(q.Held, p.Roster.Primary.Provider) {
			t.Fatalf("%q is not held", p.Roster.Primary.Provider)
		}
		for _, m := range []*events.RosterModel{&p.Roster.Primary, p.Roster.Fast, p.Roster.Background, p.Roster.Summarization} {
			if m == nil {
				continue
			}
			in, ok := c.Instance(m.Provider)
			if !ok || !in.Enabled || m.Type != in.Type || len(in.Models) > 0 && !slices.Contains(in.Models, m.Model) {
				t.Fatalf("%+v is no pair of %+v", *m, c.Instances)
			}
		}
	})
	if plans == 0 {
		t.Error("no drawn claim led to a plan")
	}
}
