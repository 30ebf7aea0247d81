package aggregate

import (
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// SessionCreate is session.create.
type SessionCreate struct {
	Kind            string            `json:"kind"`
	Parent          *events.Parent    `json:"parent"`
	Title           string            `json:"title"`
	Model           *events.Model     `json:"model"`
	ReasoningEffort string            `json:"reasoning_effort"`
	Mode            string            `json:"mode"`
	Workspace       string            `json:"workspace"`
	Gold            jsontext.Value    `json:"gold"`
	ReadOnly        bool              `json:"read_only"`
	NoHumanApprover bool              `json:"no_human_approver"`
	EnforcePolicy   bool              `json:"enforce_policy"`
	Metadata        map[string]string `json:"metadata"`
}

func (c SessionCreate) check() *Rejection {
	r := first(oneOf("kind", c.Kind, kindRoot, kindChild), checkMode(c.Mode), checkModel(c.Model), optionalObject("gold", c.Gold))
	switch {
	case r != nil:
		return r
	case c.Parent == nil && c.Kind == kindChild:
		return missing("parent of a child")
	case c.Parent != nil && c.Kind == kindRoot:
		return reject(CodeInvalidCommand, "a root session has no parent")
	case c.Parent != nil && !events.ValidToken(c.Parent.Session):
		return reject(CodeInvalidCommand, "parent.session is no session token")
	case c.Parent != nil:
		return need("parent.tool_call_id", c.Parent.ToolCallID)
	}
	return nil
}

// SessionConfigure is session.configure; absent fields stay as they are.
type SessionConfigure struct {
	Title           *string            `json:"title"`
	Model           *events.Model      `json:"model"`
	ReasoningEffort *string            `json:"reasoning_effort"`
	Workspace       *string            `json:"workspace"`
	Gold            jsontext.Value     `json:"gold"`     // null removes
	Metadata        map[string]*string `json:"metadata"` // merged; null removes
}

func (c SessionConfigure) check() *Rejection {
	if c.Title == nil && c.Model == nil && c.ReasoningEffort == nil && c.Workspace == nil && c.Gold == nil && c.Metadata == nil {
		return reject(CodeInvalidCommand, "nothing to configure: name a field")
	}
	return first(checkModel(c.Model), optionalObject("gold", c.Gold))
}

// SessionSetMode is session.set_mode.
type SessionSetMode struct {
	Mode string `json:"mode"`
}

func (c SessionSetMode) check() *Rejection { return first(need("mode", c.Mode), checkMode(c.Mode)) }

// SessionEnterPlan is session.enter_plan.
type SessionEnterPlan struct {
	Reason string `json:"reason"`
}

func (SessionEnterPlan) check() *Rejection { return nil }

// SessionExitPlan is session.exit_plan.
type SessionExitPlan struct{}

func (SessionExitPlan) check() *Rejection { return nil }

// SessionClose is session.close.
type SessionClose struct {
	Reason string `json:"reason"`
}

func (SessionClose) check() *Rejection { return nil }

// SessionDelete is session.delete; Handler carries it out.
type SessionDelete struct {
	Birth string `json:"birth"`
}

func (c SessionDelete) check() *Rejection { return need("birth", c.Birth) }

// MessageSubmit is message.submit.
type MessageSubmit struct {
	Content string `json:"content"`
}

func (c MessageSubmit) check() *Rejection { return need("content", c.Content) }

// NoteAppend is note.append.
type NoteAppend struct {
	Kind string         `json:"kind"`
	Data jsontext.Value `json:"data"`
}

func (c NoteAppend) check() *Rejection {
	if !events.ValidToken(c.Kind) {
		return reject(CodeInvalidCommand, "kind is no token")
	}
	if c.Data.Kind() != '{' {
		return reject(CodeInvalidCommand, "data is no JSON object")
	}
	return nil
}
