package policy

import (
	"time"

	"culm/events"
)

// Grant is a decision that is remembered for a session, an allow or a deny. It
// ends with its time and with the session.
type Grant struct {
	ID        string // of the decision, its generation; names it in verdicts
	Deny      bool
	Tool      string // that the decision was given for
	Type      string // permission type
	Matcher   events.Matcher
	ExpiresAt time.Time
}

// allows says that an allow grant covers the request at now. One without an
// end covers nothing: every grant has one.
func (g Grant) allows(r Request, now time.Time) bool {
	return !g.Deny && g.Type == r.Type && !now.IsZero() && now.Before(g.ExpiresAt) &&
		(g.Matcher.Kind != ToolAction || g.Tool == r.Tool) && Match(g.Matcher, r)
}

// denies says that a deny grant concerns the request at now. One without an
// end holds as long as the session.
func (g Grant) denies(s *subject, now time.Time) bool {
	return g.Deny && g.Type == s.Type && (g.ExpiresAt.IsZero() || now.Before(g.ExpiresAt)) && s.touchedBy(g.Matcher)
}

// OneShot is an approval for one call, bound to the request generation under
// which the call is replayed. It has no end in time; whoever evaluates uses it
// once (docs/permissions.md#decisions).
type OneShot struct {
	CallID     string
	Generation string
	Type       string // permission type
	Resource   string // byte for byte
}

// covers says that the approval is for exactly this call, generation, type and
// resource. Blank ids cover nothing.
func (o OneShot) covers(in Input) bool {
	return o.CallID != "" && o.Generation != "" && o.CallID == in.CallID && o.Generation == in.Generation &&
		o.Type == in.Request.Type && o.Resource == in.Request.Resource
}
