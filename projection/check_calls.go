package projection

import (
	"encoding/json"
	"strings"

	"culm/aggregate"
	"culm/events"
)

// observeCalls reads off what happened to the calls of the last answer.
func (x *expected) observeCalls(e *events.Event, d *raw) {
	before := map[string]aggregate.Call{}
	for _, c := range x.was.calls {
		before[c.MessageID] = c
	}
	for i := range x.state.Calls {
		c := &x.state.Calls[i]
		was, had := before[c.MessageID]
		delete(before, c.MessageID)
		x.observeCall(e, d, c, was, had)
		x.observeItem(e, d, c, was)
	}
	for id := range before { // the calls of a former answer
		x.endItem(e, id, "superseded")
	}
	if x.state.Session.Closed {
		for id := range x.byItem { // whoever decides now is refused session_closed
			x.endItem(e, id, "session_closed")
		}
	}
}

func (x *expected) observeCall(e *events.Event, d *raw, c *aggregate.Call, was aggregate.Call, had bool) {
	row := x.byCall[c.MessageID]
	if !had || row == nil {
		answer, _ := cutLast(c.MessageID)
		row = &callRow{
			Session: e.Session, AnswerID: answer, Idx: int64(c.Index), MessageID: c.MessageID, ToolCallID: c.ID, Name: c.Name, Arguments: c.Arguments,
			RunID: d.RunID, Round: int64(d.Round), RequestedSeq: clamp(e.Seq), RequestedAt: nanos(e.Time),
		}
		if c.ModelID != nil {
			row.ModelID = *c.ModelID
		}
		x.byCall[c.MessageID] = row
		x.tools = append(x.tools, row)
	}
	row.Status, row.Success, row.Mutating, row.Authorized = string(c.Status), c.Success, c.Mutating, c.Authorized
	row.Digest, row.Replaying = c.Digest, c.Replaying
	if c.StartedSeq == e.Seq {
		row.Starts++
		row.StartedSeq, row.StartedAt = clamp(e.Seq), nanos(e.Time)
	}
	if e.Type == "tool.authorized" && d.ToolCallID == c.ID || e.Type == "tool.denied" && d.ToolCallID == c.ID {
		row.PermissionType, row.Resource, row.Verdict, row.RuleID = d.PermissionType, d.Resource, d.Step, d.RuleID
	}
	if c.Status == aggregate.CallSettled && was.Status != aggregate.CallSettled {
		row.EndedSeq, row.EndedAt, row.EndedBy = clamp(e.Seq), nanos(e.Time), e.Actor
		row.Outcome, row.ElapsedMS = outcomeOf(e.Type, c.Success), clamp(d.ElapsedMS)
		row.Error = errorText(e.Type, d)
	}
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '.')
	return s[:max(i, 0)], s[i+1:]
}

func outcomeOf(eventType string, success bool) string {
	switch eventType {
	case "tool.finished", "replay.finished":
		if success {
			return "succeeded"
		}
		return "failed"
	case "tool.denied", "approval.decided":
		return "denied"
	case "replay.blocked":
		return "blocked"
	case "question.answered":
		return "answered"
	case "question.expired":
		return "expired"
	case "tool.resolved":
		return "resolved"
	}
	return "voided"
}

func errorText(eventType string, d *raw) string {
	switch eventType {
	case "tool.finished", "replay.finished":
		var text string
		_ = json.Unmarshal(d.Error, &text) // a string in these events
		return text
	case "replay.blocked":
		return d.Reason
	}
	return ""
}

// observeItem follows what waits for a person.
func (x *expected) observeItem(e *events.Event, d *raw, c *aggregate.Call, was aggregate.Call) {
	again := was.Status.Waiting() && (c.Status != was.Status || c.Generation != was.Generation || c.ParkedSeq != was.ParkedSeq)
	switch {
	case was.Status.Waiting() && !c.Status.Waiting():
		x.decided(e, d, c)
	case c.Status.Waiting() && again:
		x.endItem(e, c.MessageID, "superseded")
		x.addItem(e, c)
	case c.Status.Waiting() && !was.Status.Waiting():
		x.addItem(e, c)
	}
}

func (x *expected) addItem(e *events.Event, c *aggregate.Call) {
	answer, _ := cutLast(c.MessageID)
	row := &itemRow{
		Session: e.Session, MessageID: c.MessageID, SinceSeq: clamp(e.Seq), SinceAt: nanos(e.Time), Kind: "unknown", ToolCallID: c.ID, Name: c.Name,
		AnswerID: answer, Idx: int64(c.Index), Generation: c.Generation, Digest: c.Digest, Status: "pending",
	}
	row.RunID = x.byCall[c.MessageID].RunID
	if c.Status == aggregate.CallParked {
		row.Kind, row.Question, row.ExpiresAt = c.Parked.Kind, text(c.Parked.Question), nanos(c.Parked.ExpiresAt)
		if c.Parked.Request != nil {
			row.Request = text(c.Parked.Request)
		}
	} else {
		row.StartedSeq = clamp(c.StartedSeq)
	}
	x.byItem[c.MessageID] = row
	x.approvals = append(x.approvals, row)
}

// decided ends an item by an event of a person, or by the call's other end.
func (x *expected) decided(e *events.Event, d *raw, c *aggregate.Call) {
	row := x.byItem[c.MessageID]
	switch e.Type {
	case "approval.decided":
		x.endItem(e, c.MessageID, d.Decision)
		row.Note, row.Successor = d.Note, d.RunID
		if len(d.Matcher) > 0 {
			row.Matcher = string(d.Matcher)
		}
	case "question.answered", "question.expired", "tool.resolved":
		x.endItem(e, c.MessageID, outcomeOf(e.Type, true))
		row.Answer, row.Successor = d.Answer, d.RunID
	default:
		x.endItem(e, c.MessageID, outcomeOf(e.Type, c.Success))
	}
}

func (x *expected) endItem(e *events.Event, id, decision string) {
	if row := x.byItem[id]; row != nil {
		row.Status, row.Decision, row.DecidedBy, row.DecidedSeq, row.DecidedAt = "decided", decision, e.Actor, clamp(e.Seq), nanos(e.Time)
		delete(x.byItem, id)
	}
}
