package main

import (
	"strings"

	"culm/aggregate/policy"
	"culm/events"
)

// approvalLog picks the events about what a person was asked and said, and about
// what ran of it: the decided calls, and those that a remembered decision let
// through later.
type approvalLog struct {
	rules map[string]bool // of policy, that decisions of this session made
	calls map[string]bool // under way by a remembered decision, by occurrence
}

func newApprovalLog() *approvalLog {
	return &approvalLog{rules: map[string]bool{}, calls: map[string]bool{}}
}

// wants takes the events of one session in their order.
func (l *approvalLog) wants(r events.Record) bool {
	e, err := events.Decode(r.Payload)
	if err != nil {
		return aboutApprovals(r.Type)
	}
	switch d := e.Data.(type) {
	case events.ApprovalDecided:
		if policy.Durable(d.Decision) && d.Matcher != nil {
			l.rules[policy.RuleFor(e.Session, d.ToolCallID, events.PermissionRequest{Generation: d.Generation}, d.Decision, *d.Matcher).RuleID] = true
		}
	case events.ToolAuthorized:
		if d.Step == policy.StepSessionGrant || d.RuleID != "" && l.rules[d.RuleID] {
			l.calls[d.MessageID] = true
			return true
		}
	case events.ToolFinished:
		granted := l.calls[d.MessageID]
		delete(l.calls, d.MessageID)
		return granted
	}
	return aboutApprovals(r.Type)
}

// aboutApprovals says that events of the type are about a person's decision.
func aboutApprovals(eventType string) bool {
	noun, verb, _ := strings.Cut(eventType, ".")
	switch noun {
	case "approval", "question", "replay", "policy":
		return true
	case "tool":
		return verb == "parked" || verb == "resolved" || verb == "denied"
	}
	return eventType == "run.interrupted"
}
