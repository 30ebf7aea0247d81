package tool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/tool"
)

func TestDescribe_ResourceIsWhatTheArgumentsName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, arguments, kind, resource string }{
		{"Write", `{"file_path":"/a/b.md","content":"x"}`, tool.WriteFile, "/a/b.md"},
		{"edit", `{"path":"b.md"}`, tool.WriteFile, "b.md"},
		{"NotebookEdit", `{"notebook_path":"/n.ipynb"}`, tool.WriteFile, "/n.ipynb"},
		{"Bash", `{"command":"ls -l","description":"harmless"}`, tool.Execute, "ls -l"},
		{"WebFetch", `{"url":"https://example.org/x"}`, tool.HTTP, "https://example.org/x"},
		{"WebSearch", `{"query":"secrets"}`, tool.HTTP, "WebSearch"},
		{"Read", `{"path":"/a"}`, tool.Read, "/a"},
		{"Teleport", `{"path":"/a"}`, tool.Execute, "Teleport"},
		// What is in doubt is not read: the arguments stand for themselves.
		{"Bash", `{"command":"ls","command":"rm -rf /"}`, tool.Execute, `{"command":"ls","command":"rm -rf /"}`},
		{"Bash", `{"command":["rm"]}`, tool.Execute, `{"command":["rm"]}`},
		{"Write", `{"path":"/a","file_path":"/b"}`, tool.WriteFile, `{"path":"/a","file_path":"/b"}`},
		{"Write", `{"path":""}`, tool.WriteFile, `{"path":""}`},
		{"Bash", "rm -rf /", tool.Execute, "rm -rf /"},
		{"Bash", " ", tool.Execute, "Bash"},
	} {
		a := tool.Describe(c.name, c.arguments)
		if a.PermissionType != c.kind || a.Resource != c.resource || a.Ask != nil || a.Mutating != tool.Mutates(c.name) {
			t.Errorf("%s %s: %+v", c.name, c.arguments, a)
		}
	}
}

func TestDescribe_ToolsThatAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, arguments string
		want            tool.Question
	}{
		{"AskUserQuestion", `{"questions":[{"question":"Which?","options":[{"label":"a","description":"x"},{"label":"b"}]}]}`, tool.Question{Text: "Which?", Options: []string{"a", "b"}, AllowCustom: true}},
		{
			"AskUserQuestion", `{"questions":[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]},{"question":"And?","options":[{"label":"b"},{"label":"c"}]},{"question":"Why?"}]}`,
			tool.Question{Text: "1. Which? (a / b)\n2. And? (b / c)\n3. Why?", Options: []string{"a", "b", "c"}, AllowCustom: true},
		},
		{"conclusion_with_options", `{"question":"Go on?","options":["Yes","No"]}`, tool.Question{Text: "Go on?", Options: []string{"Yes", "No"}, AllowCustom: true}},
		{"AskUserQuestion", `{`, tool.Question{Text: "What should be done?", AllowCustom: true}},
		{"ExitPlanMode", `{}`, tool.Question{Text: "Leave plan mode and carry out the plan?", Options: []string{tool.ApprovePlan, tool.StayInPlan}}},
		{"exitplanmode", `{"plan":"1. go"}`, tool.Question{Text: "Leave plan mode and carry out the plan?\n\n1. go", Options: []string{tool.ApprovePlan, tool.StayInPlan}}},
		{"EnterPlanMode", ``, tool.Question{Text: "Make a plan first, without changing anything?", Options: []string{tool.EnterPlan, tool.NoPlan}}},
	} {
		got := tool.Describe(c.name, c.arguments).Ask
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.name, c.arguments, diff)
		}
	}
}
