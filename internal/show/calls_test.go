package show_test

import (
	"strings"
	"testing"

	"culm/events"
	"culm/internal/show"
)

// Several waiting calls of one tool differ, and a decision says what it is about.
func TestDecisionsNameTheirCalls(t *testing.T) {
	t.Parallel()
	ref := func(id string) events.CallRef {
		return events.CallRef{ToolCallID: id, MessageID: "m-" + id, Name: "Bash"}
	}
	parked := func(resource, digest string) events.Parked {
		return events.Parked{
			Kind: "approval", Question: events.Question{Question: "Allow?", Source: "policy"}, ArgumentsDigest: digest,
			Request: &events.PermissionRequest{PermissionType: "execute_command", Resource: resource, Risk: "high"},
		}
	}
	text := told(show.Style{}, []events.Data{
		events.RoundFinished{Message: events.AssistantMessage{ToolCalls: []events.ToolCall{
			{ID: "c1", Name: "Bash", Arguments: `{"command":"make a"}`}, {ID: "c2", Name: "Bash", Arguments: `{"command":"make b"}`}, {ID: "c3", Name: "Bash", Arguments: `{"command":"make c"}`},
		}}},
		events.ToolParked{CallRef: ref("c1"), Parked: parked("make a", "0123456789abcdef")},
		events.ToolParked{CallRef: ref("c2"), Parked: events.Parked{Kind: "approval", Question: events.Question{Question: "May I?"}, ArgumentsDigest: "fedcba9876543210"}},
		events.ApprovalDecided{CallRef: ref("c1"), Decision: "allow_once"},
		events.ApprovalDecided{CallRef: ref("c2"), Decision: "deny_session"},
		events.RunInterrupted{Unknown: []events.UnknownCall{{ToolCallID: "c3", Name: "Bash", ArgumentsDigest: "aaaabbbbccccdddd"}}},
		events.ApprovalDecided{CallRef: ref("c3"), Decision: "allow_once"},
		events.ApprovalDecided{CallRef: ref("c3"), Decision: "deny_once"},
	})
	for _, want := range []string{
		"tool Bash (call c1) waits for approval of execute_command “make a”, high risk, digest 0123456789ab…\n",
		"tool Bash (call c2) waits for approval: “May I?” with {\"command\":\"make b\"}, digest fedcba987654…\n",
		"allows tool Bash (call c1) once: execute_command “make a”, digest 0123456789ab…\n",
		"denies tool Bash (call c2) for this session: {\"command\":\"make b\"}, digest fedcba987654…\n",
		"allows tool Bash (call c3) once, again, its outcome was unknown: {\"command\":\"make c\"}, digest aaaabbbbcccc…\n",
		"denies tool Bash (call c3) once: {\"command\":\"make c\"}, digest aaaabbbbcccc…\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
