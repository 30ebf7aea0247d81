package aggregate

import (
	"slices"
	"strings"

	"culm/aggregate/policy"
	"culm/events"
)

// decisionResult is the result of approval.decide, question.answer and
// tool.resolve.
type decisionResult struct {
	Replayed bool   `json:"replayed,omitzero"` // the same decision was given before
	RunID    string `json:"run_id,omitzero"`   // successor run this requested
	Blocked  string `json:"blocked,omitzero"`  // why no run was requested
}

// decideApproval is a person's decision on exactly one waiting call
// (docs/rules.md#decide).
func decideApproval(s *State, c ApprovalDecide, env Env) (Decision, *Rejection) {
	if d, ok := s.Decided[c.Generation]; ok && d.ToolCallID == c.ToolCallID {
		if r := s.outdated(c.ToolCallID, c.Generation); r != nil {
			return refuse(r)
		}
		return decidedBefore(d, c)
	}
	call := s.call(c.ToolCallID)
	if call == nil || !call.Status.Waiting() {
		return refuse(s.notWaiting(c.ToolCallID))
	}
	if call.Generation == "" {
		return refuse(reject(CodeDecisionNotAllowed, "this is a question; question.answer answers it"))
	}
	if call.Generation != c.Generation {
		return refuse(call.otherGeneration())
	}
	matcher, rule, r := s.checkDecision(call, c, env)
	if r != nil {
		return refuse(r)
	}
	e := events.ApprovalDecided{
		CallRef: call.ref(), Generation: c.Generation, Decision: c.Decision, MatcherID: c.MatcherID, Matcher: matcher, Note: c.Note,
	}
	if matcher != nil {
		e.MatcherID = matcher.ID
	}
	if c.Decision == allowSession || c.Decision == denySession {
		e.ExpiresAt = env.Config.Policy.SessionExpiry(env.Now)
	}
	next := CallDecided
	if !isAllow(c.Decision) {
		next, e.Content = CallSettled, call.notRun("a person denied it")
		if c.Note != "" {
			e.Content += ": " + c.Note
		}
	}
	e.RunID = s.successor(call.ID, next, env)
	return Decision{Event: e, Rule: rule}, nil
}

// notWaiting tells apart why nothing waits under the call id.
func (s *State) notWaiting(id string) *Rejection {
	if s.Waiting() > 0 && s.call(id) == nil {
		return reject(CodePendingQuestionMismatch, "no call %.80q waits; others do", id).with("expected", cutText(id, maxDetail)).with("actual", s.waitingIDs())
	}
	return reject(CodeNoPendingQuestion, "nothing waits for a decision on %.80q", id)
}

// waitingIDs are the calls that wait for a person, in the order of the answer.
func (s *State) waitingIDs() []string {
	var out []string
	for i := range s.Calls {
		if s.Calls[i].Status.Waiting() {
			out = append(out, s.Calls[i].ID)
		}
	}
	return out
}

// outdated refuses a generation that was decided and is not the newest of its
// call id any more: a second gate, an unknown outcome or the same id in a later
// answer has brought a newer one. What was decided under it stays, and says
// nothing about that one.
func (s *State) outdated(id, generation string) *Rejection {
	newest := ""
	if call := s.call(id); call != nil {
		newest = call.Newest
	}
	if newest == "" {
		newest = s.lastDecided(id)
	}
	if newest == generation {
		return nil
	}
	return generationChanged(newest, "the call was to be decided under a newer generation since")
}

// lastDecided is the generation of the call id that was decided last.
func (s *State) lastDecided(id string) string {
	newest, at := "", uint64(0)
	for g, d := range s.Decided {
		if d.ToolCallID == id && d.Seq > at {
			newest, at = g, d.Seq
		}
	}
	return newest
}

func (c *Call) otherGeneration() *Rejection {
	return generationChanged(c.Generation, "the call waits under another generation")
}

// decidedBefore answers a decision for a generation that has one: the same
// meaning is no new decision, another is too late.
func decidedBefore(d Decided, c ApprovalDecide) (Decision, *Rejection) {
	same := policy.SameChoice(policy.Choice{Decision: d.Decision, MatcherID: d.MatcherID}, c.choice())
	if same || d.Exact && c.MatcherID == "" && d.Decision == c.Decision { // no matcher means the exact one, whatever its id
		return nothing(decisionResult{Replayed: true})
	}
	return refuse(d.already())
}

func (d Decided) already() *Rejection {
	return reject(CodeAlreadyDecided, "%s was decided as %s by %s", d.ToolCallID, d.Decision, d.Actor).
		with("decision", d.Decision).with("actor", d.Actor).with("sequence", d.Seq)
}

func (c ApprovalDecide) choice() policy.Choice {
	return policy.Choice{Decision: c.Decision, MatcherID: c.MatcherID, ExpectedRevision: c.ExpectedPolicyRevision, ConfirmGlobal: c.ConfirmGlobal}
}

// successor is the id of the run that a decision requests, or "": one is
// requested or live already, a crashed loop blocks, or there is nothing to do
// yet because other calls still wait (docs/rules.md#successor).
func (s *State) successor(id string, next CallStatus, env Env) string {
	if s.active() != nil || s.decisionsBlocked() {
		return ""
	}
	waiting, replay := false, false
	for i := range s.Calls {
		st := s.Calls[i].Status
		if s.Calls[i].ID == id {
			st = next
		}
		waiting = waiting || st.Waiting()
		replay = replay || st == CallDecided
	}
	if waiting && !replay {
		return ""
	}
	return env.mint("run", 0)
}

// decisionsBlocked says that a loop keeps decisions from starting a run: one
// that crashed, or ended in the middle of an iteration that only a person's
// message may follow. A loop that ended by parking does not, and no loop keeps
// a suspended run from going on.
func (s *State) decisionsBlocked() bool {
	suspended := s.Run != nil && s.Run.Status == runSuspended
	return !suspended && !s.parkedLoop() && (s.loopBlocks() || s.pendingRepeat())
}

func (s *State) blockedReason(runID string) string {
	if runID == "" && s.active() == nil && s.decisionsBlocked() {
		return CodeRecoveryUnsupported
	}
	return ""
}

// decideAnswer is a person's answer to a question (docs/rules.md#answer).
func decideAnswer(s *State, c QuestionAnswer, env Env) (Decision, *Rejection) {
	call, r := s.answered(c)
	if r != nil {
		return refuse(r)
	}
	q := call.Parked.Question
	if !q.AllowCustom && !slices.Contains(q.Options, *c.Answer) {
		return refuse(reject(CodeOptionNotAllowed, "the answer is none of the options, exactly as written").with("options", q.Options))
	}
	e := events.QuestionAnswered{
		CallRef: call.ref(), Answer: *c.Answer, Content: *c.Answer, Model: c.Model, ReasoningEffort: c.ReasoningEffort,
		RunID: s.successor(call.ID, CallSettled, env),
	}
	e.Plan, e.Posture = s.planMove(call, *c.Answer, env)
	return appendEvent(e)
}

// answered finds the one question that the answer is for.
func (s *State) answered(c QuestionAnswer) (*Call, *Rejection) {
	var call *Call
	if c.ToolCallID != "" {
		call = s.call(c.ToolCallID)
		if call == nil || !call.Status.Waiting() {
			return nil, s.notWaiting(c.ToolCallID)
		}
	} else {
		for i := range s.Calls {
			if !s.Calls[i].Status.Waiting() {
				continue
			}
			if call != nil {
				return nil, reject(CodePendingQuestionMismatch, "%d items wait; name one by tool_call_id", s.Waiting()).with("expected", "").with("actual", s.waitingIDs())
			}
			call = &s.Calls[i]
		}
		if call == nil {
			return nil, reject(CodeNoPendingQuestion, "nothing waits for an answer")
		}
	}
	if call.Generation != "" {
		return nil, reject(CodeTypedDecisionRequired, "%.80q waits for a decision, not for words: approval.decide or tool.resolve", call.ID)
	}
	return call, nil
}

// planMove is what an answer does to the plan overlay.
func (s *State) planMove(call *Call, answer string, env Env) (string, *events.Posture) {
	a, on := strings.ToLower(answer), s.Session.Plan != nil
	move := ""
	switch strings.ToLower(call.Name) {
	case "enterplanmode":
		if !on && strings.Contains(a, "enter plan mode") {
			move, on = "entered", true
		}
	case "exitplanmode":
		if on && strings.Contains(a, "approve") && !strings.Contains(a, "stay in plan mode") {
			move, on = "exited", false
		}
	}
	if move == "" {
		return "", nil
	}
	p := posture(s.Session.Posture.AuditRevision, s.Session.Mode, on, env)
	return move, &p
}

// decideResolve lets a person supply the outcome of an unknown call.
func decideResolve(s *State, c ToolResolve, env Env) (Decision, *Rejection) {
	if d, ok := s.Decided[c.Generation]; ok && d.ToolCallID == c.ToolCallID {
		if r := s.outdated(c.ToolCallID, c.Generation); r != nil {
			return refuse(r)
		}
		return refuse(d.already())
	}
	call := s.call(c.ToolCallID)
	switch {
	case call == nil || !call.Status.Waiting():
		return refuse(s.notWaiting(c.ToolCallID))
	case call.Status != CallUnknown:
		return refuse(reject(CodeTypedDecisionRequired, "the outcome of %.80q is not unknown: it has not run", call.ID))
	case c.Generation != "" && c.Generation != call.Generation:
		return refuse(call.otherGeneration())
	}
	return appendEvent(events.ToolResolved{
		CallRef: call.ref(), Generation: call.Generation, Success: *c.Success, Content: *c.Content,
		RunID: s.successor(call.ID, CallSettled, env),
	})
}
