package policy

import "time"

// Session is what the policy needs to know of a session.
type Session struct {
	RequestedMode   string // default, bypass or auto
	Plan            bool   // the plan overlay is on
	ReadOnly        bool   // its host lets it change nothing
	NoHumanApprover bool   // nobody is there to be asked
}

// Input is all that a verdict rests on.
type Input struct {
	Policy  Policy
	Session Session
	Request Request
	// CallID and Generation name the call; Generation is "" outside of a replay.
	CallID     string
	Generation string
	Grants     []Grant // remembered for the session, in the order of their decisions
	OneShots   []OneShot
	// Supported are the decisions that the caller can carry out, nil for all.
	Supported []string
	Now       time.Time
}

// What a verdict says.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// Step names, in the order in which they are tried (docs/permissions.md#order).
const (
	StepPlatform     = "platform_hard_deny"
	StepDenyRule     = "deny_rule"
	StepSessionDeny  = "session_deny"
	StepReadOnly     = "read_only"
	StepPlan         = "plan"
	StepOneShot      = "one_shot"
	StepAuto         = "auto"
	StepDangerous    = "hard_dangerous"
	StepAlwaysAsk    = "always_ask"
	StepSessionGrant = "session_grant"
	StepAllowRule    = "allow_rule"
	StepChecksOff    = "checks_off"
	StepBypass       = "bypass"
	StepDontAsk      = "dont_ask"
	StepAcceptEdits  = "accept_edits"
	StepBelow        = "below_threshold"
	StepRisk         = "risk_threshold"

	// StepNoHuman is the step of a verdict that would have asked, where nobody
	// is there to be asked.
	StepNoHuman = "no_human_approver"
)

// order is the evaluation order. Each judge says whether its step applies and
// fills in what the verdict has beside the step's name; the first that applies
// decides. The last always applies.
var order = []struct {
	step  string
	judge func(*evaluation, *Verdict) bool
}{
	{StepPlatform, (*evaluation).platform},
	{StepDenyRule, (*evaluation).denyRule},
	{StepSessionDeny, (*evaluation).sessionDeny},
	{StepReadOnly, (*evaluation).readOnly},
	{StepPlan, (*evaluation).plan},
	{StepOneShot, (*evaluation).oneShot},
	{StepAuto, (*evaluation).auto},
	{StepDangerous, (*evaluation).dangerous},
	{StepAlwaysAsk, (*evaluation).alwaysAsk},
	{StepSessionGrant, (*evaluation).sessionGrant},
	{StepAllowRule, (*evaluation).allowRule},
	{StepChecksOff, (*evaluation).checksOff},
	{StepBypass, (*evaluation).bypass},
	{StepDontAsk, (*evaluation).dontAsk},
	{StepAcceptEdits, (*evaluation).acceptEdits},
	{StepBelow, (*evaluation).below},
	{StepRisk, (*evaluation).risk},
}

// Steps lists the step names in the order in which they are tried.
func Steps() []string {
	out := make([]string, len(order))
	for i, o := range order {
		out[i] = o.step
	}
	return out
}

// Evaluate goes through the evaluation order and returns what its first
// applicable step says (docs/permissions.md#order). It changes nothing: that a
// one-shot approval was used is for the caller to note, see Verdict.OneShot.
func Evaluate(in Input) Verdict {
	e := &evaluation{Input: in, subject: newSubject(in.Request)}
	e.mode = EffectiveMode(in.Policy.Mode(), in.Session.RequestedMode, in.Session.Plan)
	e.flags = Flags(in.Policy.Mode(), in.Session.RequestedMode, in.Session.Plan)
	for _, o := range order {
		v := Verdict{
			Step: o.step, Risk: in.Request.EffectiveRisk(), PolicyRevision: in.Policy.revision, EffectiveMode: e.mode,
			RequestedMode: in.Session.RequestedMode, OneShot: -1,
		}
		if o.judge(e, &v) {
			return e.finish(v)
		}
	}
	panic("policy: no step of the evaluation order applies")
}
