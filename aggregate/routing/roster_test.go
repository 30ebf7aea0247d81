package routing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate/routing"
	"culm/events"
)

// The cells of the roster: what is configured and what the request brings is
// there or not, each on its own.
const (
	hasChat = 1 << iota
	hasFast
	hasBackground
	hasSummarization
	resumeFast
	resumeBackgroundModel
	resumeBackgroundProvider
	resumeSummarizationModel
	resumeSummarizationProvider
	ownModels // the run's provider lists models
	roleCells
)

// want is one role as the oracle sees it.
type want struct{ provider, model string }

// roleRow is a role as docs/routing.md#roles tabulates it.
type roleRow struct {
	role          string
	chain         []int // bits of refs in order
	model, source int   // bits of what the request brings, 0 for never
}

var roleTable = []roleRow{
	{routing.RoleFast, []int{hasFast}, resumeFast, 0},
	{routing.RoleBackground, []int{hasBackground, hasFast}, resumeBackgroundModel, resumeBackgroundProvider},
	{routing.RoleSummarization, []int{hasSummarization, hasBackground, hasFast, hasChat}, resumeSummarizationModel, resumeSummarizationProvider},
}

var refNames = map[int]want{
	hasChat: {"chatty", "m-chat"}, hasFast: {"fasty", "m-fast"}, hasBackground: {"backy", "m-back"}, hasSummarization: {"summy", "m-sum"},
}

// expect gives the pair of a role; ok is false where the request names a
// provider and nothing names a model.
func (row roleRow) expect(cell int) (w want, ok bool) {
	w = want{provider: "own"}
	if cell&ownModels != 0 {
		w.model = "m-own"
	}
	for _, bit := range slices.Backward(row.chain) { // the first of the chain is written last
		if cell&bit != 0 {
			w = refNames[bit]
		}
	}
	named := row.source != 0 && cell&row.source != 0
	if row.model != 0 && cell&row.model != 0 {
		w.model = "m-asked"
	}
	if named {
		w.provider = "asky"
	}
	if w.model == "" {
		return want{}, !named
	}
	return w, true
}

func rosterCell(cell int) (routing.Config, routing.Resume) {
	c := routing.Config{Instances: []routing.Instance{{ID: "own", Type: "openai", Enabled: true}}}
	if cell&ownModels != 0 {
		c.Instances[0].Models = []string{"m-own", "m-asked", "m-second"}
	}
	for _, id := range []string{"chatty", "fasty", "backy", "summy", "asky"} {
		c.Instances = append(c.Instances, routing.Instance{ID: id, Type: "gemini", Enabled: true})
	}
	for bit, into := range map[int]**events.Model{
		hasChat: &c.Defaults.Chat, hasFast: &c.Defaults.Fast, hasBackground: &c.Defaults.Background, hasSummarization: &c.Defaults.Summarization,
	} {
		if cell&bit != 0 {
			*into = &events.Model{Provider: " " + refNames[bit].provider, Model: refNames[bit].model + " "}
		}
	}
	var r routing.Resume
	for bit, set := range map[int]func(){
		resumeFast:                  func() { r.Fast = "m-asked" },
		resumeBackgroundModel:       func() { r.Background.Model = " m-asked" },
		resumeBackgroundProvider:    func() { r.Background.Provider = "asky " },
		resumeSummarizationModel:    func() { r.Summarization.Model = "m-asked" },
		resumeSummarizationProvider: func() { r.Summarization.Provider = "asky" },
	} {
		if cell&bit != 0 {
			set()
		}
	}
	return c, r
}

func TestRoster_AllCells(t *testing.T) {
	t.Parallel()
	primary := events.RosterModel{Provider: "own", Model: "m-session", Type: "openai"}
	types := map[string]string{"own": "openai", "chatty": "gemini", "fasty": "gemini", "backy": "gemini", "summy": "gemini", "asky": "gemini"}
	for cell := range roleCells {
		c, r := rosterCell(cell)
		expected, refused := events.Roster{Primary: primary}, ""
		for i, into := range []**events.RosterModel{&expected.Fast, &expected.Background, &expected.Summarization} {
			w, ok := roleTable[i].expect(cell)
			if !ok && refused == "" {
				refused = roleTable[i].role
			}
			if w != (want{}) {
				*into = &events.RosterModel{Provider: w.provider, Model: w.model, Type: types[w.provider]}
			}
		}
		got, err := routing.Roster(primary, c, r, c.Exists())
		if refused != "" {
			if e, ok := errors.AsType[*routing.Error](err); !ok || e.Role != refused || e.Reason != routing.ReasonIncomplete {
				t.Fatalf("cell %b: %v, want role %s refused", cell, err, refused)
			}
			continue
		}
		if diff := cmp.Diff(expected, got); err != nil || diff != "" {
			t.Fatalf("cell %b: %v (-want +got):\n%s", cell, err, diff)
		}
	}
}

// TestRoster_PairsBelongTogether: whatever the model and the provider of a role
// come from, an instance that lists models gets none but those.
func TestRoster_PairsBelongTogether(t *testing.T) {
	t.Parallel()
	models := map[string][]string{"none": nil, "only the area's": {"m-area"}, "only the request's": {"m-asked"}, "both": {"m-area", "m-asked"}}
	for _, role := range []string{routing.RoleFast, routing.RoleBackground, routing.RoleSummarization} {
		for areaLists, ofArea := range models {
			for askedLists, ofAsked := range models {
				for bits := range 4 { // the request names a model, a provider
					if role == routing.RoleFast && bits&2 != 0 {
						continue // fast has no provider of its own
					}
					t.Run(fmt.Sprintf("%s/area lists %s/asked lists %s/%d", role, areaLists, askedLists, bits), func(t *testing.T) {
						checkPair(t, role, ofArea, ofAsked, bits&1 != 0, bits&2 != 0)
					})
				}
			}
		}
	}
}

func checkPair(t *testing.T, role string, ofArea, ofAsked []string, model, provider bool) {
	t.Helper()
	c := routing.Config{Instances: []routing.Instance{
		{ID: "z", Type: "gemini", Enabled: true}, {ID: "area", Type: "openai", Enabled: true, Models: ofArea},
		{ID: "asked", Type: "openai", Enabled: true, Models: ofAsked},
	}}
	other := &events.Model{Provider: "z", Model: "m"} // the roles that are not looked at
	c.Defaults = routing.Defaults{Fast: other, Background: other, Summarization: other}
	ref := &events.Model{Provider: "area", Model: "m-area"}
	var choice routing.Choice
	id, lists, pick := "area", ofArea, "m-area"
	if model {
		choice.Model, pick = "m-asked", "m-asked"
	}
	if provider {
		choice.Provider, id, lists = "asked", "asked", ofAsked
	}
	var r routing.Resume
	switch role {
	case routing.RoleFast:
		c.Defaults.Fast, r.Fast = ref, choice.Model
	case routing.RoleBackground:
		c.Defaults.Background, r.Background = ref, choice
	default:
		c.Defaults.Summarization, r.Summarization = ref, choice
	}
	belongs := len(lists) == 0
	for _, m := range lists {
		belongs = belongs || m == pick
	}
	got, err := routing.Roster(events.RosterModel{Provider: "z", Model: "m"}, c, r, c.Exists())
	if !belongs {
		if e, ok := errors.AsType[*routing.Error](err); !ok || e.Reason != routing.ReasonModel || e.Role != role || e.Key != id {
			t.Fatalf("error %v, want %s refused for %s", err, pick, id)
		}
		return
	}
	m := map[string]*events.RosterModel{routing.RoleFast: got.Fast, routing.RoleBackground: got.Background, routing.RoleSummarization: got.Summarization}[role]
	if diff := cmp.Diff(&events.RosterModel{Provider: id, Model: pick, Type: "openai"}, m); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
}

func TestEffectiveRef(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"", "  ", "openai", "\topenai "} {
		for model, keeps := range map[string]string{"": "", " \t": "", "unknown": "", " unknown\n": "", "Unknown": "Unknown", "unknown-1": "unknown-1", " m ": "m"} {
			ref, ok := routing.EffectiveRef(events.Settings{Model: &events.Model{Provider: provider, Model: model}})
			want := events.Model{Model: keeps}
			if keeps != "" && len(provider) > 2 {
				want.Provider = "openai"
			}
			if ok != (keeps != "") || ref != want {
				t.Errorf("EffectiveRef(%q, %q) = %+v, %t", provider, model, ref, ok)
			}
		}
	}
	if _, ok := routing.EffectiveRef(events.Settings{}); ok {
		t.Error("a session without a model has a ref")
	}
}
