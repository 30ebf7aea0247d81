package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"culm/internal/show"
)

// How much of a value and of a text a list shows; a decision shows all.
const (
	listValue = 120
	listText  = 600
)

// block tells an item in lines. With limit, long values are cut, which is said.
func (it *item) block(a *app, limit bool) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "  %-10s%s\n", label, text) }
	kind := map[string]string{kindUnknown: "unknown outcome"}[it.Kind]
	fmt.Fprintf(&b, "%s  %s of %s, %s\n", it.Session, cmp.Or(kind, it.Kind), show.Clip(show.Clean(it.Tool), 60), a.ago(it.Since))
	line("call", it.name())
	if parts := it.parts(); parts != nil {
		it.partLines(parts, line, limit)
	} else if it.asks() {
		text := it.Question.Question
		if text == "" && it.Kind == kindUnknown { // of a replay, as views have it
			text = fmt.Sprintf("The outcome of %s is not known: it may have happened already. Run it again, or say how it ended?", it.Tool)
		}
		if limit {
			text = show.Clip(text, listText)
		}
		line("asks", barred(text))
	}
	if q := it.Request; q != nil {
		line("wants", fmt.Sprintf("%s %s", show.Clean(q.PermissionType), clipIf(limit, exact(q.Resource))))
		if why := it.because(); why != "" {
			line("because", why)
		}
		if q.Workspace != "" {
			line("workspace", clipIf(limit, exact(q.Workspace)))
		}
	}
	it.argumentLines(line, limit)
	line("digest", fmt.Sprintf("%s, %s", show.Clean(it.ArgumentsDigest), show.Count(it.ArgumentsBytes, "byte")))
	it.answerLines(line)
	return b.String()
}

// argumentLines show the exact arguments: a line for each member of an object,
// each value in JSON's own spelling.
func (it *item) argumentLines(line func(label, text string), limit bool) {
	label := "with"
	for _, m := range members(it.Arguments) {
		line(label, clipIf(limit, m))
		label = ""
	}
	if len(it.Arguments) < it.ArgumentsBytes {
		line("", fmt.Sprintf("… the first %s of %s", show.Thousands(uint64(len(it.Arguments))), show.Count(it.ArgumentsBytes, "byte")))
	}
}

// members spells arguments for reading, without changing what they say: a JSON
// object member by member, other JSON in one line, anything else quoted.
func members(arguments string) []string {
	v := jsontext.Value(arguments)
	if !v.IsValid() {
		return []string{strconv.Quote(arguments)}
	}
	d := jsontext.NewDecoder(strings.NewReader(arguments))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		_ = v.Compact()
		return []string{string(show.CleanJSON(v))}
	}
	var out []string
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return []string{strconv.Quote(arguments)}
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return []string{strconv.Quote(arguments)}
		}
		_ = value.Compact()
		out = append(out, exact(key)+": "+string(show.CleanJSON(value)))
	}
	if out == nil {
		return []string{"{}"}
	}
	return out
}

func (it *item) answerLines(line func(label, text string)) {
	if len(it.Decisions) > 0 {
		line("allowed", show.Clean(strings.Join(it.Decisions, ", ")))
	}
	if q := it.Request; q != nil {
		for i, m := range q.SuggestedMatchers {
			label := "matchers"
			if i > 0 {
				label = ""
			}
			line(label, fmt.Sprintf("%-22s %s", show.Clean(m.ID), show.Clip(exact(m.Pattern), listValue)))
		}
	}
	if n := len(it.parts()); n > 0 && it.Question.AllowCustom {
		line("answers", fmt.Sprintf("one text that answers all %d, in this order; any words count", n))
	} else if it.Kind == kindQuestion {
		var options []string
		for _, o := range it.Question.Options {
			options = append(options, show.Quote(o, listValue))
		}
		if it.Question.AllowCustom {
			options = append(options, "any other words")
		}
		line("answers", strings.Join(options, " / "))
	}
	line("decide", strings.Join(it.commands(), "  or  "))
}

// commands are what a person may type.
func (it *item) commands() []string {
	who := it.Session + " " + it.name()
	switch {
	case it.Kind == kindUnknown:
		return []string{"culm resolve " + who + ` --success|--failed "…"`, "culm approve " + who + " (runs it again)", "culm deny " + who}
	case it.Kind == kindQuestion && it.option(true) != "":
		return []string{"culm approve " + who, "culm deny " + who}
	case len(it.parts()) > 0:
		return []string{"culm answer " + who + ` "1. …; 2. …"`}
	case it.Kind == kindQuestion:
		return []string{"culm answer " + who + ` "…"`}
	}
	return []string{"culm approve " + who, "culm deny " + who}
}

// barred shows text of several lines so that it can not be taken for lines of
// this program: each further one begins with a bar.
func barred(text string) string {
	return strings.ReplaceAll(strings.TrimRight(show.CleanBlock(text), "\n"), "\n", "\n  "+strings.Repeat(" ", 8)+"| ")
}

// exact shows text in one line without changing it: as it stands where that is
// plain, else quoted with escapes.
func exact(s string) string {
	if s != "" && show.Clean(s) == s {
		return s
	}
	return strconv.Quote(s)
}

func clipIf(limit bool, s string) string {
	if !limit {
		return s
	}
	return show.Clip(s, listValue)
}

// asks says that the question has to be read: where a reason stands beside an
// approval it says no more than that.
func (it *item) asks() bool {
	return it.Kind != kindApproval || it.Question.Question != "" && (it.Request == nil || it.Request.ReasonCode == "")
}

// because says why a person is asked, as far as the request tells it. A runner
// that parks a call by itself need not give a reason.
func (it *item) because() string {
	q := it.Request
	if q == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct{ text, what string }{
		{strings.ReplaceAll(q.ReasonCode, "_", " "), ""}, {q.Risk, " risk"}, {q.EffectiveMode, " mode"},
	} {
		if text := show.Clean(p.text); text != "" {
			parts = append(parts, text+p.what)
		}
	}
	return strings.Join(parts, ", ")
}
