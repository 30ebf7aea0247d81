package show_test

import "culm/events"

var (
	grep  = events.CallRef{ToolCallID: "call_1", MessageID: "m4", Name: "grep"}
	write = events.CallRef{ToolCallID: "call_2", MessageID: "m5", Name: "write"}
)

// loop is the state of the story's one loop after an event.
func loop(status events.LoopStatus, started, completed, rounds uint32, reason string) *events.Loop {
	return &events.Loop{
		Generation: "g", Status: status, IterationsStarted: started, IterationsCompleted: completed,
		RoundsStarted: rounds, Reason: reason,
	}
}

// story has every event type at least once, in an order that could be.
func story() []events.Data {
	return append(append(loopStory(), toolStory()...), endStory()...)
}

func loopStory() []events.Data {
	running, k := events.StatusRunning, events.RuntimeKindIteration
	return []events.Data{
		events.SessionCreated{Settings: events.Settings{Title: "Tidy up", Model: &events.Model{Provider: "recorded", Model: "sample"}}, Posture: events.Posture{RequestedMode: "auto", EffectiveMode: "auto"}},
		events.SessionConfigured{Settings: events.Settings{Title: "Tidy up", ReasoningEffort: "high", Workspace: "/src", Metadata: map[string]string{"team": "red", "area": "docs"}}},
		events.SessionModeChanged{Mode: "default", Posture: events.Posture{RequestedMode: "default", EffectiveMode: "plan"}},
		events.SessionPlanEntered{Reason: "look first"},
		events.SessionPlanExited{Posture: events.Posture{RequestedMode: "default", EffectiveMode: "default"}},
		events.MessageSubmitted{UserMessage: events.UserMessage{Content: "Find the failing test.\nThen fix it."}},
		events.NoteAppended{Kind: "ticket", Data: []byte(`{"id":17}`)},
		events.RunRequested{Cause: "user", Message: &events.UserMessage{Content: "Fix it"}, LoopRequest: &events.LoopRequest{MaxIterations: 3, MaxTotalRounds: 10}},
		events.RunStarted{
			Roster: events.Roster{Primary: events.RosterModel{Provider: "recorded", Model: "sample"}},
			Loop:   &events.LoopStart{Loop: *loop(running, 0, 0, 0, ""), MaxIterations: 3, MaxTotalRounds: 10},
		},
		events.RoundStarted{Admission: events.Admission{Round: 0, Iteration: 1}, Loop: loop(running, 1, 0, 1, "")},
		events.RoundFinished{Iteration: 1, Message: events.AssistantMessage{Content: "I look.", ToolCalls: []events.ToolCall{{Name: "grep"}, {Name: "write"}}}, Decision: "tools"},
		events.ToolStarted{CallRef: grep},
		events.ToolFinished{CallRef: grep, Result: events.Result{Success: true, Content: "a.go:1: one\nb.go:2: two", ElapsedMS: 1250}},
		events.RoundStarted{Admission: events.Admission{Round: 1, Iteration: 1}, Loop: loop(running, 1, 0, 2, "")},
		events.RoundFinished{
			Round: 1, Iteration: 1, Message: events.AssistantMessage{Content: "Done."}, Decision: "continue",
			Next: &events.NextRound{Admitted: true, Admission: events.Admission{Round: 2, Iteration: 2, Repeat: &events.Repeat{RuntimeKind: k}}},
			Loop: loop(running, 2, 1, 3, ""),
		},
		events.RoundFailed{Round: 2, Error: events.Failure{Code: "overloaded", Message: "try later", Retryable: true}},
		events.LoopStopRequested{Loop: loop(running, 2, 1, 3, "")},
		events.LoopStopRequested{RunID: "r"},
		events.LoopStopped{Loop: *loop(events.StatusStopped, 2, 1, 3, "stop_requested")},
		events.LoopBudgetExhausted{Kind: "tool_calls", Loop: *loop(events.StatusBudgetExhausted, 3, 2, 10, "")},
		events.LoopRecoveryRefused{Loop: *loop(events.StatusRecoveryUnsupported, 2, 1, 3, "")},
		events.LoopAbandoned{Loop: events.Loop{Generation: "another", IterationsCompleted: 1, RoundsStarted: 4}},
		events.RunFinished{Outcome: "completed", Usage: events.Usage{Total: 12345}, Loop: loop(events.StatusCompleted, 3, 3, 5, "")},
	}
}

func toolStory() []events.Data {
	parked := events.Parked{Kind: "approval", Question: events.Question{Question: "May write change a.go?"}}
	return []events.Data{
		events.RunRequested{Cause: "retry"},
		events.RunRequested{Cause: "weather"},
		events.RunStarted{Replays: 2},
		events.RoundStarted{Admission: events.Admission{Round: 0}},
		events.RoundFinished{Message: events.AssistantMessage{ToolCalls: []events.ToolCall{{Name: "write"}}}},
		events.ToolAuthorized{CallRef: grep, Access: events.Access{PermissionType: "read", Resource: "a.go"}, Verdict: events.Verdict{Step: "below_threshold"}},
		events.ToolAuthorized{CallRef: write, Access: events.Access{PermissionType: "write_file", Resource: "/src/a.go"}, Verdict: events.Verdict{Step: "session_grant", RuleID: "g"}},
		events.ToolDenied{CallRef: write, Access: events.Access{PermissionType: "write_file", Resource: "/etc/passwd"}, Verdict: events.Verdict{Step: "deny_rule", RuleID: "no-etc"}},
		events.ToolDenied{CallRef: write, Access: events.Access{PermissionType: "dance", Resource: "x"}, Verdict: events.Verdict{Step: "weather"}},
		events.ToolStarted{CallRef: write, Mutating: true},
		events.ToolFinished{CallRef: write, Result: events.Result{Error: "no space left"}},
		events.ToolParked{CallRef: write, Parked: parked, Suspends: true},
		events.ToolParked{CallRef: write, Parked: events.Parked{Kind: "approval", Question: events.Question{Question: "Allow this? …", Source: "policy"}, Request: &events.PermissionRequest{PermissionType: "write_file", Resource: "/src/a.go", Risk: "medium"}}},
		events.ToolParked{CallRef: write, Parked: events.Parked{Kind: "question", Question: events.Question{Question: "Which file?"}}},
		events.ApprovalDecided{CallRef: write, Decision: "allow_session", Matcher: &events.Matcher{Kind: "path_subtree", Pattern: "/src"}, Note: "fine", RunID: "r2"},
		events.ApprovalDecided{CallRef: write, Decision: "deny_once", Note: "not there"},
		events.ApprovalDecided{CallRef: write, Decision: "allow_mostly"},
		events.QuestionAnswered{CallRef: write, Answer: "a.go", RunID: "r2"},
		events.QuestionAnswered{CallRef: events.CallRef{ToolCallID: "p", Name: "ExitPlanMode"}, Answer: "Approve the plan", Plan: "exited", RunID: "r2"},
		events.QuestionExpired{CallRef: write},
		events.ReplayStarted{CallRef: write},
		events.ReplayFinished{CallRef: write, Result: events.Result{Success: true, Content: "ok", ElapsedMS: 85}},
		events.ReplayBlocked{CallRef: write, Reason: "plan"},
		events.ReplayReparked{CallRef: write, Parked: parked, Suspends: true},
		events.ToolResolved{CallRef: write, Success: true, Content: "it was written", RunID: "r3"},
		events.RunBudgetExhausted{Kind: "tokens"},
		events.RoundStarted{Admission: events.Admission{Round: 4, Summary: true}},
	}
}

func endStory() []events.Data {
	return []events.Data{
		events.RoundFinished{
			Message: events.AssistantMessage{Content: "That was all."}, Decision: "stop",
			Next: &events.NextRound{Reason: "budget_exhausted"},
		},
		events.RunCancelRequested{},
		events.RunFinished{Outcome: "cancelled", Voided: []events.VoidedCall{{}}},
		events.RunFinished{Outcome: "failed", CompletionReason: "provider", Error: &events.Failure{Code: "overloaded", Message: "three times"}},
		events.RunRefused{Code: "provider_unavailable", Message: "no such provider"},
		events.RunRefused{Code: "orphan_generation", Message: "no call", Loop: loop(events.StatusFailed, 2, 1, 3, "run_failed"), Unknown: []events.UnknownCall{{Name: "write"}}},
		events.RunInterrupted{Code: "lease_expired", Unknown: []events.UnknownCall{{Name: "write"}}},
		events.PolicyModeChanged{Mode: "dont_ask"},
		events.PolicyRuleAdded{RuleID: "r1", Effect: "always_ask", Scope: "workspace", Workspace: "/src", PermissionType: "write", Matcher: events.Matcher{Kind: "path_subtree", Pattern: "/src/docs"}},
		events.PolicyRuleRemoved{RuleID: "r1"},
		events.SessionClosed{Reason: "done", Voided: []events.VoidedCall{{}, {}}},
	}
}
