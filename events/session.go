package events

import "github.com/go-json-experiment/json/jsontext"

// SessionCreated opens a lifetime of a session id.
type SessionCreated struct {
	Kind string `json:"kind"` // root or child
	Settings
	Parent          *Parent `json:"parent,omitzero"`
	Mode            string  `json:"mode"` // default, bypass or auto
	ReadOnly        bool    `json:"read_only,omitzero"`
	NoHumanApprover bool    `json:"no_human_approver,omitzero"`
	EnforcePolicy   bool    `json:"enforce_policy,omitzero"`
	Posture
}

// SessionConfigured carries all settings as they stand after the change.
type SessionConfigured struct{ Settings }

// SessionModeChanged is a change of the requested permission mode.
type SessionModeChanged struct {
	Mode string `json:"mode"` // default, bypass or auto
	Posture
}

// SessionPlanEntered puts the read-only plan overlay on.
type SessionPlanEntered struct {
	Reason string `json:"reason,omitzero"`
	Posture
}

// SessionPlanExited takes the plan overlay off.
type SessionPlanExited struct{ Posture }

// SessionClosed ends the session; a live run and loop end with it.
type SessionClosed struct {
	Reason  string        `json:"reason,omitzero"`
	RunID   string        `json:"run_id,omitzero"` // the run that ended with it
	Voided  []VoidedCall  `json:"voided,omitzero"`
	Unknown []UnknownCall `json:"unknown,omitzero"`
	Loop    *Loop         `json:"loop,omitzero"`
}

// MessageSubmitted is a genuine message of a person.
type MessageSubmitted struct {
	UserMessage
	Role string `json:"role"` // always user
}

// NoteAppended is an integrator's own fact; it changes no state.
type NoteAppended struct {
	Kind string         `json:"kind"`
	Data jsontext.Value `json:"data"` // object, kept as given
}

func (SessionCreated) EventType() string     { return "session.created" }
func (SessionConfigured) EventType() string  { return "session.configured" }
func (SessionModeChanged) EventType() string { return "session.mode_changed" }
func (SessionPlanEntered) EventType() string { return "session.plan_entered" }
func (SessionPlanExited) EventType() string  { return "session.plan_exited" }
func (SessionClosed) EventType() string      { return "session.closed" }
func (MessageSubmitted) EventType() string   { return "message.submitted" }
func (NoteAppended) EventType() string       { return "note.appended" }
