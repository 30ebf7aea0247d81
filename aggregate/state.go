package aggregate

import (
	"maps"
	"slices"
	"time"

	"culm/aggregate/policy"
	"culm/events"
)

// State is the fold of one session's events: what Decide needs, and nothing
// that grows with the transcript but the receipts and decisions that must be
// answered again for the life of the session. The zero value is the session
// that does not exist yet. Evolve changes a State in place; whoever needs two
// of them clones first.
type State struct {
	Head    events.Head // of the last event folded
	Session Session
	Last    Message // last message of the transcript
	// Repeat is the newest generated iteration message; GenuineSince says that
	// a person's message came after it (docs/rules.md#pending-repeat).
	Repeat       *events.Repeat
	GenuineSince bool
	Unseen       bool   // a person's message came after the last round was admitted
	Answers      uint64 // answers of the model so far
	Run          *Run   // requested, live or suspended; nil after its end
	Spent        Spent  // budget of the chain of runs that one request began
	StoppedRun   string // requested run that a loop stop ended before its claim
	Loop         *Loop
	Calls        []Call             // of the last answer, in its order
	Grants       []policy.Grant     // decisions remembered for the session, in their order
	Policy       policy.Policy      // of the _settings session: the fold of its rules
	Decided      map[string]Decided // by generation: decisions given
	Usage        events.Usage       // of all runs
	receipts     map[string]receipt // by command id
}

// Session is who the session is and how it is set.
type Session struct {
	Name    string
	Kind    string // root or child
	Parent  *events.Parent
	Created time.Time
	Closed  bool
	events.Settings
	Mode            string // requested permission mode
	Plan            *Plan  // read-only overlay, nil if off
	ReadOnly        bool
	NoHumanApprover bool
	EnforcePolicy   bool
	Posture         events.Posture
}

// Plan is the plan overlay.
type Plan struct {
	EnteredAt         time.Time
	PrePermissionMode string
	Reason            string
}

// Message is what Decide needs of a transcript message.
type Message struct {
	ID      string
	Role    string // user, assistant or tool
	Origin  string // person, repeat, model or tool
	Content string
}

// Roles and origins of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"

	originPerson = "person"
	originRepeat = "repeat"
	originModel  = "model"
	originTool   = "tool"
)

// Run states.
const (
	runRequested = "requested"
	runLive      = "live"
	runSuspended = "suspended"
)

// Run is the session's one run.
type Run struct {
	ID              string
	Status          string // requested, live or suspended
	Cause           string
	LoopRequest     *events.LoopRequest
	Runner          string
	Primary         events.RosterModel // the run's model
	Fence           uint64             // sequence of run.started, 0 before
	Rounds          uint32             // rounds admitted in this run: the number of the next one
	RoundOpen       bool               // round Rounds-1 is admitted and unanswered
	Iteration       uint32             // of the open or last round
	Summary         bool               // the open round is the summary round
	Terminal        bool               // the model has given its last answer of this run
	FailedRound     bool               // the last round failed
	CancelRequested bool
	Usage           events.Usage
}

// Spent is the budget of one request and what its runs have used of it. It is
// carried from a run to the successor that a decision, an answer, a retry or a
// continuation asks for, so that a resume never starts a new budget.
type Spent struct {
	Budget      events.Budget
	Rounds      uint32
	Tokens      uint64
	ToolCalls   uint32
	Exhausted   string // kind of the bound that was reached, "" for none
	SummaryUsed bool
}

// CallStatus is where a tool call stands.
type CallStatus string

// The states of a tool call (docs/rules.md#tool-call).
const (
	CallOpen    CallStatus = "open"    // asked for by the model, not started
	CallStarted CallStatus = "started" // tool.started or replay.started, no outcome yet
	CallParked  CallStatus = "parked"  // waits for a person
	CallDecided CallStatus = "decided" // approved, to be replayed
	CallUnknown CallStatus = "unknown" // started, its run is gone; waits for a person
	CallSettled CallStatus = "settled" // has its outcome
)

// Waiting says that a person owes a decision.
func (s CallStatus) Waiting() bool { return s == CallParked || s == CallUnknown }

// Call is one tool call of the last answer.
type Call struct {
	events.ToolCall
	MessageID  string // of its result: the occurrence
	Answer     uint64 // ordinal of the answer that asked for it
	Index      int    // position in that answer
	Status     CallStatus
	Mutating   bool
	Access     events.Access // of the last tool.authorized
	Risk       string        // as stated with it, "" if none was
	Authorized bool          // by tool.authorized
	Digest     string        // of the arguments, once parked or unknown
	StartedSeq uint64        // of the last tool.started or replay.started
	Replaying  bool          // the start was a replay
	Success    bool          // once settled
	// Parked is what waits, while parked, decided or unknown after a gate.
	Parked    *events.Parked
	ParkedSeq uint64
	ParkedAt  time.Time
	// Generation is the one to decide under, "" for a plain question.
	Generation string
	Newest     string     // generation given last, also once settled; "" if there never was one
	Approval   *Approval  // the allow decision, while decided or replayed
	Ledger     []Approval // approvals given for earlier gates of this occurrence
}

// Approval is one allow decision with what it was given for.
type Approval struct {
	Request    *events.PermissionRequest // nil for an unknown call
	Decision   string
	Matcher    *events.Matcher
	Generation string
	ExpiresAt  time.Time
}

// Decided is a decision as it must be answered again.
type Decided struct {
	ToolCallID string
	MessageID  string
	Decision   string // a decision kind, or resolved
	MatcherID  string
	Exact      bool // the matcher is an exact resource, by whatever id
	Actor      string
	Seq        uint64
}

// receipt remembers the command of an event for the life of the session.
type receipt struct {
	seq    uint64
	digest string
}

// Exists says that the session has been created.
func (s *State) Exists() bool { return s.Head.Birth != "" }

// Receipt returns the sequence and digest of the event that the command id
// appended, or false.
func (s *State) Receipt(id string) (seq uint64, digest string, ok bool) {
	r, ok := s.receipts[id]
	return r.seq, r.digest, ok
}

// loopOf is the loop that the run executes, or nil: a loop of an earlier run
// is history for this one.
func (s *State) loopOf(run *Run) *Loop {
	if s.Loop == nil || run == nil || s.Loop.Owner != run.ID {
		return nil
	}
	return s.Loop
}

// call finds a call of the last answer by the id that commands use.
func (s *State) call(id string) *Call {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	return nil
}

// count counts calls of the last answer by a property of their status.
func (s *State) count(is func(CallStatus) bool) int {
	n := 0
	for i := range s.Calls {
		if is(s.Calls[i].Status) {
			n++
		}
	}
	return n
}

func isStatus(want CallStatus) func(CallStatus) bool {
	return func(s CallStatus) bool { return s == want }
}

func unsettled(s CallStatus) bool { return s != CallSettled }

// Waiting counts the calls that wait for a person.
func (s *State) Waiting() int { return s.count(CallStatus.Waiting) }

// replays counts the decided calls that are to be replayed.
func (s *State) replays() int { return s.count(isStatus(CallDecided)) }

// pendingRepeat: the last loop ended in the middle of iteration 2 or later and
// no person has spoken since (docs/rules.md#pending-repeat).
func (s *State) pendingRepeat() bool {
	l := s.Loop
	return l != nil && !l.Abandoned && !l.Status.Live() && l.Status != events.StatusPaused && l.IterationsStarted != l.IterationsCompleted && !s.GenuineSince &&
		s.Repeat != nil && s.Repeat.LoopGeneration == l.Generation && s.Repeat.Iteration == l.IterationsStarted
}

// loopBlocks says that the loop refuses every activation: its owner died, or
// it ended without a known outcome. What goes on nevertheless after a park is
// excepted by the callers.
func (s *State) loopBlocks() bool {
	l := s.Loop
	return l != nil && !l.Abandoned && (l.Status == events.StatusRecoveryUnsupported || l.Status.Live() && (s.Run == nil || s.Run.ID != l.Owner))
}

// parkedLoop: the loop ended by parking, which does not stop the decisions and
// answers of its own calls (docs/rules.md#on-park).
func (s *State) parkedLoop() bool {
	return s.Loop != nil && s.Loop.Status == events.StatusRecoveryUnsupported && s.Loop.Reason == reasonParked
}

// Clone is a deep copy; Evolve on one does not show in the other.
func (s *State) Clone() *State {
	c := *s
	if s.Run != nil {
		r := *s.Run
		c.Run = &r
	}
	if s.Loop != nil {
		l := *s.Loop
		c.Loop = &l
	}
	if s.Session.Plan != nil {
		p := *s.Session.Plan
		c.Session.Plan = &p
	}
	c.Grants = slices.Clone(s.Grants)
	c.Calls = slices.Clone(s.Calls)
	c.Decided = maps.Clone(s.Decided)
	c.receipts = maps.Clone(s.receipts)
	return &c
}
