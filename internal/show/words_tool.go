package show

import (
	"cmp"
	"fmt"
	"strings"

	"culm/events"
)

func (p *Printer) toolWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.ToolAuthorized:
		return faint, fmt.Sprintf("policy lets %s %s", tool(d.CallRef), p.access(d.Access, d.Verdict))
	case events.ToolDenied:
		return bad, fmt.Sprintf("policy denies %s %s", tool(d.CallRef), p.access(d.Access, d.Verdict)) + suspended(d.Suspends)
	case events.ToolStarted:
		return plain, tool(d.CallRef) + " started" + when(d.Mutating, " (it changes things)")
	case events.ToolFinished:
		t, text := p.outcome(tool(d.CallRef), d.Result)
		return t, text + suspended(d.Suspends)
	case events.ToolParked:
		return waiting, p.parked(e.Session, d.CallRef, d.Parked) + suspended(d.Suspends)
	case events.ToolResolved:
		return heard, fmt.Sprintf("says how %s ended: %s %s", tool(d.CallRef), succeeded(d.Success), p.quote(d.Content)) + goesOn(d.RunID)
	}
	return plain, Clean(e.Type)
}

func (p *Printer) decisionWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.ApprovalDecided:
		text := p.decision(e.Session, d)
		if d.Matcher != nil {
			text += fmt.Sprintf(", and from now on %s %s", p.short(d.Matcher.Kind), p.quote(d.Matcher.Pattern))
		}
		return heard, text + because(p.quoteIf(d.Note)) + goesOn(d.RunID)
	case events.QuestionAnswered:
		return heard, fmt.Sprintf("answers %s: %s", tool(d.CallRef), p.quote(d.Answer)) + planMoved(d.Plan) + goesOn(d.RunID)
	case events.QuestionExpired:
		return bad, fmt.Sprintf("nobody decided on %s in time; it did not run, and nobody denied it", tool(d.CallRef)) + goesOn(d.RunID)
	}
	return plain, Clean(e.Type)
}

func (p *Printer) replayWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.ReplayStarted:
		return plain, "approved call of " + tool(d.CallRef) + " started"
	case events.ReplayFinished:
		t, text := p.outcome("approved call of "+tool(d.CallRef), d.Result)
		return t, text + suspended(d.Suspends)
	case events.ReplayBlocked:
		return bad, fmt.Sprintf("approved call of %s may not run any more (%s)", tool(d.CallRef), cmp.Or(blocked[d.Reason], p.short(d.Reason))) + suspended(d.Suspends)
	case events.ReplayReparked:
		return waiting, p.parked(e.Session, d.CallRef, d.Parked) + ", once more" + suspended(d.Suspends)
	}
	return plain, Clean(e.Type)
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

func (p *Printer) parked(session string, c events.CallRef, d events.Parked) string {
	known := p.calls[session][c.ToolCallID]
	switch q := d.Request; {
	case d.Kind == "question":
		return fmt.Sprintf("%s asks %s", tool(c), p.quote(d.Question.Question))
	case q != nil && d.Question.Source == "policy": // the question says no more than the request
		return fmt.Sprintf("%s waits for approval of %s %s", tool(c), p.short(q.PermissionType), p.quote(q.Resource)) + when(q.Risk != "", ", "+p.short(q.Risk)+" risk") + known.sum(true)
	}
	return fmt.Sprintf("%s waits for approval: %s", tool(c), p.quote(d.Question.Question)) + when(known.with != "", " with "+known.with) + known.sum(true)
}

// access says what a call wants and which rule or step of the policy answered.
func (p *Printer) access(a events.Access, v events.Verdict) string {
	why := cmp.Or(steps[v.Step], p.short(v.Step))
	switch v.Step {
	case "deny_rule", "allow_rule":
		why += " " + p.short(v.RuleID)
	}
	return fmt.Sprintf("%s %s (%s)", p.short(a.PermissionType), p.quote(a.Resource), why)
}

// steps are the steps of the evaluation order in words.
var steps = map[string]string{
	"platform_hard_deny": "nothing allows it", "deny_rule": "rule", "session_deny": "denied for this session", "read_only": "the session is read-only",
	"plan": "plan mode", "one_shot": "approved once", "auto": "mode auto", "session_grant": "allowed for this session", "allow_rule": "rule",
	"checks_off": "checks are off", "bypass": "mode bypass", "dont_ask": "mode dont_ask", "accept_edits": "mode accept_edits", "below_threshold": "low risk",
	"no_human_approver": "nobody is there to be asked",
}

// blocked are the reasons of a replay that may not be.
var blocked = map[string]string{"plan": "plan mode is on now", "authority": "the policy denies it by now", "unavailable": "the tool is not there any more"}

// decision says what a person decided, and about what.
func (p *Printer) decision(session string, d events.ApprovalDecided) string {
	about := p.what(session, d.ToolCallID)
	if about != "" {
		about = ": " + about
	}
	verb, scope, _ := strings.Cut(d.Decision, "_")
	word, known := scopes[scope]
	if verbs[verb] == "" || !known {
		return fmt.Sprintf("decides %s on %s", p.short(d.Decision), tool(d.CallRef)) + about
	}
	again := when(verb == "allow" && p.calls[session][d.ToolCallID].unknown, ", again, its outcome was unknown")
	return verbs[verb] + " " + tool(d.CallRef) + word + again + about
}

var (
	verbs  = map[string]string{"allow": "allows", "deny": "denies"}
	scopes = map[string]string{"once": " once", "session": " for this session", "workspace": " in this workspace", "global": " everywhere"}
)

func planMoved(move string) string {
	switch move {
	case "entered":
		return "; plan mode on: nothing may be changed"
	case "exited":
		return "; plan mode off"
	}
	return ""
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
