package engine

import (
	"slices"
	"testing"

	"culm/internal/config"
	"culm/provider"
	"culm/tool"
)

const draft = "../../examples/three_drafts.jsonl"

// TestOpenProviders: which instances a process serves, which one serves sessions
// that name none, and which it leaves to others.
func TestOpenProviders(t *testing.T) {
	t.Parallel()
	recorded := func(id string, change ...func(*config.Provider)) config.Provider {
		p := config.Provider{ID: id, Type: "recorded", Enabled: true, File: draft}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	standard := func(p *config.Provider) { p.Default = true }
	off := func(p *config.Provider) { p.Enabled = false }
	live := map[string]provider.Provider{"live": nil}
	for name, c := range map[string]struct {
		list             []config.Provider
		live             map[string]provider.Provider
		ids, elsewhere   []string
		first            string
		mustFail, noTool bool
	}{
		"nothing is configured": {ids: []string{SampleProvider}, first: SampleProvider},
		"the first serves":      {list: []config.Provider{recorded("a"), recorded("b")}, ids: []string{"a", "b"}, first: "a"},
		"the default serves":    {list: []config.Provider{recorded("a"), recorded("b", standard)}, ids: []string{"a", "b"}, first: "b"},
		"one is off":            {list: []config.Provider{recorded("a", off), recorded("b")}, ids: []string{"b"}, first: "b"},
		"all are off":           {list: []config.Provider{recorded("a", off)}},
		"another's type":        {list: []config.Provider{{ID: "o", Type: "openai", Enabled: true}, recorded("a")}, ids: []string{"a"}, elsewhere: []string{"o"}, first: "a"},
		"a live one":            {live: live, ids: []string{"live"}},
		"no such file":          {list: []config.Provider{recorded("a", func(p *config.Provider) { p.File = "/nowhere" })}, mustFail: true},
		"the same id twice":     {list: []config.Provider{recorded("a"), recorded("a")}, mustFail: true},
		"an id of a live one":   {list: []config.Provider{recorded("live")}, live: live, mustFail: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := openProviders(c.list, c.live)
			if (err != nil) != c.mustFail {
				t.Fatalf("openProviders: %v", err)
			}
			if err != nil {
				return
			}
			ids := in.registry.IDs()
			slices.Sort(ids)
			if !slices.Equal(ids, c.ids) || !slices.Equal(in.elsewhere, c.elsewhere) || in.first != c.first {
				t.Errorf("serves %v, elsewhere %v, first %q", ids, in.elsewhere, in.first)
			}
		})
	}
}

// TestRecordings_ACallIsOfItsProvider: a call that no recording holds fails, for
// the model to see.
func TestRecordings_ACallIsOfItsProvider(t *testing.T) {
	t.Parallel()
	in, err := openProviders(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range []string{SampleProvider, "gone"} {
		r := in.tools.Execute(t.Context(), tool.Call{Provider: provider, Name: "nope", Arguments: "{}"}, func(string) {})
		if r.Success {
			t.Errorf("a call of %s that nobody recorded: %+v", provider, r)
		}
	}
}
