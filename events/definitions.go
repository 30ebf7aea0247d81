package events

// definitions is the catalogue of everything that can happen. Types are only
// ever added; a new field or a new meaning is a new version with an upcaster.
func definitions() []Definition {
	return []Definition{
		define[SessionCreated](1),
		define[SessionConfigured](1),
		define[SessionModeChanged](1),
		define[SessionPlanEntered](1),
		define[SessionPlanExited](1),
		define[SessionClosed](1),
		define[MessageSubmitted](1),
		ignorable(define[NoteAppended](1)),

		define[RunRequested](1),
		define[RunStarted](1),
		define[RunRefused](1),
		define[RunCancelRequested](1),
		define[RunBudgetExhausted](1),
		define[RunInterrupted](1),
		define[RunFinished](1),
		define[RoundStarted](1),
		define[RoundFinished](1),
		define[RoundFailed](1),

		define[LoopStopRequested](1),
		define[LoopStopped](1),
		define[LoopBudgetExhausted](1),
		define[LoopRecoveryRefused](1),
		define[LoopAbandoned](1),

		define[ToolAuthorized](1),
		define[ToolDenied](1),
		define[ToolStarted](1),
		define[ToolFinished](1),
		define[ToolParked](1),
		define[ToolResolved](1),
		define[ApprovalDecided](1),
		define[QuestionAnswered](1),
		define[QuestionExpired](1),
		define[ReplayStarted](1),
		define[ReplayFinished](1),
		define[ReplayBlocked](1),
		define[ReplayReparked](1),

		define[PolicyModeChanged](1),
		define[PolicyRuleAdded](1),
		define[PolicyRuleRemoved](1),
	}
}
