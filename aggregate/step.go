package aggregate

import "culm/events"

// StepKind says what the outside owes a session.
type StepKind string

// The steps, in the order Next looks for them.
const (
	// StepNothing: nothing is owed; a person or client moves next.
	StepNothing StepKind = "nothing"
	// StepClaim: a run is requested and has no runner. Pay with run.claim.
	StepClaim StepKind = "claim"
	// StepWait: calls wait for a person and nothing else can be done.
	StepWait StepKind = "wait"
	// StepReplay: decided calls are to be replayed. Pay with replay.start, then
	// run what it hands out and report with tool.finish or tool.park.
	StepReplay StepKind = "replay"
	// StepTools: calls of the last answer are open. For each: tool.start, run,
	// tool.finish (or tool.park). Calls in Running were started by this run already.
	StepTools StepKind = "tools"
	// StepAdmit: the next round needs admission. Pay with round.start.
	StepAdmit StepKind = "admit"
	// StepModel: a round is admitted and unanswered. Call the model once, then
	// round.finish or round.fail.
	StepModel StepKind = "model"
	// StepFinish: the run's work is over. Pay with run.finish and Outcome.
	StepFinish StepKind = "finish"
)

// Step is what the outside owes a session: the answer of Next. It is a hint
// that every command re-checks; acting on an old one is refused, never wrong.
type Step struct {
	Kind    StepKind
	Session string
	RunID   string             // of the requested or live run
	Fence   uint64             // of the live run, 0 before the claim
	Runner  string             // who holds the run, "" before the claim
	Cause   string             // why the run was requested
	Primary events.RosterModel // model of the live run
	// Round is, with StepModel, the admitted one, with StepTools and StepReplay
	// the last one of the run, 0 before the first.
	Round uint32
	// What follows is with StepModel.
	Iteration uint32 // 1-based in a loop, else 0
	Summary   bool   // the one summary round after a spent budget: no tools wanted
	InLoop    bool   // admit_next is worth asking for
	// Answers counts the model's answers of the session so far: the ordinal
	// (0-based) of the one that StepModel asks for.
	Answers uint64
	// Calls to run now, with StepTools, in order of the answer; not yet started.
	Calls []StepCall
	// Running calls were started and have no outcome, with StepTools.
	Running []StepCall
	// Outcome of run.finish, with StepFinish: ok, error or cancelled.
	Outcome string
	// Cancelled and Stopping say that a cancel or a loop stop was requested.
	Cancelled, Stopping bool
}

// StepCall is one tool call to run.
type StepCall struct {
	ID        string // tool_call_id for commands
	MessageID string // of its result: the occurrence
	ModelID   string // the id the model gave, may be empty or repeated
	Name      string
	Arguments string
	Answer    uint64 // ordinal of the answer that asked for it, see Step.Answers
	Index     int    // position in that answer, 0-based
}
