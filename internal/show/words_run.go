package show

import (
	"fmt"
	"strings"

	"culm/events"
)

// How much of a name, and of a list of names, a line shows.
const (
	maxName  = 40
	maxNames = 120
)

func (p *Printer) runWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		return heard, p.requested(d)
	case events.RunStarted:
		return plain, claimed(d)
	case events.RunRefused:
		return bad, p.refused(e.Session, d)
	case events.RunCancelRequested:
		return plain, "cancel requested: nothing more will start"
	case events.RunBudgetExhausted:
		return bad, fmt.Sprintf("run has spent its budget (%s); one summary round may follow", Clean(d.Kind))
	case events.RunInterrupted:
		return bad, "run interrupted: nothing was heard of its runner" + leftOver(d.Voided, d.Unknown)
	case events.RunFinished:
		return p.finished(e.Session, d)
	}
	return plain, Clean(e.Type)
}

func (p *Printer) requested(d events.RunRequested) string {
	text := map[string]string{
		"user": "asks for a run", "decision": "run goes on after the decision", "answer": "run goes on after the answer",
		"retry": "asks to resume", "continue": "asks to continue the loop",
	}[d.Cause]
	if text == "" {
		text = "asks for a run (" + Clean(d.Cause) + ")"
	}
	if l := d.LoopRequest; l != nil {
		text += fmt.Sprintf(", a loop of %s in at most %s", Count(l.MaxIterations, "iteration"), Count(l.MaxTotalRounds, "round"))
	}
	if d.Message != nil {
		text += ": " + p.quote(d.Message.Content)
	}
	return text
}

func claimed(d events.RunStarted) string {
	text := "run started"
	if m := d.Roster.Primary; m.Model != "" {
		text += " with model " + Clip(Clean(strings.Trim(m.Provider+"/"+m.Model, "/")), 2*maxName)
	}
	if d.Replays > 0 {
		text += "; " + Count(d.Replays, "decided call") + " to run first"
	}
	if l := d.Loop; l != nil {
		text += fmt.Sprintf("; loop of %s, at most %s", Count(l.MaxIterations, "iteration"), Count(l.MaxTotalRounds, "round"))
	}
	return text
}

func (p *Printer) finished(session string, d events.RunFinished) (tone, string) {
	text := "run " + Clean(d.Outcome)
	if d.CompletionReason != "" && d.CompletionReason != d.Outcome {
		text += because(Clip(Clean(d.CompletionReason), p.style.Width))
	}
	if d.Error != nil {
		text += about(failure(*d.Error, p.style.Width))
	}
	if d.Usage.Total > 0 {
		text += ", " + Count(d.Usage.Total, "token")
	}
	t := good
	if d.Outcome != "completed" {
		t = bad
	}
	if d.Loop != nil {
		text += "; " + p.ended(session, *d.Loop)
		if d.Loop.Status != events.StatusCompleted {
			t = bad
		}
	}
	return t, text + leftOver(d.Voided, d.Unknown)
}

func (p *Printer) refused(session string, d events.RunRefused) string {
	text := fmt.Sprintf("run refused, %s: %s", Clean(d.Code), Clip(Clean(d.Message), p.style.Width))
	if d.Loop != nil {
		text += "; " + p.ended(session, *d.Loop)
	}
	return text + leftOver(d.Voided, d.Unknown)
}

func failure(f events.Failure, width int) string {
	return Clean(f.Code) + about(Clip(Clean(f.Message), width))
}

func (p *Printer) roundWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.RoundStarted:
		return plain, p.admission(e.Session, d.Admission, d.Loop)
	case events.RoundFinished:
		return p.answered(e.Session, d)
	case events.RoundFailed:
		text := fmt.Sprintf("model call of round %d failed, %s", d.Round+1, failure(d.Error, p.style.Width))
		if d.Error.Retryable {
			text += " (may be tried again)"
		}
		return bad, text
	}
	return plain, Clean(e.Type)
}

// admission tells a round that may begin. A round that opens an iteration is
// told by the iteration, others by the round.
func (p *Printer) admission(session string, a events.Admission, l *events.Loop) string {
	switch {
	case l == nil && a.Summary:
		return fmt.Sprintf("round %d admitted, to sum up: the budget is spent", a.Round+1)
	case l == nil:
		return fmt.Sprintf("round %d admitted", a.Round+1)
	case a.Repeat != nil || l.RoundsStarted == 1:
		return fmt.Sprintf("%s admitted (%s)", p.iteration(session, l), p.round(session, l))
	default:
		return fmt.Sprintf("%s admitted (%s)", p.round(session, l), p.iteration(session, l))
	}
}

func (p *Printer) answered(session string, d events.RoundFinished) (tone, string) {
	var parts []string
	if d.Message.Content != "" || len(d.Message.ToolCalls) == 0 {
		parts = append(parts, "model answers "+p.quote(d.Message.Content))
	}
	if n := len(d.Message.ToolCalls); n > 0 {
		names := make([]string, n)
		for i, c := range d.Message.ToolCalls {
			names[i] = Clip(Clean(c.Name), maxName)
		}
		parts = append(parts, "model calls "+Clip(strings.Join(names, ", "), maxNames))
	} else if d.Iteration > 0 {
		parts = append(parts, fmt.Sprintf("iteration %d done", d.Iteration))
	}
	if n := d.Next; n != nil && n.Admitted {
		parts = append(parts, p.admission(session, n.Admission, d.Loop))
	} else if n != nil {
		parts = append(parts, "no further round: "+Clean(strings.ReplaceAll(n.Reason, "_", " ")))
	}
	return heard, strings.Join(parts, "; ")
}
