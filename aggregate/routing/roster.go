package routing

import (
	"cmp"
	"strings"

	"culm/events"
)

// Roles of a roster.
const (
	RolePrimary       = "primary"
	RoleFast          = "fast"
	RoleBackground    = "background"
	RoleSummarization = "summarization"
)

// unknownModel is a model name that stands for none.
const unknownModel = "unknown"

// EffectiveRef is the provider and model that a session names, trimmed. A blank
// model, or the literal "unknown", is no choice: ok is false.
func EffectiveRef(s events.Settings) (ref events.Model, ok bool) {
	if s.Model == nil {
		return events.Model{}, false
	}
	ref = events.Model{Provider: strings.TrimSpace(s.Model.Provider), Model: strings.TrimSpace(s.Model.Model)}
	if ref.Model == "" || ref.Model == unknownModel {
		return events.Model{}, false
	}
	return ref, true
}

// Choice is what a request says about a role; either part may be "".
type Choice struct{ Provider, Model string }

// Resume is what a request brings along for its run, beside the session and the
// configuration. The zero value brings nothing.
type Resume struct {
	Provider      string // for a session that names no model
	Fast          string // a model; its provider is always that of the configuration
	Background    Choice
	Summarization Choice
	Gold          []byte // JSON object, empty for none
}

// Roster completes the roster of a run whose primary model is resolved
// (docs/routing.md#roles). A role that nothing configures is left out. Each
// role is one pair of provider and model, resolved like the primary one; a pair
// that does not belong together is an *Error, as is a provider that cannot be
// resolved.
func Roster(primary events.RosterModel, c Config, r Resume, live Live) (events.Roster, error) {
	out, err := roster(primary, c, r, live)
	if err != nil {
		return events.Roster{}, err
	}
	return out, nil
}

func roster(primary events.RosterModel, c Config, r Resume, live Live) (events.Roster, *Error) {
	out := events.Roster{Primary: primary}
	for _, role := range []struct {
		name   string
		into   **events.RosterModel
		choice Choice
		chain  []*events.Model
	}{
		{RoleFast, &out.Fast, Choice{Model: r.Fast}, []*events.Model{c.Defaults.Fast}},
		{RoleBackground, &out.Background, r.Background, []*events.Model{c.Defaults.Background, c.Defaults.Fast}},
		{RoleSummarization, &out.Summarization, r.Summarization, []*events.Model{c.Defaults.Summarization, c.Defaults.Background, c.Defaults.Fast, c.Defaults.Chat}},
	} {
		m, err := pair(role.choice, c.area(role.chain, primary.Provider), c, live)
		if err != nil {
			return events.Roster{}, err.forRole(role.name)
		}
		*role.into = m
	}
	return out, nil
}

// area is the installation's choice for a role: the first of its chain that is
// configured, else what the run's own provider has to offer.
func (c Config) area(chain []*events.Model, fallback string) Choice {
	for _, ref := range chain {
		if ref != nil {
			return Choice{strings.TrimSpace(ref.Provider), strings.TrimSpace(ref.Model)}
		}
	}
	in, _ := c.Instance(fallback)
	return Choice{fallback, in.model()}
}

// pair joins what the request says with what the installation says, each part
// on its own, and proves that the two belong together. nil is no such role.
func pair(choice, area Choice, c Config, live Live) (*events.RosterModel, *Error) {
	asked := strings.TrimSpace(choice.Provider)
	model := cmp.Or(strings.TrimSpace(choice.Model), area.Model)
	switch {
	case model == "" && asked == "":
		return nil, nil //nolint:nilnil // no such role, and nothing wrong
	case model == "":
		return nil, fail(ReasonIncomplete, asked, "", "provider %.64q is named and no model: name both", asked)
	}
	m, err := c.member(cmp.Or(asked, area.Provider), model, live)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// member resolves one pair of provider name and model.
func (c Config) member(name, model string, live Live) (events.RosterModel, *Error) {
	key, err := resolve(name, c, live)
	if err != nil {
		return events.RosterModel{}, err
	}
	if in, ok := c.Instance(key); ok && !in.serves(model) {
		return events.RosterModel{}, fail(ReasonModel, strings.TrimSpace(name), key, "provider instance %.64q does not list the model %.128q: its models are %s; add the model there, or choose one of them",
			key, model, named(in.Models))
	}
	return events.RosterModel{Provider: key, Model: model, Type: ProviderType(key, c, live)}, nil
}
