package routing

import (
	"cmp"
	"slices"
	"strings"

	"culm/events"
)

// Claim is what is known when a runner claims a run.
type Claim struct {
	Session events.Settings
	Effort  string // reasoning effort that the request asks for, "" for none
	Resume  Resume
	Held    []string // instances that the claiming runner holds; nil: not said
}

// Plan is everything about providers and models that a run is started with.
type Plan struct {
	// Ref is the session's own choice with its provider resolved; nil where
	// the session names no model. It replaces the session's model.
	Ref       *events.Model
	Roster    events.Roster
	Reasoning events.Reasoning
	Gold      Gold
}

// Plan resolves everything that a claimed run needs, from one snapshot. The
// error is an *Error. Where the configuration lists providers, it alone decides
// what exists (provider_unavailable), and a runner that lacks the resolved one
// gets provider_not_held. Where it lists none, what the runner says it holds
// decides; a runner that says nothing is taken to hold whatever is named.
func (c Config) Plan(q Claim) (Plan, error) {
	p, err := c.plan(q)
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

func (c Config) plan(q Claim) (Plan, *Error) {
	live := c.live(q)
	primary, ref, err := c.primary(q, live)
	if err != nil {
		return Plan{}, c.leave(err.forRole(RolePrimary), q)
	}
	if c.Listed() && q.Held != nil && !slices.Contains(q.Held, primary.Provider) {
		return Plan{}, fail(ReasonNotHeld, primary.Provider, primary.Provider, "").notHeld().forRole(RolePrimary)
	}
	r, err := roster(primary, c, q.Resume, live)
	if err != nil {
		return Plan{}, c.leave(err, q)
	}
	in, _ := c.Instance(primary.Provider)
	return Plan{
		Ref: ref, Roster: r, Gold: ResolveGold(q.Session.Gold, c.Gold, q.Resume.Gold),
		Reasoning: Reasoning(q.Session.ReasoningEffort, q.Effort, in.ReasoningEffort),
	}, nil
}

// leave makes of an error that another runner may be free of one that leaves
// the run to it: without a list, a runner that said what it holds is no proof
// that nobody holds the provider.
func (c Config) leave(err *Error, q Claim) *Error {
	if c.Listed() || q.Held == nil || err.Reason == ReasonBlank || err.Reason == ReasonIncomplete {
		return err
	}
	return err.notHeld().forRole(err.Role)
}

// live is what exists for this claim.
func (c Config) live(q Claim) Live {
	switch {
	case c.Listed():
		return c.Exists()
	case q.Held != nil:
		return LiveKeys(q.Held...)
	}
	l := Live{}
	names := []string{q.Resume.Provider, q.Resume.Background.Provider, q.Resume.Summarization.Provider}
	for _, ref := range []*events.Model{q.Session.Model, c.Defaults.Chat, c.Defaults.Fast, c.Defaults.Background, c.Defaults.Summarization} {
		if ref != nil {
			names = append(names, ref.Provider)
		}
	}
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			l[name] = ""
		}
	}
	return l
}

// primary resolves the model that the run works with, and the session's own ref
// with it. Without a list, and with nothing named, it is empty: the runner uses
// what it has.
func (c Config) primary(q Claim, live Live) (events.RosterModel, *events.Model, *Error) {
	if ref, ok := EffectiveRef(q.Session); ok {
		m, err := c.member(ref.Provider, ref.Model, live)
		if err != nil {
			return events.RosterModel{}, nil, err
		}
		return m, &events.Model{Provider: m.Provider, Model: m.Model}, nil
	}
	choice, err := c.unnamed(q.Resume)
	if err != nil || choice == (Choice{}) {
		return events.RosterModel{}, nil, err
	}
	key, err := resolve(choice.Provider, c, live)
	if err != nil {
		return events.RosterModel{}, nil, err
	}
	in, _ := c.Instance(key)
	model := cmp.Or(choice.Model, in.model())
	if model == "" { // the provider's own default
		return events.RosterModel{Provider: key, Type: ProviderType(key, c, live)}, nil, nil
	}
	m, err := c.member(key, model, live)
	return m, nil, err
}

// unnamed is what serves a session that names no model: what the request brings
// along, the chat role, the default instance, or the only enabled one. Several
// that could serve are not guessed between.
func (c Config) unnamed(r Resume) (Choice, *Error) {
	if p := strings.TrimSpace(r.Provider); p != "" {
		return Choice{Provider: p}, nil
	}
	if ref := c.Defaults.Chat; ref != nil {
		return Choice{strings.TrimSpace(ref.Provider), strings.TrimSpace(ref.Model)}, nil
	}
	if !c.Listed() {
		return Choice{}, nil
	}
	if in, ok := c.DefaultInstance(); ok {
		return Choice{Provider: in.ID}, nil
	}
	on := c.enabled()
	if len(on) == 1 {
		return Choice{Provider: on[0].ID}, nil
	}
	return Choice{}, fail(ReasonNoDefault, "", "", "the session names no model, and of the enabled instances (%s) none is the default: mark one, set defaults.chat, or set the session's model", named(ids(on)))
}
