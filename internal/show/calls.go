package show

import (
	"cmp"
	"fmt"

	"culm/events"
)

// maxWith is how much of a call's arguments a line shows, and digestStart how
// much of their digest: enough to tell one waiting call from another.
const (
	maxWith     = 60
	digestStart = 13
)

// call is what earlier events told of a call that later ones only name.
type call struct {
	with    string // arguments, clipped
	request *events.PermissionRequest
	digest  string
	unknown bool // it was started and nobody knows how that ended
}

// remember keeps what an event tells of calls. A round begins when the calls of
// the one before are settled, so those are forgotten with its answer.
func (p *Printer) remember(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RoundFinished:
		calls := map[string]call{}
		for _, c := range d.Message.ToolCalls {
			calls[c.ID] = call{with: Clip(Clean(c.Arguments), maxWith)}
		}
		p.calls[e.Session] = calls
	case events.ToolParked:
		p.wait(e.Session, d.ToolCallID, d.Parked)
	case events.ReplayReparked:
		p.wait(e.Session, d.ToolCallID, d.Parked)
	case events.RunFinished:
		p.lose(e.Session, d.Unknown)
	case events.RunRefused:
		p.lose(e.Session, d.Unknown)
	case events.RunInterrupted:
		p.lose(e.Session, d.Unknown)
	case events.SessionClosed:
		delete(p.calls, e.Session)
		delete(p.bounds, e.Session)
	}
}

func (p *Printer) wait(session, id string, d events.Parked) {
	p.set(session, id, call{with: p.calls[session][id].with, request: d.Request, digest: d.ArgumentsDigest, unknown: p.calls[session][id].unknown})
}

func (p *Printer) lose(session string, calls []events.UnknownCall) {
	for _, u := range calls {
		c := p.calls[session][u.ToolCallID]
		c.unknown, c.digest = true, cmp.Or(u.ArgumentsDigest, c.digest)
		p.set(session, u.ToolCallID, c)
	}
}

func (p *Printer) set(session, id string, c call) {
	if p.calls[session] == nil {
		p.calls[session] = map[string]call{}
	}
	p.calls[session][id] = c
}

// what tells what a call would do, as far as it is known: what it wants, or how
// its arguments begin, and how their digest does.
func (p *Printer) what(session, id string) string {
	c := p.calls[session][id]
	text := c.with
	if q := c.request; q != nil && q.PermissionType != "" {
		text = p.short(q.PermissionType) + " " + p.quote(q.Resource)
	}
	return text + c.sum(text != "")
}

// sum is the start of the digest, after other text or alone.
func (c call) sum(after bool) string {
	if c.digest == "" {
		return ""
	}
	return when(after, ", ") + "digest " + Clip(Clean(c.digest), digestStart)
}

// tool names a call: its tool and its id.
func tool(c events.CallRef) string {
	text := "tool " + Clip(Clean(c.Name), maxName)
	if c.ToolCallID == "" {
		return text
	}
	return fmt.Sprintf("%s (call %s)", text, Clip(Clean(c.ToolCallID), maxName))
}
