package show

import (
	"fmt"
	"strings"

	"culm/events"
)

func (p *Printer) toolWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.ToolAuthorized:
		return faint, fmt.Sprintf("%s may %s %s (%s)", tool(d.CallRef), p.short(d.PermissionType), p.quote(d.Resource), p.short(d.Step))
	case events.ToolDenied:
		return bad, fmt.Sprintf("%s may not %s %s (%s)", tool(d.CallRef), p.short(d.PermissionType), p.quote(d.Resource), p.short(d.Step)) + suspended(d.Suspends)
	case events.ToolStarted:
		return plain, tool(d.CallRef) + " started" + when(d.Mutating, " (it changes things)")
	case events.ToolFinished:
		t, text := p.outcome(tool(d.CallRef), d.Result)
		return t, text + suspended(d.Suspends)
	case events.ToolParked:
		return waiting, p.parked(d.CallRef, d.Parked) + suspended(d.Suspends)
	case events.ToolResolved:
		return heard, fmt.Sprintf("says how %s ended: %s %s", tool(d.CallRef), succeeded(d.Success), p.quote(d.Content)) + goesOn(d.RunID)
	}
	return plain, Clean(d.EventType())
}

func (p *Printer) decisionWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.ApprovalDecided:
		text := fmt.Sprintf("%s: %s", tool(d.CallRef), strings.ReplaceAll(Clean(d.Decision), "_", " "))
		if d.Matcher != nil {
			text += fmt.Sprintf(", for %s %s", p.short(d.Matcher.Kind), p.quote(d.Matcher.Pattern))
		}
		return heard, "decides on " + text + because(p.quoteIf(d.Note)) + goesOn(d.RunID)
	case events.QuestionAnswered:
		return heard, "answers " + p.quote(d.Answer) + goesOn(d.RunID)
	case events.QuestionExpired:
		return bad, fmt.Sprintf("nobody decided on %s in time; it did not run", tool(d.CallRef)) + goesOn(d.RunID)
	}
	return plain, Clean(d.EventType())
}

func (p *Printer) replayWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.ReplayStarted:
		return plain, "approved call of " + tool(d.CallRef) + " started"
	case events.ReplayFinished:
		t, text := p.outcome("approved call of "+tool(d.CallRef), d.Result)
		return t, text + suspended(d.Suspends)
	case events.ReplayBlocked:
		return bad, fmt.Sprintf("approved call of %s may not run any more (%s)", tool(d.CallRef), p.short(d.Reason)) + suspended(d.Suspends)
	case events.ReplayReparked:
		return waiting, p.parked(d.CallRef, d.Parked) + ", once more" + suspended(d.Suspends)
	}
	return plain, Clean(d.EventType())
}

func (p *Printer) policyWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.PolicyModeChanged:
		return plain, "permission mode of the installation set to " + p.short(d.Mode)
	case events.PolicyRuleAdded:
		where := p.short(d.Scope)
		if d.Workspace != "" {
			where += " " + p.quote(d.Workspace)
		}
		return plain, fmt.Sprintf("rule %s: %s %s for %s %s (%s)", p.short(d.RuleID), strings.ReplaceAll(p.short(d.Effect), "_", " "),
			p.short(d.PermissionType), p.short(d.Matcher.Kind), p.quote(d.Matcher.Pattern), where)
	case events.PolicyRuleRemoved:
		return plain, "rule " + p.short(d.RuleID) + " removed"
	}
	return plain, Clean(d.EventType())
}

func tool(c events.CallRef) string { return "tool " + Clip(Clean(c.Name), maxName) }

func (p *Printer) outcome(what string, r events.Result) (tone, string) {
	text := what + " " + succeeded(r.Success)
	if r.ElapsedMS > 0 {
		text += " in " + Elapsed(r.ElapsedMS)
	}
	if r.Error != "" {
		text += because(Clip(Clean(r.Error), p.style.Width))
	}
	if r.Content != "" {
		text += ": " + p.quote(r.Content)
	}
	if r.Success {
		return plain, text
	}
	return bad, text
}

func (p *Printer) parked(c events.CallRef, d events.Parked) string {
	switch d.Kind {
	case "question":
		return fmt.Sprintf("%s asks %s", tool(c), p.quote(d.Question.Question))
	default:
		return fmt.Sprintf("%s waits for approval: %s", tool(c), p.quote(d.Question.Question))
	}
}

func succeeded(ok bool) string {
	if ok {
		return "finished"
	}
	return "failed"
}

func suspended(yes bool) string { return when(yes, "; the run waits for a person") }

func goesOn(run string) string { return when(run != "", "; the run goes on") }

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

// short is a name or code from outside.
func (p *Printer) short(s string) string { return Clip(Clean(s), maxName) }
