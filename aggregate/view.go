package aggregate

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// View is the state as reads show it; its JSON is docs/contract.md, "Reads".
// Equal states give equal bytes.
type View struct {
	Session  sessionView         `json:"session"`
	Run      *runView            `json:"run"`
	Loop     *loopView           `json:"loop"`
	Pending  []pendingView       `json:"pending"`
	Replays  []replayView        `json:"replays"`
	Unknown  []unknownView       `json:"unknown"`
	Grants   []grantView         `json:"grants"`
	Usage    events.Usage        `json:"usage"`
	Policy   *policyView         `json:"policy,omitzero"` // of _settings only
	Messages []TranscriptMessage `json:"messages,omitzero"`
}

type sessionView struct {
	Kind            string            `json:"kind"`
	Parent          *events.Parent    `json:"parent,omitzero"`
	Title           string            `json:"title"`
	Model           *events.Model     `json:"model"`
	ReasoningEffort string            `json:"reasoning_effort,omitzero"`
	Workspace       string            `json:"workspace,omitzero"`
	Gold            jsontext.Value    `json:"gold,omitzero"`
	Metadata        map[string]string `json:"metadata"`
	Mode            string            `json:"mode"`
	EffectiveMode   string            `json:"effective_mode"`
	AuditRevision   uint64            `json:"audit_revision"`
	PolicyRevision  uint64            `json:"policy_revision"`
	Plan            *planView         `json:"plan"`
	ReadOnly        bool              `json:"read_only"`
	NoHumanApprover bool              `json:"no_human_approver"`
	EnforcePolicy   bool              `json:"enforce_policy"`
	Closed          bool              `json:"closed"`
	CreatedAt       time.Time         `json:"created_at"`
}

type planView struct {
	EnteredAt         time.Time `json:"entered_at"`
	PrePermissionMode string    `json:"pre_permission_mode"`
	Reason            string    `json:"reason,omitzero"`
}

type runView struct {
	RunID           string  `json:"run_id"`
	Status          string  `json:"status"` // requested, live or suspended
	Cause           string  `json:"cause"`
	Runner          string  `json:"runner,omitzero"`
	Fence           uint64  `json:"fence,omitzero"`
	Round           *uint32 `json:"round,omitzero"` // the open or last one
	CancelRequested bool    `json:"cancel_requested"`
}

type loopView struct {
	SchemaVersion       int               `json:"schema_version"`
	Generation          string            `json:"generation"`
	Revision            uint64            `json:"revision"`
	ObjectiveRevision   int               `json:"objective_revision"`
	OwnerExecutionID    string            `json:"owner_execution_id"`
	Objective           string            `json:"objective"`
	MaxIterations       uint32            `json:"max_iterations"`
	MaxTotalRounds      uint32            `json:"max_total_rounds"`
	IterationsStarted   uint32            `json:"iterations_started"`
	IterationsCompleted uint32            `json:"iterations_completed"`
	RoundsStarted       uint32            `json:"rounds_started"`
	Status              events.LoopStatus `json:"status"`
	Reason              string            `json:"reason,omitzero"`
	OnPark              string            `json:"on_park"`
	StopRequested       bool              `json:"stop_requested"`
	Abandoned           bool              `json:"abandoned"`
}

// maxArgumentsShown bounds the arguments that a waiting item shows, in bytes;
// the digest is always of all of them.
const maxArgumentsShown = 16 << 10

type pendingView struct {
	ToolCallID      string                    `json:"tool_call_id"`
	MessageID       string                    `json:"message_id"`
	Kind            string                    `json:"kind"` // approval, question or unknown
	Generation      string                    `json:"generation,omitzero"`
	Name            string                    `json:"name"`
	Arguments       string                    `json:"arguments"` // at most 16 KiB of them
	ArgumentsBytes  int                       `json:"arguments_bytes"`
	ArgumentsDigest string                    `json:"arguments_digest"`
	Question        events.Question           `json:"question"`
	Request         *events.PermissionRequest `json:"request,omitzero"`
	Sequence        uint64                    `json:"sequence"` // of the event since which it waits
	ParkedAt        *time.Time                `json:"parked_at,omitzero"`
	ExpiresAt       *time.Time                `json:"expires_at,omitzero"` // absent: it waits for ever
}

type replayView struct {
	ToolCallID string `json:"tool_call_id"`
	MessageID  string `json:"message_id"`
	Name       string `json:"name"`
	Generation string `json:"generation"`
	Decision   string `json:"decision"`
	Started    bool   `json:"started"`
}

type unknownView struct {
	ToolCallID      string `json:"tool_call_id"`
	MessageID       string `json:"message_id"`
	Name            string `json:"name"`
	ArgumentsDigest string `json:"arguments_digest"`
	Generation      string `json:"generation"`
	StartedSeq      uint64 `json:"started_seq"`
}

// View shows the state; the transcript is added by whoever folded one.
func (s *State) View() View {
	v := View{
		Session: s.sessionView(), Run: s.runView(), Loop: s.loopView(), Usage: s.Usage,
		Pending: []pendingView{}, Replays: []replayView{}, Unknown: []unknownView{}, Grants: s.grantViews(), Policy: s.policyView(),
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		switch {
		case c.Status.Waiting() && !s.Session.Closed: // in a closed session nobody can decide any more
			v.Pending = append(v.Pending, c.pendingView())
		case c.Status == CallDecided || c.Status == CallStarted && c.Replaying:
			v.Replays = append(v.Replays, replayView{c.ID, c.MessageID, c.Name, c.Generation, c.Approval.Decision, c.Status == CallStarted})
		}
		if c.Status == CallUnknown {
			v.Unknown = append(v.Unknown, unknownView{c.ID, c.MessageID, c.Name, c.Digest, c.Generation, c.StartedSeq})
		}
	}
	return v
}

func (s *State) sessionView() sessionView {
	n := &s.Session
	v := sessionView{
		Kind: n.Kind, Parent: n.Parent, Title: n.Title, Model: n.Model, ReasoningEffort: n.ReasoningEffort, Workspace: n.Workspace,
		Gold: n.Gold, Metadata: n.Metadata, Mode: n.Mode, EffectiveMode: n.Posture.EffectiveMode,
		AuditRevision: n.Posture.AuditRevision, PolicyRevision: n.Posture.PolicyRevision, ReadOnly: n.ReadOnly,
		NoHumanApprover: n.NoHumanApprover, EnforcePolicy: n.EnforcePolicy, Closed: n.Closed, CreatedAt: n.Created,
	}
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	if p := n.Plan; p != nil {
		v.Plan = &planView{p.EnteredAt, p.PrePermissionMode, p.Reason}
	}
	return v
}

func (s *State) runView() *runView {
	r := s.Run
	if r == nil {
		return nil
	}
	v := &runView{RunID: r.ID, Status: r.Status, Cause: r.Cause, Runner: r.Runner, Fence: r.Fence, CancelRequested: r.CancelRequested}
	if r.Rounds > 0 {
		round := r.Rounds - 1
		v.Round = &round
	}
	return v
}

func (s *State) loopView() *loopView {
	l := s.Loop
	if l == nil {
		return nil
	}
	return &loopView{
		SchemaVersion: loopSchema, Generation: l.Generation, Revision: l.Revision, ObjectiveRevision: objectiveRevision,
		OwnerExecutionID: l.Owner, Objective: l.Objective, MaxIterations: l.MaxIterations, MaxTotalRounds: l.MaxTotalRounds,
		IterationsStarted: l.IterationsStarted, IterationsCompleted: l.IterationsCompleted, RoundsStarted: l.RoundsStarted,
		Status: l.Status, Reason: l.Reason, OnPark: l.OnPark, StopRequested: l.StopRequested, Abandoned: l.Abandoned,
	}
}

func (c *Call) pendingView() pendingView {
	v := pendingView{
		ToolCallID: c.ID, MessageID: c.MessageID, Kind: itemUnknown, Generation: c.Generation, Name: c.Name,
		Arguments: cutText(c.Arguments, maxArgumentsShown), ArgumentsBytes: len(c.Arguments), ArgumentsDigest: c.Digest, Sequence: c.StartedSeq,
		Question: events.Question{
			Question: "The outcome of " + c.Name + " is not known: it may have happened already. Run it again, or supply the outcome?",
			Source:   "engine",
		},
	}
	if c.Status == CallParked {
		v.Kind, v.Question, v.Request, v.Sequence = c.Parked.Kind, c.Parked.Question, c.Parked.Request, c.ParkedSeq
		at := c.ParkedAt
		v.ParkedAt = &at
		if end := c.Parked.ExpiresAt; !end.IsZero() {
			v.ExpiresAt = &end
		}
	}
	return v
}

// cutText shortens s to at most n bytes without splitting a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

func marshal(v any) (jsontext.Value, error) { return json.Marshal(v, resultOptions) }

var resultOptions = json.Deterministic(true)
