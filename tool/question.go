package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Answers to the questions about the plan. The rules look for "approve",
// "stay in plan mode" and "enter plan mode" in what was chosen.
const (
	ApprovePlan = "Approve the plan"
	StayInPlan  = "Stay in plan mode"
	EnterPlan   = "Enter plan mode"
	NoPlan      = "Go on without a plan"
)

// question is what a tool that only asks puts to a person; nil for all others.
func question(name string, fields map[string]jsontext.Value) *Question {
	switch name {
	case "askuserquestion", "ask_user", "conclusion_with_options":
		return asked(fields)
	case "exitplanmode":
		q := &Question{Text: "Leave plan mode and carry out the plan?", Options: []string{ApprovePlan, StayInPlan}}
		if plan := text(fields["plan"]); plan != "" {
			q.Text += "\n\n" + plan
		}
		return q
	case "enterplanmode":
		return &Question{Text: "Make a plan first, without changing anything?", Options: []string{EnterPlan, NoPlan}}
	}
	return nil
}

// one is a question as it stands in the arguments; options are texts, or
// objects with a label.
type one struct {
	Question string           `json:"question"`
	Options  []jsontext.Value `json:"options"`
}

// asked reads one question or a list of them. A person may always answer in
// other words than the options.
func asked(fields map[string]jsontext.Value) *Question {
	var list []one
	if json.Unmarshal(fields["questions"], &list) != nil || len(list) == 0 {
		q := one{Question: text(fields["question"])}
		_ = json.Unmarshal(fields["options"], &q.Options)
		list = []one{q}
	}
	out := &Question{AllowCustom: true}
	var lines []string
	for i, q := range list {
		line, options := cmp.Or(q.Question, "What should be done?"), labels(q.Options)
		if len(list) > 1 {
			line = fmt.Sprintf("%d. %s", i+1, line)
			if len(options) > 0 {
				line += " (" + strings.Join(options, " / ") + ")"
			}
		}
		lines = append(lines, line)
		for _, o := range options {
			if !slices.Contains(out.Options, o) {
				out.Options = append(out.Options, o)
			}
		}
	}
	out.Text = strings.Join(lines, "\n")
	return out
}

func labels(options []jsontext.Value) []string {
	var out []string
	for _, o := range options {
		var labelled struct {
			Label string `json:"label"`
		}
		label := text(o)
		if label == "" && json.Unmarshal(o, &labelled) == nil {
			label = labelled.Label
		}
		if label != "" {
			out = append(out, label)
		}
	}
	return out
}

// text is a JSON string, "" for anything else.
func text(raw jsontext.Value) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
