package aggregate

import (
	"time"

	"culm/aggregate/policy"
	"culm/aggregate/routing"
	"culm/events"
)

// Env is what a decision may use besides the state: everything that would
// otherwise come from a clock, a random source or a configuration.
type Env struct {
	Now     time.Time // UTC
	Actor   string
	Command string // command id; ids of what the command creates follow from it
	Session string // token of the session
	Birth   string // of the session; for its first command the new one
	Config  Config
}

// Config is the part of the installation's configuration that decisions rest
// on: one snapshot, taken when the command is judged.
type Config struct {
	// Policy of the installation: configuration and the events of _settings.
	Policy         policy.Policy
	Mode           string // configured permission mode, "" means default; the policy's
	PolicyRevision uint64 // sequence of the _settings session; the policy's
	// QuestionTTL is how long a parked call waits before it expires, 0 for ever.
	QuestionTTL time.Duration
	Digest      string // hex SHA-256 of the configuration
	// Routing is what the configuration says of providers, models and gold.
	Routing routing.Config
	LeaseMS int64
}

// expiry is when an item parked now expires; zero for never.
func (env Env) expiry() time.Time {
	if env.Config.QuestionTTL <= 0 {
		return time.Time{}
	}
	return env.Now.Add(env.Config.QuestionTTL)
}

// Decision is what a command leads to.
type Decision struct {
	// Event to append; nil when there is nothing to append.
	Event events.Data
	// Refusal goes with an Event: a fact is stored and the command refused (†).
	Refusal *Rejection
	// Rule is stored in the _settings session before Event, if it is not there
	// yet: a decision that is remembered for more than the session.
	Rule *events.PolicyRuleAdded
	// Result is the reply's result where no event is appended. With an event
	// the result follows from the event: see Outcome.
	Result any
}

func appendEvent(d events.Data) (Decision, *Rejection) { return Decision{Event: d}, nil }
func refuseWith(d events.Data, r *Rejection) (Decision, *Rejection) {
	return Decision{Event: d, Refusal: r}, nil
}
func nothing(result any) (Decision, *Rejection)  { return Decision{Result: result}, nil }
func refuse(r *Rejection) (Decision, *Rejection) { return Decision{}, r }

// Decide judges one command against the state. It is pure: equal arguments
// give equal decisions, and s is not changed. A *Rejection means that nothing
// is appended. A command whose effect already holds gets no event.
func Decide(s *State, c Command, env Env) (Decision, *Rejection) {
	_, ofPolicy := c.(policyCommand)
	switch {
	case ofPolicy != (env.Session == SettingsSession):
		return refuse(reject(CodeInvalidCommand, "policy.* commands go to the session %s, and no others do", SettingsSession))
	case ofPolicy:
		return decidePolicy(s, c, env)
	}
	if create, ok := c.(SessionCreate); ok {
		return decideCreate(s, create, env)
	}
	switch {
	case !s.Exists():
		return refuse(reject(CodeSessionNotFound, "there is no such session; session.create makes one"))
	case s.Session.Closed:
		return refuse(reject(CodeSessionClosed, "the session is closed; it can be read, and deleted"))
	}
	switch c := c.(type) {
	case SessionConfigure:
		return decideConfigure(s, c)
	case SessionSetMode:
		return decideSetMode(s, c, env)
	case SessionEnterPlan:
		return decideEnterPlan(s, c, env)
	case SessionExitPlan:
		return decideExitPlan(s, env)
	case SessionClose:
		return decideClose(s, c, env)
	case MessageSubmit:
		return decideMessage(c, env)
	case NoteAppend:
		return appendEvent(events.NoteAppended{Kind: c.Kind, Data: c.Data.Clone()})
	case RunRequest:
		return decideRequest(s, c, env)
	case RunResume:
		return decideResume(s, env)
	case RunCancel:
		return decideCancel(s, c)
	case LoopStop:
		return decideStop(s, c)
	case LoopContinue:
		return decideContinue(s, c, env)
	case LoopAbandon:
		return decideAbandon(s, c)
	case RunClaim:
		return decideClaim(s, c, env)
	case ApprovalDecide:
		return decideApproval(s, c, env)
	case QuestionAnswer:
		return decideAnswer(s, c, env)
	case ToolResolve:
		return decideResolve(s, c, env)
	}
	return decideForRunner(s, c, env)
}

// decideForRunner judges the commands that only the holder of the run may give.
func decideForRunner(s *State, c Command, env Env) (Decision, *Rejection) {
	run, r := s.heldRun(c)
	if r != nil {
		return refuse(r)
	}
	switch c := c.(type) {
	case RunRenew:
		return decideRenew(s, run, env)
	case RunRefuse:
		return decideRunRefuse(s, run, c, env)
	case RunFinish:
		return decideFinish(s, run, c, env)
	case RoundStart:
		return decideRoundStart(s, run, env)
	case RoundFinish:
		return decideRoundFinish(s, run, c, env)
	case RoundFail:
		return decideRoundFail(run, c)
	case ToolStart:
		return decideToolStart(s, run, c, env)
	case ToolFinish:
		return decideToolFinish(s, run, c)
	case ToolAuthorize:
		return decideAuthorize(s, run, c, env)
	case ToolPark:
		return decidePark(s, run, c, env)
	case ReplayStart:
		return decideReplay(s, run, env)
	case BudgetExhaust:
		return decideBudget(s, run, c)
	}
	return refuse(reject(CodeUnknownCommand, "the rules know no %T", c))
}

// runnerCommand is every command with a RunRef.
type runnerCommand interface{ ref() RunRef }

func (c RunRef) ref() RunRef { return c }

// heldRun is the live run if the command names it with its fence, else
// stale_run (docs/rules.md#fence).
func (s *State) heldRun(c Command) (*Run, *Rejection) {
	rc, ok := c.(runnerCommand)
	if !ok {
		return nil, reject(CodeUnknownCommand, "the rules know no %T", c)
	}
	ref := rc.ref()
	run := s.Run
	if run == nil || run.Status != runLive || run.ID != ref.RunID || run.Fence != ref.Fence {
		return nil, reject(CodeStaleRun, "run %.64q with fence %d does not hold the session", ref.RunID, ref.Fence)
	}
	return run, nil
}

// needCall finds an existing call for a command.
func (s *State) needCall(id string) (*Call, *Rejection) {
	c := s.call(id)
	if c == nil {
		return nil, reject(CodeNoSuchCall, "the last answer has no tool call %.80q", id)
	}
	return c, nil
}

func (c *Call) ref() events.CallRef {
	return events.CallRef{ToolCallID: c.ID, MessageID: c.MessageID, Name: c.Name}
}

func (c *Call) notOpen() *Rejection {
	return reject(CodeCallNotOpen, "tool call %.80q is %s", c.ID, c.Status).with("status", string(c.Status))
}

// unknownCalls lists the started calls that have no outcome, each with the
// generation under which a person decides (docs/rules.md#unknown).
func (s *State) unknownCalls(mint func(purpose string, index int) string) []events.UnknownCall {
	var out []events.UnknownCall
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Status == CallStarted {
			out = append(out, events.UnknownCall{
				ToolCallID: c.ID, MessageID: c.MessageID, Name: c.Name, ArgumentsDigest: events.Hash([]byte(c.Arguments)),
				Generation: mint("unknown", i), StartedSeq: c.StartedSeq,
			})
		}
	}
	return out
}

// voidCalls lists the calls for which which holds, with the failed result that
// they get.
func (s *State) voidCalls(why string, which func(CallStatus) bool) []events.VoidedCall {
	var out []events.VoidedCall
	for i := range s.Calls {
		c := &s.Calls[i]
		if !which(c.Status) {
			continue
		}
		out = append(out, events.VoidedCall{ToolCallID: c.ID, MessageID: c.MessageID, Content: c.notRun(why)})
	}
	return out
}

// notRun is the failed result of a call that will not run, or not again.
func (c *Call) notRun(why string) string {
	if c.Status == CallUnknown {
		return c.Name + " may have run before, its outcome is not known, and it does not run again: " + why
	}
	return c.Name + " was not run: " + why
}

// notStarted are the calls that can still be kept from happening.
func notStarted(st CallStatus) bool { return st != CallSettled && st != CallStarted }

// suspension says whether the run parks once the call id has its next status,
// and how its loop ends by it: some call waits, and no call is left to start, to
// finish or to replay. A run that was asked to cancel does not park: it is to
// finish as cancelled (docs/rules.md#suspend).
func (s *State) suspension(run *Run, id string, next CallStatus) (bool, *events.Loop) {
	if run.CancelRequested {
		return false, nil
	}
	waiting := false
	for i := range s.Calls {
		st := s.Calls[i].Status
		if s.Calls[i].ID == id {
			st = next
		}
		switch {
		case st.Waiting():
			waiting = true
		case st != CallSettled:
			return false, nil
		}
	}
	if !waiting {
		return false, nil
	}
	if l := s.loopOf(run); l != nil {
		return true, l.park().wire()
	}
	return true, nil
}
