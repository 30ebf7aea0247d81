package aggregate

import (
	"culm/aggregate/policy"
	"culm/events"
)

// empty is the result of a command that has nothing to say.
type empty struct{}

// Outcome is what the command answers after its event was appended: a pure
// function of the command's name, the event, and the state right after it, so
// that a repeated command gets its first answer from the log alone. LeaseMS is
// the engine's current one.
func Outcome(name string, after *State, e *events.Event, leaseMS int64) (any, *Rejection) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		return requestResult{outcomeRequested, d.RunID}, nil
	case events.RunStarted:
		return claimResult{Fence: e.Seq, LeaseMS: leaseMS, Cause: d.Cause, Roster: d.Roster, Loop: d.Loop, Replays: d.Replays}, nil
	case events.RunRefused:
		if name == "run.refuse" {
			return empty{}, nil
		}
		return nil, refusedAs(d)
	case events.LoopRecoveryRefused:
		return nil, after.recoveryRefused()
	case events.RoundStarted:
		return roundResult{Admitted: true, Round: &d.Round, Iteration: d.Iteration, Summary: d.Summary}, nil
	case events.LoopStopped, events.LoopBudgetExhausted, events.RunBudgetExhausted:
		return quietOutcome(name, after, e), nil
	case events.RoundFinished:
		return roundFinished(d), nil
	case events.ToolAuthorized:
		return authorizeResult{Decision: policy.Allow, Step: d.Step, RuleID: d.RuleID}, nil
	case events.ToolDenied:
		return authorizeResult{Decision: policy.Deny, Step: d.Step, RuleID: d.RuleID, Reason: d.Content, MessageID: d.MessageID, Suspended: d.Suspends}, nil
	case events.ToolParked, events.ReplayReparked:
		return parkOutcome(name, e), nil
	case events.PolicyRuleAdded:
		return ruleResult{d.RuleID}, nil
	case events.ReplayStarted:
		return replayOutcome(after, d), nil
	case events.ReplayBlocked:
		return replayResult{Blocked: &blockedItem{d.ToolCallID, d.Reason}, Pending: after.Waiting()}, nil
	case events.ApprovalDecided:
		return decisionResult{RunID: d.RunID, Blocked: after.blockedReason(d.RunID)}, nil
	case events.QuestionAnswered:
		return decisionResult{RunID: d.RunID, Blocked: after.blockedReason(d.RunID)}, nil
	case events.ToolResolved:
		return decisionResult{RunID: d.RunID, Blocked: after.blockedReason(d.RunID)}, nil
	case events.MessageSubmitted:
		return messageResult{d.MessageID}, nil
	case events.RunFinished:
		return runOutcome{Outcome: d.Outcome, CompletionReason: d.CompletionReason, Loop: d.Loop}, nil
	}
	return empty{}, nil
}

// refusedAs is the refusal that the event was stored with.
func refusedAs(d events.RunRefused) *Rejection {
	r := reject(d.Code, "%s", d.Message)
	for k, v := range d.Details {
		r.with(k, v)
	}
	return r
}

type messageResult struct {
	MessageID string `json:"message_id"`
}

type runOutcome struct {
	Outcome          string       `json:"outcome"`
	CompletionReason string       `json:"completion_reason,omitzero"`
	Loop             *events.Loop `json:"loop,omitzero"`
}

// quietOutcome is the answer to an admission that ended the loop or met a bound.
func quietOutcome(name string, after *State, e *events.Event) any {
	reason := refusedBudget
	if _, stopped := e.Data.(events.LoopStopped); stopped {
		reason = refusedStopped
	}
	switch name {
	case "round.start":
		return notAdmitted(reason)
	case "replay.start":
		return replayResult{Pending: after.Waiting(), Reason: reason}
	}
	return empty{}
}

func roundFinished(d events.RoundFinished) finishResult {
	out := finishResult{Decision: d.Decision}
	for _, c := range d.Message.ToolCalls {
		out.ToolCallIDs = append(out.ToolCallIDs, c.ID)
	}
	if n := d.Next; n != nil {
		out.Next = &roundResult{Admitted: n.Admitted, Reason: n.Reason}
		if n.Admitted {
			out.Next.Round, out.Next.Iteration = &n.Round, n.Iteration
		}
	}
	return out
}

type parkResult struct {
	MessageID  string `json:"message_id"`
	Generation string `json:"generation,omitzero"`
	Suspended  bool   `json:"suspended"`
}

func parkOutcome(name string, e *events.Event) any {
	var p events.Parked
	var out parkResult
	switch d := e.Data.(type) {
	case events.ToolParked:
		p, out = d.Parked, parkResult{MessageID: d.MessageID, Suspended: d.Suspends}
	case events.ReplayReparked:
		p, out = d.Parked, parkResult{MessageID: d.MessageID, Suspended: d.Suspends}
	}
	if p.Request == nil {
		return out
	}
	out.Generation = p.Request.Generation
	if name == "tool.authorize" {
		return authorizeResult{Decision: policy.Ask, Reason: p.Request.ReasonCode, Generation: out.Generation, MessageID: out.MessageID, Suspended: out.Suspended}
	}
	return out
}

func replayOutcome(after *State, d events.ReplayStarted) replayResult {
	out := replayResult{Pending: after.Waiting()}
	if c := after.call(d.ToolCallID); c != nil {
		out.Replay = &replayItem{
			ToolCallID: c.ID, Name: c.Name, Arguments: c.Arguments, ArgumentsDigest: c.Digest,
			Generation: d.Generation, Occurrence: d.MessageID, Flags: d.Flags,
		}
	}
	return out
}
