package recorded_test

import (
	"context"
	"strings"
	"testing"

	"culm/provider/transcript"
	"culm/tool"
	"culm/tool/recorded"
)

func example(t *testing.T) *transcript.Recording {
	t.Helper()
	r, err := transcript.Open("../../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExecute_EveryCallGetsItsOwnResult(t *testing.T) {
	t.Parallel()
	r := example(t)
	tools := recorded.New(r, recorded.Options{})
	for round := range uint64(2) { // the recording wraps
		for i, a := range r.Answers {
			for j, c := range a.Calls {
				var output strings.Builder
				got := tools.Execute(t.Context(), tool.Call{
					ID: "minted", ModelID: c.ID, Name: c.Name, Arguments: c.Arguments,
					At: &tool.Position{Answer: round*uint64(len(r.Answers)) + uint64(i), Index: j},
				}, func(s string) { output.WriteString(s) })
				if got.Content != c.Result.Content || got.Success == c.Result.Failed || output.String() != got.Content {
					t.Errorf("answer %d call %d: %+v, want %+v", i, j, got, c.Result)
				}
			}
		}
	}
}

func TestExecute_WithoutPositionGoesByWhatTheCallSays(t *testing.T) {
	t.Parallel()
	r := example(t)
	tools := recorded.New(r, recorded.Options{})
	want := r.Answers[4].Calls[0] // the edit that fails
	for name, c := range map[string]tool.Call{
		"no position":       {ID: "x", Name: want.Name, Arguments: want.Arguments, Replay: true},
		"another recording": {ID: "x", Name: want.Name, Arguments: want.Arguments, At: &tool.Position{}},
		"out of range":      {ID: "x", Name: want.Name, Arguments: want.Arguments, At: &tool.Position{Answer: 4, Index: 9}},
	} {
		if got := tools.Execute(t.Context(), c, func(string) {}); got.Content != want.Result.Content || got.Error != "tool_failed" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestExecute_FailsByNameWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	r, err := transcript.Read(strings.NewReader(
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"c9","name":"Bash","input":{"n":1}}]}}`), transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tools := recorded.New(r, recorded.Options{})
	got := tools.Execute(t.Context(), tool.Call{Name: "Bash", Arguments: `{"n":1}`}, func(string) {})
	if got.Success || got.Error != "result_missing" || !strings.Contains(got.Content, `"c9"`) {
		t.Errorf("missing result: %+v", got)
	}
	if !tools.Holds(tool.Call{Name: "Bash", Arguments: `{"n":1}`}) || tools.Holds(tool.Call{Name: "Bash"}) {
		t.Error("Holds is wrong about the one recorded call")
	}
	got = tools.Execute(t.Context(), tool.Call{Name: "Bash", Arguments: `{"n":1.0}`}, func(string) {})
	if got.Success || got.Error != "not_recorded" || !strings.Contains(got.Content, "Bash") {
		t.Errorf("other arguments: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got = tools.Execute(ctx, tool.Call{Name: "Bash"}, func(string) {}); got.Error != "not_run" {
		t.Errorf("ended context: %+v", got)
	}
}

func TestDescribe_AsksOnceAsTold(t *testing.T) {
	t.Parallel()
	tools := recorded.New(example(t), recorded.Options{Ask: func(c tool.Call) *tool.Question {
		return &tool.Question{Text: c.Name + "?", Approval: true}
	}})
	if a := tools.Describe(tool.Call{Name: "Write"}); a.Ask == nil || !a.Mutating {
		t.Errorf("access = %+v", a)
	}
	if a := tools.Describe(tool.Call{Name: "Write", Replay: true}); a.Ask != nil {
		t.Error("an approved call is asked about again")
	}
}
