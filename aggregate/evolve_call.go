package aggregate

import (
	"strconv"

	"culm/aggregate/policy"
	"culm/events"
)

// ResultID is the id of the message that holds the result of call number index
// of the answer with the given message id: the call's occurrence.
func ResultID(answer string, index int) string { return answer + "." + strconv.Itoa(index) }

// evolveCall folds the events of single tool calls.
func evolveCall(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.ToolAuthorized:
		if c := s.call(d.ToolCallID); c != nil {
			c.Authorized, c.Access, c.Mutating, c.Risk = true, d.Access, d.Mutating, d.Risk
		}
	case events.ToolDenied:
		s.settle(d.ToolCallID, false)
		s.suspend(d.Suspends, d.Loop)
	case events.ToolStarted:
		s.started(d.CallRef, e.Seq, false)
		if c := s.call(d.ToolCallID); c != nil {
			c.Mutating = d.Mutating
		}
	case events.ToolFinished:
		s.settle(d.ToolCallID, d.Success)
		s.suspend(d.Suspends, d.Loop)
	case events.ToolParked:
		s.park(d.ToolCallID, d.Parked, e)
		s.suspend(d.Suspends, d.Loop)
	case events.ReplayStarted:
		s.started(d.CallRef, e.Seq, true)
	case events.ReplayFinished:
		s.settle(d.ToolCallID, d.Success)
		s.suspend(d.Suspends, d.Loop)
	case events.ReplayBlocked:
		s.settle(d.ToolCallID, false)
		s.suspend(d.Suspends, d.Loop)
	case events.ReplayReparked:
		s.park(d.ToolCallID, d.Parked, e)
		s.suspend(d.Suspends, d.Loop)
	case events.PolicyModeChanged, events.PolicyRuleAdded, events.PolicyRuleRemoved:
		s.Policy = s.Policy.Evolve(e.Data, e.Seq)
	default:
		evolveDecision(s, e)
	}
}

// evolveDecision folds what persons decide about waiting calls.
func evolveDecision(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.ApprovalDecided:
		s.decided(d.Generation, Decided{ToolCallID: d.ToolCallID, MessageID: d.MessageID, Decision: d.Decision, MatcherID: d.MatcherID, Exact: d.Matcher != nil && d.Matcher.Kind == policy.ExactResource, Actor: e.Actor, Seq: e.Seq})
		evolveApproval(s, d)
		s.succeed(d.RunID, causeDecision)
	case events.QuestionAnswered:
		s.settle(d.ToolCallID, true)
		evolveChoices(s, e, d)
		s.succeed(d.RunID, causeAnswer)
	case events.QuestionExpired:
		s.settle(d.ToolCallID, false)
		s.succeed(d.RunID, causeAnswer)
	case events.ToolResolved:
		s.decided(d.Generation, Decided{ToolCallID: d.ToolCallID, MessageID: d.MessageID, Decision: "resolved", Actor: e.Actor, Seq: e.Seq})
		s.settle(d.ToolCallID, d.Success)
		s.succeed(d.RunID, causeDecision)
	}
}

func evolveApproval(s *State, d events.ApprovalDecided) {
	c := s.call(d.ToolCallID)
	if c == nil {
		return
	}
	q := c.decidedRequest(d.Generation)
	if d.Matcher != nil && q != nil && (d.Decision == allowSession || d.Decision == denySession) {
		s.Grants = append(s.Grants, policy.GrantFor(*q, d.Decision, *d.Matcher, d.ExpiresAt))
	}
	if !isAllow(d.Decision) {
		s.settle(d.ToolCallID, false)
		return
	}
	c.Status = CallDecided
	c.Approval = &Approval{Request: q, Decision: d.Decision, Matcher: d.Matcher, Generation: d.Generation, ExpiresAt: d.ExpiresAt}
}

// decidedRequest is what a decision under the generation was given for: the
// parked request, or for a call whose outcome is unknown that request under its
// new generation, for once; nil where there never was one.
func (c *Call) decidedRequest(generation string) *events.PermissionRequest {
	if c.Parked == nil || c.Parked.Request == nil {
		return nil
	}
	q := *c.Parked.Request
	if c.Status == CallUnknown {
		q.Generation, q.AllowedDecisions, q.SuggestedMatchers = generation, []string{allowOnce, denyOnce}, nil
	}
	return &q
}

// evolveChoices folds what an answer sets besides the result.
func evolveChoices(s *State, e *events.Event, d events.QuestionAnswered) {
	if d.Model != nil {
		s.Session.Model = d.Model
	}
	if d.ReasoningEffort != "" {
		s.Session.ReasoningEffort = d.ReasoningEffort
	}
	if d.Posture != nil {
		s.Session.Posture = *d.Posture
	}
	switch d.Plan {
	case "entered":
		s.Session.Plan = &Plan{EnteredAt: e.Time, PrePermissionMode: s.Session.Mode}
	case "exited":
		s.Session.Plan = nil
	}
}

func (s *State) decided(generation string, d Decided) {
	if generation == "" {
		return
	}
	if s.Decided == nil {
		s.Decided = map[string]Decided{}
	}
	s.Decided[generation] = d
}

// succeed requests the successor run of a decision.
func (s *State) succeed(runID, cause string) {
	if runID != "" {
		s.request(runID, cause, nil)
	}
}

func (s *State) started(ref events.CallRef, seq uint64, replay bool) {
	s.Spent.ToolCalls++
	if c := s.call(ref.ToolCallID); c != nil {
		c.Status, c.StartedSeq, c.Replaying = CallStarted, seq, replay
	}
}

// settle gives a call its outcome; the transcript has a result message now.
func (s *State) settle(id string, success bool) {
	c := s.call(id)
	if c == nil {
		return
	}
	c.Status, c.Success, c.Replaying = CallSettled, success, false
	c.Parked, c.Generation, c.Approval, c.Ledger = nil, "", nil, nil
	s.Last = Message{ID: c.MessageID, Role: roleTool, Origin: originTool}
}

func (s *State) park(id string, p events.Parked, e *events.Event) {
	c := s.call(id)
	if c == nil {
		return
	}
	if c.Approval != nil {
		c.Ledger = append(append([]Approval(nil), c.Ledger...), *c.Approval)
	}
	c.Status, c.Parked, c.ParkedSeq, c.ParkedAt = CallParked, &p, e.Seq, e.Time
	c.Digest, c.Generation, c.Approval, c.Replaying = p.ArgumentsDigest, "", nil, false
	if p.Request != nil {
		c.Generation, c.Newest = p.Request.Generation, p.Request.Generation
	}
	s.Last = Message{ID: c.MessageID, Role: roleTool, Origin: originTool}
}

func (s *State) suspend(suspends bool, loop *events.Loop) {
	s.loop(loop)
	if suspends && s.Run != nil {
		s.Run.Status = runSuspended
	}
}
