package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/internal/show"
)

// part is one of several questions in a call.
type part struct {
	Question string           `json:"question"`
	Options  []jsontext.Value `json:"options"`
	Several  bool             `json:"multiSelect"`
}

// parts are the questions of a call that has several, each with its own options;
// nil where there is one, or where what is asked is not what the arguments say.
func (it *item) parts() []part {
	if it.Kind != kindQuestion {
		return nil
	}
	var in struct {
		Questions []part `json:"questions"`
	}
	if json.Unmarshal([]byte(it.Arguments), &in) != nil || len(in.Questions) < 2 {
		return nil
	}
	for _, p := range in.Questions {
		if p.Question == "" || !strings.Contains(it.Question.Question, p.Question) {
			return nil
		}
	}
	return in.Questions
}

// partLines show each question, and below it its options with what they mean.
func (it *item) partLines(parts []part, line func(label, text string), limit bool) {
	for i, p := range parts {
		text := fmt.Sprintf("%d. %s", i+1, p.Question)
		if limit {
			text = show.Clip(text, listText)
		}
		line(when(i == 0, "asks"), barred(text))
		for _, o := range p.Options {
			line("", "   "+optionText(o))
		}
		if p.Several {
			line("", "   several may be chosen")
		}
	}
}

// optionText is an option: a text, or an object with a label and what it means.
func optionText(v jsontext.Value) string {
	var o struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	}
	var plain string
	if json.Unmarshal(v, &plain) == nil {
		return show.Quote(plain, listValue)
	}
	if json.Unmarshal(v, &o) != nil || o.Label == "" {
		return show.Clip(string(show.CleanJSON(v)), listValue)
	}
	return show.Quote(o.Label, listValue) + when(o.Description != "", "  "+show.Clip(show.Clean(o.Description), listValue))
}
