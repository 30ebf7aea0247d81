package routing_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate/routing"
	"culm/events"
)

func session(provider, model string) events.Settings {
	return events.Settings{Model: &events.Model{Provider: provider, Model: model}}
}

func instance(id, typ string, more ...func(*routing.Instance)) routing.Instance {
	i := routing.Instance{ID: id, Type: typ, Enabled: true}
	for _, f := range more {
		f(&i)
	}
	return i
}

func off(i *routing.Instance)    { i.Enabled = false }
func marked(i *routing.Instance) { i.Default = true }
func models(names ...string) func(*routing.Instance) {
	return func(i *routing.Instance) { i.Models = names }
}

func mustPlan(t *testing.T, c routing.Config, q routing.Claim) routing.Plan {
	t.Helper()
	p, err := c.Plan(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustRefuse(t *testing.T, c routing.Config, q routing.Claim, code string, reason routing.Reason) *routing.Error {
	t.Helper()
	p, err := c.Plan(q)
	e, ok := errors.AsType[*routing.Error](err)
	if !ok || e.Code != code || e.Reason != reason {
		t.Fatalf("plan %+v, error %v; want %s, %s", p, err, code, reason)
	}
	return e
}

// A type goes to its default instance, and the session's ref with it.
func TestPlan_TypeGoesToItsDefaultInstance(t *testing.T) {
	t.Parallel()
	c := routing.Config{Instances: []routing.Instance{instance("openai-work", "openai", marked), instance("openai-a", "openai")}}
	p := mustPlan(t, c, routing.Claim{Session: session("openai", "gpt-5")})
	want := routing.Plan{
		Ref:       &events.Model{Provider: "openai-work", Model: "gpt-5"},
		Roster:    events.Roster{Primary: events.RosterModel{Provider: "openai-work", Model: "gpt-5", Type: "openai"}},
		Reasoning: events.Reasoning{Source: "none"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An exact id that is disabled is an error, though another instance of
// its type would do.
func TestPlan_DisabledIDIsNotReplaced(t *testing.T) {
	t.Parallel()
	c := routing.Config{Instances: []routing.Instance{instance("openai-work", "openai", marked), instance("openai-a", "openai", off)}}
	e := mustRefuse(t, c, routing.Claim{Session: session("openai-a", "m")}, routing.CodeUnavailable, routing.ReasonDisabled)
	if e.Key != "openai-a" || !strings.Contains(e.Message, "enable it") {
		t.Errorf("%+v", e)
	}
}

// A typo is an error.
func TestPlan_TypoIsNotGuessed(t *testing.T) {
	t.Parallel()
	c := routing.Config{Instances: []routing.Instance{instance("openai-work", "openai", marked)}}
	for _, typo := range []string{"opnai", "openai-2", "OpenAI", "openai work", "openai-work2"} {
		e := mustRefuse(t, c, routing.Claim{Session: session(typo, "m")}, routing.CodeUnavailable, routing.ReasonUnknown)
		if !strings.Contains(e.Message, "openai-work") {
			t.Errorf("the message names no instance: %s", e.Message)
		}
	}
}

// Nothing of the roles comes from the session's provider or model.
func TestPlan_RolesDoNotComeFromTheSession(t *testing.T) {
	t.Parallel()
	c := routing.Config{
		Instances: []routing.Instance{instance("Q", "openai"), instance("Q2", "gemini"), instance("Z", "anthropic", models("MZ", "MZ2"))},
		Defaults:  routing.Defaults{Fast: &events.Model{Provider: "Q", Model: "M"}, Background: &events.Model{Provider: "Q2", Model: "M2"}},
	}
	p := mustPlan(t, c, routing.Claim{Session: session("Z", "MZ2"), Resume: routing.Resume{Fast: "F"}})
	back := &events.RosterModel{Provider: "Q2", Model: "M2", Type: "gemini"}
	want := events.Roster{
		Primary:       events.RosterModel{Provider: "Z", Model: "MZ2", Type: "anthropic"},
		Fast:          &events.RosterModel{Provider: "Q", Model: "F", Type: "openai"},
		Background:    back,
		Summarization: back,
	}
	if diff := cmp.Diff(want, p.Roster); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlan_WhoHolds: the list alone decides what exists; without one, what the
// claiming runner says; without either, the name stands as it is.
func TestPlan_WhoHolds(t *testing.T) {
	t.Parallel()
	list := []routing.Instance{instance("a", "openai"), instance("b", "openai", off)}
	for _, c := range []struct {
		name     string
		list     []routing.Instance
		provider string
		held     []string
		code     string // "" for an answer
		key      string
	}{
		{"list, runner says nothing", list, "a", nil, "", "a"},
		{"list, runner holds it", list, "openai", []string{"x", "a"}, "", "a"},
		{"list, runner holds another", list, "a", []string{"b"}, routing.CodeNotHeld, ""},
		{"list, runner holds nothing", list, "a", []string{}, routing.CodeNotHeld, ""},
		{"list, runner holds what is disabled", list, "b", []string{"b"}, routing.CodeUnavailable, ""},
		{"list, runner holds what is not listed", list, "c", []string{"c"}, routing.CodeUnavailable, ""},
		{"list, blank", list, " ", []string{"a"}, routing.CodeUnavailable, ""},
		{"no list, runner says nothing", nil, " test ", nil, "", "test"},
		{"no list, runner holds it", nil, "test", []string{"test"}, "", "test"},
		{"no list, runner holds another", nil, "test", []string{"other"}, routing.CodeNotHeld, ""},
		{"no list, runner holds nothing", nil, "openai", []string{}, routing.CodeNotHeld, ""},
		{"no list, blank", nil, " ", []string{"a"}, routing.CodeUnavailable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := routing.Config{Instances: c.list}.Plan(routing.Claim{Session: session(c.provider, "m"), Held: c.held})
			e, _ := errors.AsType[*routing.Error](err)
			switch {
			case c.code == "" && (err != nil || p.Roster.Primary.Provider != c.key || p.Ref.Provider != c.key):
				t.Errorf("%+v, %v", p, err)
			case c.code != "" && (e == nil || e.Code != c.code || e.Role != routing.RolePrimary || p.Ref != nil):
				t.Errorf("%+v, %v, want %s", p, err, c.code)
			}
		})
	}
}

// TestPlan_SessionThatNamesNoModel goes through everything that can serve one,
// each there or not.
func TestPlan_SessionThatNamesNoModel(t *testing.T) {
	t.Parallel()
	const resume, chat, dflt, dfltOff, second, listed = 1, 2, 4, 8, 16, 32
	for cell := range 64 {
		var c routing.Config
		var q routing.Claim
		if cell&listed != 0 {
			c.Instances = []routing.Instance{instance("one", "openai", models("first", "second"))}
			if cell&second != 0 {
				c.Instances = append(c.Instances, instance("two", "gemini"))
			}
			if cell&dflt != 0 {
				c.Instances[0].Default = true
				c.Instances[0].Enabled = cell&dfltOff == 0
			}
		}
		if cell&chat != 0 {
			c.Defaults.Chat = &events.Model{Provider: "one", Model: "second"}
		}
		if cell&resume != 0 {
			q.Resume.Provider = "one"
		}
		p, err := c.Plan(q)
		var want events.RosterModel
		fails := false
		isOff := cell&dflt != 0 && cell&dfltOff != 0 && cell&listed != 0
		switch {
		case cell&listed == 0 && cell&(resume|chat) == 0:
		case cell&listed == 0:
			want = events.RosterModel{Provider: "one", Type: "one"}
			if cell&resume == 0 {
				want.Model = "second"
			}
		case isOff:
			fails = true
		case cell&(resume|dflt) == 0 && cell&chat != 0:
			want = events.RosterModel{Provider: "one", Type: "openai", Model: "second"}
		case cell&resume != 0, cell&chat == 0 && cell&dflt != 0, cell&second == 0 && cell&chat == 0:
			want = events.RosterModel{Provider: "one", Type: "openai", Model: "first"}
		case cell&chat != 0:
			want = events.RosterModel{Provider: "one", Type: "openai", Model: "second"}
		default:
			fails = true
		}
		if fails != (err != nil) || p.Roster.Primary != want || p.Ref != nil {
			t.Errorf("cell %06b: %+v, %v; want %+v, fails %t", cell, p, err, want, fails)
		}
	}
}

func TestPlan_ModelThatTheInstanceDoesNotListIsRefused(t *testing.T) {
	t.Parallel()
	c := routing.Config{Instances: []routing.Instance{instance("a", "openai", models("m1", "m2"))}}
	e := mustRefuse(t, c, routing.Claim{Session: session("openai", "m3")}, routing.CodeUnavailable, routing.ReasonModel)
	if !strings.Contains(e.Message, "m1, m2") || e.Role != routing.RolePrimary {
		t.Errorf("%+v", e)
	}
}

func TestPlan_RoleOfAProviderThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	c := routing.Config{
		Instances: []routing.Instance{instance("a", "openai"), instance("b", "openai", off)},
		Defaults:  routing.Defaults{Summarization: &events.Model{Provider: "b", Model: "m"}},
	}
	e := mustRefuse(t, c, routing.Claim{Session: session("a", "m")}, routing.CodeUnavailable, routing.ReasonDisabled)
	if e.Role != routing.RoleSummarization {
		t.Errorf("%+v", e)
	}
	c.Instances = nil
	mustRefuse(t, c, routing.Claim{Session: session("a", "m"), Held: []string{"a"}}, routing.CodeNotHeld, routing.ReasonNotHeld)
}

func TestPlan_ReasoningAndGoldComeWithIt(t *testing.T) {
	t.Parallel()
	c := routing.Config{Instances: []routing.Instance{instance("a", "openai")}, Gold: []byte(`{"enabled":true}`)}
	c.Instances[0].ReasoningEffort = "high"
	p := mustPlan(t, c, routing.Claim{Session: session("a", "m")})
	if p.Reasoning != (events.Reasoning{Effort: "high", Source: "provider_default"}) || !p.Gold.Enabled || p.Gold.Source != "config" {
		t.Errorf("%+v", p)
	}
	own := session("a", "m")
	own.ReasoningEffort, own.Gold = "low", []byte(`{"enabled":7}`)
	p = mustPlan(t, c, routing.Claim{Session: own, Effort: "medium"})
	if p.Reasoning != (events.Reasoning{Effort: "low", Source: "session"}) || p.Gold.Enabled || !p.Gold.SessionBroken {
		t.Errorf("%+v", p)
	}
}

func TestTypes_AreInOrder(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(routing.Types()) || !slices.IsSortedFunc(routing.Types(), strings.Compare) || !routing.KnownType("recorded") {
		t.Error(routing.Types())
	}
}
