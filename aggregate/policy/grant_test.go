package policy

import (
	"testing"
	"time"

	"culm/events"
)

func TestGrants_EndWithTheirTime(t *testing.T) {
	t.Parallel()
	m := subtree("/work/p")
	r := Request{Tool: "Write", Type: WriteFile, Resource: "/work/p/a"}
	for _, c := range []struct {
		name           string
		expires, now   time.Time
		allows, denies bool
	}{
		{"before", noon, noon.Add(-1), true, true},
		{"at its end", noon, noon, false, false},
		{"after", noon, noon.Add(time.Hour), false, false},
		{"without an end", time.Time{}, noon, false, true},
		{"without a clock", noon, time.Time{}, false, true},
	} {
		allow, deny := StepRisk, StepRisk
		if c.allows {
			allow = StepSessionGrant
		}
		if c.denies {
			deny = StepSessionDeny
		}
		g := Grant{ID: "g", Type: WriteFile, Matcher: m, ExpiresAt: c.expires}
		if v := Evaluate(Input{Request: r, Grants: []Grant{g}, Now: c.now}); v.Step != allow {
			t.Errorf("allow, %s: %s", c.name, v.Step)
		}
		g.Deny = true
		if v := Evaluate(Input{Request: r, Grants: []Grant{g}, Now: c.now}); v.Step != deny {
			t.Errorf("deny, %s: %s", c.name, v.Step)
		}
	}
}

func TestGrants_OfAToolsActionAreForThatTool(t *testing.T) {
	t.Parallel()
	g := Grant{ID: "g", Tool: "A", Type: BrowserInteraction, Matcher: events.Matcher{Kind: ToolAction, Pattern: "submit"}, ExpiresAt: noon.Add(1)}
	for tool, want := range map[string]string{"A": StepSessionGrant, "B": StepRisk, "a": StepRisk} {
		v := Evaluate(Input{Request: Request{Tool: tool, Type: BrowserInteraction, Resource: "submit"}, Grants: []Grant{g}, Now: noon})
		if v.Step != want {
			t.Errorf("%s: %s", tool, v.Step)
		}
	}
}

// An approval for once is for exactly one call, generation, type and resource.
func TestOneShots_CoverExactlyOneCall(t *testing.T) {
	t.Parallel()
	exact := Input{
		Request: Request{Type: WriteFile, Resource: "/w/a", Mutating: true}, CallID: "c1", Generation: "g1", Now: noon,
		OneShots: []OneShot{{"c0", "g0", WriteFile, "/w/a"}, {"c1", "g1", WriteFile, "/w/a"}},
	}
	if v := Evaluate(exact); v.Step != StepOneShot || v.OneShot != 1 {
		t.Fatalf("%+v", v)
	}
	for name, change := range map[string]func(*Input){
		"other call":       func(in *Input) { in.CallID = "c2" },
		"other generation": func(in *Input) { in.Generation = "g2" },
		"outside a replay": func(in *Input) { in.Generation = "" },
		"other type":       func(in *Input) { in.Request.Type = DeleteOperation },
		"other resource":   func(in *Input) { in.Request.Resource = "/w/a/" },
		"used up":          func(in *Input) { in.OneShots = in.OneShots[:1] },
		"blank everywhere": func(in *Input) {
			in.CallID, in.Generation, in.OneShots = "", "", []OneShot{{"", "", WriteFile, "/w/a"}}
		},
		"blank generation": func(in *Input) { in.Generation, in.OneShots = "", []OneShot{{"c1", "", WriteFile, "/w/a"}} },
	} {
		in := exact
		change(&in)
		if v := Evaluate(in); v.Step != StepRisk || v.OneShot != -1 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
