package projection

// The rows of the views, a field for each column of views/*.sql. Times are Unix
// nanoseconds, 0 for none; counts above 2^63-1 are kept as that.

type sessionRow struct {
	Session, Birth, Kind                                         string
	ParentSession, ParentCall                                    string
	Title, Provider, Model, ReasoningEffort, Workspace, Metadata string
	Mode, EffectiveMode                                          string
	Plan, ReadOnly, NoHumanApprover, EnforcePolicy, Closed       bool
	Status                                                       string
	CreatedAt, UpdatedAt                                         int64
	FirstSeq, Seq                                                int64
	LastType, LastActor                                          string
	Messages                                                     int64
	AnswerID                                                     string
	RunID, RunStatus, RunCause, Runner                           string
	CancelRequested                                              bool
	Round                                                        int64
	LoopGeneration, LoopStatus, LoopReason                       string
	IterationsStarted, IterationsCompleted, MaxIterations        int64
	RoundsStarted, MaxTotalRounds                                int64
	Waiting, WaitingSince                                        int64
	PromptTokens, CompletionTokens, TotalTokens                  int64
	LastOutcome, LastError                                       string
	StuckSeq                                                     int64
	StuckReason                                                  string
}

type runRow struct {
	Session, RunID, Status, Cause, Runner                   string
	Fence                                                   int64
	CancelRequested                                         bool
	RequestedBy                                             string
	RequestedSeq, RequestedAt, StartedAt, EndedSeq, EndedAt int64
	Reason, ErrorCode, ErrorMessage                         string
	Provider, Model                                         string
	Rounds                                                  int64
	PromptTokens, CompletionTokens, TotalTokens             int64
	LoopGeneration, Successor                               string
}

type loopRow struct {
	Session, Generation                                   string
	Revision                                              int64
	Status, Reason, Owner, Objective, OnPark              string
	MaxIterations, MaxTotalRounds                         int64
	IterationsStarted, IterationsCompleted, RoundsStarted int64
	StopRequested, Abandoned                              bool
	StartedSeq, StartedAt, UpdatedSeq, UpdatedAt          int64
}

type roundRow struct {
	Session, RunID                              string
	Round                                       int64
	LoopGeneration                              string
	Iteration                                   int64
	Summary                                     bool
	Status                                      string
	StartedSeq, StartedAt, EndedSeq, EndedAt    int64
	MessageID, Decision, FinishReason           string
	Attempts, ToolCalls                         int64
	PromptTokens, CompletionTokens, TotalTokens int64
	ErrorCode, ErrorMessage                     string
}

type messageRow struct {
	Session                                                 string
	N                                                       int64
	MessageID, Role, Origin, Content, ToolCalls, ToolCallID string
	Success                                                 int64 // -1 for a message that is no result
	Seq, At                                                 int64
	Actor, RunID                                            string
}

// callRow is one tool call of one answer.
type callRow struct {
	Session, AnswerID                         string
	Idx                                       int64
	MessageID, ToolCallID, ModelID            string
	Name, Arguments                           string
	RunID                                     string
	Round                                     int64
	Status, Outcome                           string
	Success, Mutating, Authorized             bool
	PermissionType, Resource, Verdict, RuleID string
	Digest                                    string
	RequestedSeq, RequestedAt                 int64
	StartedSeq, StartedAt, Starts             int64
	Replaying                                 bool
	EndedSeq, EndedAt                         int64
	EndedBy                                   string
	ElapsedMS                                 int64
	ResultBytes                               int64
	Error                                     string
}

// itemRow is one thing that waits, or waited, for a person.
type itemRow struct {
	Session, MessageID                           string
	SinceSeq, SinceAt                            int64
	Kind, ToolCallID, Name, AnswerID             string
	Idx                                          int64
	RunID, Generation, Question, Request, Digest string
	StartedSeq, ExpiresAt                        int64
	Status, Decision, DecidedBy                  string
	DecidedSeq, DecidedAt                        int64
	Note, Answer, Matcher, Successor             string
}

// usageRow counts what the answers of one session used on one day of one model.
type usageRow struct {
	Session, Day, Provider, Model     string
	Rounds, Prompt, Completion, Total int64
}

// timelineRow is one event.
type timelineRow struct {
	Session                                                     string
	Seq, At                                                     int64
	EventID, Type, Actor, Command, RunID, ToolCallID, MessageID string
	Bytes                                                       int64
	Text                                                        string
}

// checkpointRow is up to where a session is in the views.
type checkpointRow struct {
	Session, Birth         string
	Seq                    int64
	Hash, EventID          string
	At                     int64 // time of the event
	StuckSeq               int64
	StuckCode, StuckReason string
}

// Statuses of a session, the first that holds.
const (
	sessionStuck     = "stuck"     // an event could not be applied
	sessionClosed    = "closed"    //
	sessionRunning   = "running"   // a runner holds its run
	sessionRequested = "requested" // a run waits for a runner
	sessionWaiting   = "waiting"   // a person owes a decision
	sessionBlocked   = "blocked"   // a loop without a known end refuses activations
	sessionFailed    = "failed"    // the last run ended badly
	sessionIdle      = "idle"
)

// Statuses of a run.
const (
	runRequested   = "requested"
	runLive        = "live"
	runSuspended   = "suspended"
	runContinued   = "continued" // was suspended, a successor goes on
	runCompleted   = "completed"
	runFailed      = "failed"
	runCancelled   = "cancelled"
	runRefused     = "refused"
	runInterrupted = "interrupted"
	runStopped     = "stopped" // its loop was stopped before it began
)

// Statuses of a round.
const (
	roundOpen     = "open"
	roundFinished = "finished"
	roundFailed   = "failed"
	roundLost     = "lost" // its run ended before it had an answer
)

// Statuses of a tool call.
const (
	callOpen    = "open"
	callStarted = "started"
	callParked  = "parked"
	callDecided = "decided"
	callUnknown = "unknown"
	callSettled = "settled"
)

// Statuses and kinds of what waits for a person.
const (
	itemPending  = "pending"
	itemDecided  = "decided"
	itemApproval = "approval"
	itemQuestion = "question"
	itemUnknown  = "unknown"
)
