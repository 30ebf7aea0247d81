package projection

import (
	"slices"

	"culm/events"
)

// newCalls takes the calls of a new answer; those of the former one do not
// change any more.
func (l *live) newCalls(e *events.Event, d *events.RoundFinished) {
	for len(l.items) > 0 {
		l.decide(e, l.items[0], "superseded")
	}
	l.calls, l.row.AnswerID = nil, d.Message.MessageID
	for i, t := range d.Message.ToolCalls {
		c := &callRow{
			Session: e.Session, AnswerID: d.Message.MessageID, Idx: int64(i), MessageID: resultID(d.Message.MessageID, i),
			ToolCallID: t.ID, Name: t.Name, Arguments: t.Arguments, RunID: d.RunID, Round: int64(d.Round), Status: callOpen,
			RequestedSeq: clamp(e.Seq), RequestedAt: nanos(e.Time),
		}
		if t.ModelID != nil {
			c.ModelID = *t.ModelID
		}
		l.calls = append(l.calls, c)
		l.out.calls.add(c)
	}
}

// call finds a call of the last answer, about to be changed; or nil.
func (l *live) call(id string) *callRow {
	for _, c := range l.calls {
		if c.ToolCallID == id {
			l.out.calls.add(c)
			return c
		}
	}
	return nil
}

func (l *live) applyCall(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.ToolAuthorized:
		l.verdict(d.ToolCallID, d.Access, d.Verdict)
		if c := l.call(d.ToolCallID); c != nil {
			c.Authorized, c.Mutating = true, d.Mutating
		}
	case events.ToolDenied:
		l.verdict(d.ToolCallID, d.Access, d.Verdict)
		l.settle(e, d.CallRef, "denied", events.Result{Content: d.Content})
		return l.suspend(e, d.Suspends, d.Loop)
	case events.ToolStarted:
		if c := l.start(e, d.ToolCallID, false); c != nil {
			c.Mutating = d.Mutating
		}
	case events.ToolFinished:
		l.settle(e, d.CallRef, succeeded(d.Success), d.Result)
		return l.suspend(e, d.Suspends, d.Loop)
	case events.ToolParked:
		l.park(e, d.CallRef, &d.Parked)
		return l.suspend(e, d.Suspends, d.Loop)
	case events.ReplayStarted:
		l.start(e, d.ToolCallID, true)
	case events.ReplayFinished:
		l.settle(e, d.CallRef, succeeded(d.Success), d.Result)
		return l.suspend(e, d.Suspends, d.Loop)
	case events.ReplayBlocked:
		l.settle(e, d.CallRef, "blocked", events.Result{Content: d.Content, Error: d.Reason})
		return l.suspend(e, d.Suspends, d.Loop)
	case events.ReplayReparked:
		l.park(e, d.CallRef, &d.Parked)
		return l.suspend(e, d.Suspends, d.Loop)
	}
	return nil
}

func (l *live) suspend(e *events.Event, suspends bool, loop *events.Loop) error {
	if suspends && l.run != nil {
		l.run.Status = runSuspended
		l.out.runs.add(l.run)
	}
	return l.setLoop(e, loop)
}

func (l *live) verdict(id string, a events.Access, v events.Verdict) {
	if c := l.call(id); c != nil {
		c.PermissionType, c.Resource, c.Verdict, c.RuleID = a.PermissionType, a.Resource, v.Step, v.RuleID
	}
}

func (l *live) start(e *events.Event, id string, replay bool) *callRow {
	c := l.call(id)
	if c != nil {
		c.Status, c.Replaying, c.Starts, c.StartedSeq, c.StartedAt = callStarted, replay, c.Starts+1, clamp(e.Seq), nanos(e.Time)
	}
	return c
}

func succeeded(ok bool) string {
	if ok {
		return "succeeded"
	}
	return "failed"
}

// settle gives a call its outcome and the transcript its result.
func (l *live) settle(e *events.Event, ref events.CallRef, outcome string, r events.Result) {
	success := int64(0)
	if r.Success {
		success = 1
	}
	l.message(e, &messageRow{MessageID: ref.MessageID, Role: "tool", Origin: "tool", Content: r.Content, ToolCallID: ref.ToolCallID, Success: success})
	c := l.call(ref.ToolCallID)
	if c == nil {
		return
	}
	c.Status, c.Outcome, c.Success, c.Replaying = callSettled, outcome, r.Success, false
	c.EndedSeq, c.EndedAt, c.EndedBy = clamp(e.Seq), nanos(e.Time), e.Actor
	c.ElapsedMS, c.ResultBytes, c.Error = clamp(r.ElapsedMS), int64(len(r.Content)), r.Error
	if i := l.waiting(ref.ToolCallID); i != nil {
		l.decide(e, i, outcome)
	}
}

// park makes a call wait for a person.
func (l *live) park(e *events.Event, ref events.CallRef, p *events.Parked) {
	c := l.call(ref.ToolCallID)
	if c == nil {
		return
	}
	c.Status, c.Digest, c.Replaying = callParked, p.ArgumentsDigest, false
	i := l.wait(e, c, p.Kind)
	i.Question, i.Digest, i.ExpiresAt = text(p.Question), p.ArgumentsDigest, nanos(p.ExpiresAt)
	if p.Request != nil {
		i.Request, i.Generation = text(p.Request), p.Request.Generation
	}
}

// unknownCalls makes calls without a known outcome wait for a person.
func (l *live) unknownCalls(e *events.Event, unknown []events.UnknownCall) {
	for _, u := range unknown {
		c := l.call(u.ToolCallID)
		if c == nil {
			continue
		}
		c.Status, c.Digest, c.Replaying = callUnknown, u.ArgumentsDigest, false
		i := l.wait(e, c, itemUnknown)
		i.Generation, i.Digest, i.StartedSeq = u.Generation, u.ArgumentsDigest, clamp(u.StartedSeq)
	}
}

// wait adds a waiting item for the call; one that waited before it is void.
func (l *live) wait(e *events.Event, c *callRow, kind string) *itemRow {
	if i := l.waiting(c.ToolCallID); i != nil {
		l.decide(e, i, "superseded")
	}
	i := &itemRow{
		Session: e.Session, MessageID: c.MessageID, SinceSeq: clamp(e.Seq), SinceAt: nanos(e.Time), Kind: kind,
		ToolCallID: c.ToolCallID, Name: c.Name, AnswerID: c.AnswerID, Idx: c.Idx, RunID: c.RunID, Status: itemPending,
	}
	l.items = append(l.items, i)
	l.out.items.add(i)
	return i
}

// waiting finds the item that waits for the call, or nil.
func (l *live) waiting(id string) *itemRow {
	for _, i := range l.items {
		if i.ToolCallID == id {
			return i
		}
	}
	return nil
}

// decide ends an item.
func (l *live) decide(e *events.Event, i *itemRow, decision string) {
	i.Status, i.Decision, i.DecidedBy, i.DecidedSeq, i.DecidedAt = itemDecided, decision, e.Actor, clamp(e.Seq), nanos(e.Time)
	l.items = slices.DeleteFunc(l.items, func(o *itemRow) bool { return o == i })
	l.out.items.add(i)
}

func (l *live) voidCalls(e *events.Event, calls []events.VoidedCall) {
	for _, v := range calls {
		l.settle(e, events.CallRef{ToolCallID: v.ToolCallID, MessageID: v.MessageID}, "voided", events.Result{Content: v.Content})
	}
}

// applyDecision takes what a person decided, and what that leads to.
func (l *live) applyDecision(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ApprovalDecided:
		if i := l.waiting(d.ToolCallID); i != nil {
			l.decide(e, i, d.Decision)
			i.Note, i.Successor = d.Note, d.RunID
			if d.Matcher != nil {
				i.Matcher = text(d.Matcher)
			}
		}
		l.approve(e, &d)
		l.succeed(e, d.RunID, "decision")
	case events.QuestionAnswered:
		l.end(e, d.ToolCallID, "answered", d.Answer, d.RunID)
		l.settle(e, d.CallRef, "answered", events.Result{Success: true, Content: d.Content})
		l.choices(&d)
		l.succeed(e, d.RunID, "answer")
	case events.QuestionExpired:
		l.end(e, d.ToolCallID, "expired", "", d.RunID)
		l.settle(e, d.CallRef, "expired", events.Result{Content: d.Content})
		l.succeed(e, d.RunID, "answer")
	case events.ToolResolved:
		l.end(e, d.ToolCallID, "resolved", "", d.RunID)
		l.settle(e, d.CallRef, "resolved", events.Result{Success: d.Success, Content: d.Content})
		l.succeed(e, d.RunID, "decision")
	}
}

// end ends the item of a call with its answer.
func (l *live) end(e *events.Event, id, decision, answer, successor string) {
	if i := l.waiting(id); i != nil {
		l.decide(e, i, decision)
		i.Answer, i.Successor = answer, successor
	}
}

// approve moves the call that was allowed or denied.
func (l *live) approve(e *events.Event, d *events.ApprovalDecided) {
	switch d.Decision {
	case "allow_once", "allow_session", "allow_workspace", "allow_global":
		if c := l.call(d.ToolCallID); c != nil {
			c.Status = callDecided
		}
	default:
		l.settle(e, d.CallRef, "denied", events.Result{Content: d.Content})
	}
}

// choices takes what an answer sets besides the result.
func (l *live) choices(d *events.QuestionAnswered) {
	r := &l.row
	if d.Model != nil {
		r.Provider, r.Model = d.Model.Provider, d.Model.Model
	}
	if d.ReasoningEffort != "" {
		r.ReasoningEffort = d.ReasoningEffort
	}
	if d.Posture != nil {
		r.EffectiveMode = d.Posture.EffectiveMode
	}
	if d.Plan != "" {
		r.Plan = d.Plan == "entered"
	}
}

// succeed notes the successor run that a decision requested.
func (l *live) succeed(e *events.Event, run, cause string) {
	if run != "" {
		l.request(e, run, cause)
	}
}

// person adds a person's message, if there is one.
func (l *live) person(e *events.Event, m *events.UserMessage) {
	if m != nil {
		l.message(e, &messageRow{MessageID: m.MessageID, Role: "user", Origin: "person", Content: m.Content, Success: -1})
	}
}

// message adds a message to the transcript.
func (l *live) message(e *events.Event, m *messageRow) {
	l.row.Messages++
	m.Session, m.N, m.Seq, m.At, m.Actor, m.RunID = e.Session, l.row.Messages, clamp(e.Seq), nanos(e.Time), e.Actor, e.Run
	l.out.messages.add(m)
}
