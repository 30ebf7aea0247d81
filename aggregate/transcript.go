package aggregate

import "culm/events"

// TranscriptMessage is one message as reads show it.
type TranscriptMessage struct {
	MessageID  string            `json:"message_id"`
	Role       string            `json:"role"`   // user, assistant or tool
	Origin     string            `json:"origin"` // person, repeat, model or tool
	Content    string            `json:"content"`
	ToolCalls  []events.ToolCall `json:"tool_calls,omitzero"`
	ToolCallID string            `json:"tool_call_id,omitzero"`
	Success    *bool             `json:"success,omitzero"`
	Seq        uint64            `json:"seq"` // of the event that added it
}

// Transcript is the fold of a session's messages. Every call has at most one
// result message, there from its outcome on.
type Transcript struct {
	Messages []TranscriptMessage
}

// Evolve folds one event.
func (t *Transcript) Evolve(e *events.Event) {
	switch d := e.Data.(type) {
	case events.MessageSubmitted:
		t.person(e, &d.UserMessage)
	case events.RunRequested:
		t.voided(e, d.Voided)
		t.person(e, d.Message)
	case events.RunInterrupted:
		t.voided(e, d.Voided)
	case events.RunRefused:
		t.voided(e, d.Voided)
	case events.RunFinished:
		t.voided(e, d.Voided)
	case events.SessionClosed:
		t.voided(e, d.Voided)
	case events.LoopStopRequested:
		t.voided(e, d.Voided)
	case events.RoundStarted:
		t.repeat(e, d.Repeat)
	case events.RoundFinished:
		t.add(e, TranscriptMessage{MessageID: d.Message.MessageID, Role: roleAssistant, Origin: originModel, Content: d.Message.Content, ToolCalls: d.Message.ToolCalls})
		if d.Next != nil {
			t.repeat(e, d.Next.Repeat)
		}
	default:
		t.result(e)
	}
}

// result adds the outcome of a call.
func (t *Transcript) result(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ToolFinished:
		t.tool(e, d.CallRef, d.Content, d.Success)
	case events.ToolDenied:
		t.tool(e, d.CallRef, d.Content, false)
	case events.ToolResolved:
		t.tool(e, d.CallRef, d.Content, d.Success)
	case events.ReplayFinished:
		t.tool(e, d.CallRef, d.Content, d.Success)
	case events.ReplayBlocked:
		t.tool(e, d.CallRef, d.Content, false)
	case events.QuestionAnswered:
		t.tool(e, d.CallRef, d.Content, true)
	case events.QuestionExpired:
		t.tool(e, d.CallRef, d.Content, false)
	case events.ApprovalDecided:
		if !isAllow(d.Decision) {
			t.tool(e, d.CallRef, d.Content, false)
		}
	}
}

func (t *Transcript) add(e *events.Event, m TranscriptMessage) {
	m.Seq = e.Seq
	t.Messages = append(t.Messages, m)
}

func (t *Transcript) person(e *events.Event, m *events.UserMessage) {
	if m != nil {
		t.add(e, TranscriptMessage{MessageID: m.MessageID, Role: roleUser, Origin: originPerson, Content: m.Content})
	}
}

func (t *Transcript) repeat(e *events.Event, r *events.Repeat) {
	if r != nil {
		t.add(e, TranscriptMessage{MessageID: r.MessageID, Role: roleUser, Origin: originRepeat, Content: r.Content})
	}
}

func (t *Transcript) tool(e *events.Event, ref events.CallRef, content string, success bool) {
	t.add(e, TranscriptMessage{MessageID: ref.MessageID, Role: roleTool, Origin: originTool, Content: content, ToolCallID: ref.ToolCallID, Success: &success})
}

func (t *Transcript) voided(e *events.Event, calls []events.VoidedCall) {
	for _, v := range calls {
		t.tool(e, events.CallRef{ToolCallID: v.ToolCallID, MessageID: v.MessageID}, v.Content, false)
	}
}
