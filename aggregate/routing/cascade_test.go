package routing_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate/routing"
	"culm/events"
)

func TestReasoning_AllCells(t *testing.T) {
	t.Parallel()
	values := []string{"", "  ", "low", " high "}
	trimmed := map[string]string{"low": "low", " high ": "high"}
	for _, session := range values {
		for _, request := range values {
			for _, provider := range values {
				want := events.Reasoning{Source: "none"}
				for source, v := range map[string]string{"provider_default": provider, "request": request, "session": session} {
					rank := map[string]int{"none": 0, "provider_default": 1, "request": 2, "session": 3}
					if trimmed[v] != "" && rank[source] > rank[want.Source] {
						want = events.Reasoning{Effort: trimmed[v], Source: source}
					}
				}
				if got := routing.Reasoning(session, request, provider); got != want {
					t.Errorf("Reasoning(%q, %q, %q) = %+v, want %+v", session, request, provider, got, want)
				}
			}
		}
	}
}

// goldTexts are the states that a gold configuration can be in.
var goldTexts = map[string]struct {
	text            string
	present, usable bool
	enabled         bool
}{
	"absent":           {text: ""},
	"blank":            {text: " ", present: true},
	"empty text":       {text: `""`, present: true},
	"null":             {text: "null", present: true},
	"a list":           {text: "[]", present: true},
	"cut off":          {text: `{"enabled":true`, present: true},
	"enabled is text":  {text: `{"enabled":"true"}`, present: true},
	"goal is a number": {text: `{"enabled":true,"goal":1}`, present: true},
	"count is part":    {text: `{"enabled":true,"max_output_tokens":1.5}`, present: true},
	"count is minus":   {text: `{"enabled":true,"max_auto_continuations":-1}`, present: true},
	"other case":       {text: `{"Enabled":true}`, present: true, usable: true},
	"empty":            {text: "{}", present: true, usable: true},
	"disabled":         {text: `{"enabled":false}`, present: true, usable: true},
	"null inside":      {text: `{"enabled":null,"goal":null}`, present: true, usable: true},
	"enabled":          {text: ` {"enabled" : true, "goal":"g", "max_output_tokens":1024, "more":[1]} `, present: true, usable: true, enabled: true},
}

func TestResolveGold_AllCells(t *testing.T) {
	t.Parallel()
	for sName, s := range goldTexts {
		for gName, g := range goldTexts {
			for rName, r := range goldTexts {
				want := routing.Gold{SessionBroken: s.present && !s.usable}
				switch {
				case s.usable:
					want.Enabled, want.Source, want.Value = s.enabled, "session", []byte(s.text)
				case !s.present && g.usable:
					want.Enabled, want.Source, want.Value = g.enabled, "config", []byte(g.text)
				case r.usable:
					want.Enabled, want.Source, want.Value = r.enabled, "resume", []byte(r.text)
				}
				got := routing.ResolveGold([]byte(s.text), []byte(g.text), []byte(r.text))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("session %s, config %s, request %s (-want +got):\n%s", sName, gName, rName, diff)
				}
			}
		}
	}
}

func TestGold_EventShowsABrokenSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gold routing.Gold
		want *events.Gold
	}{
		{routing.Gold{}, nil},
		{routing.Gold{SessionBroken: true}, &events.Gold{Source: "session"}},
		{routing.Gold{SessionBroken: true, Source: "resume", Enabled: true}, &events.Gold{Source: "resume", Enabled: true}},
		{routing.Gold{Source: "config"}, &events.Gold{Source: "config"}},
	} {
		t.Run(fmt.Sprintf("%+v", c.gold), func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.gold.Event()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
