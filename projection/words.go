package projection

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"culm/events"
)

// maxWords bounds the text of a timeline entry, in characters.
const maxWords = 200

// words tells an event in a few words, on one line. They are for people; who
// did it and when stands beside them.
func words(e *events.Event) string {
	var s string
	switch noun, _, _ := strings.Cut(e.Type, "."); noun {
	case "session", "message", "note":
		s = sessionWords(e.Data)
	case "run":
		s = runWords(e.Data)
	case "round", "loop":
		s = roundWords(e.Data)
	case "tool", "replay":
		s = toolWords(e.Data)
	case "approval", "question":
		s = decisionWords(e.Data)
	case "policy":
		s = policyWords(e.Data)
	}
	if s == "" {
		s = strings.NewReplacer(".", " ", "_", " ").Replace(e.Type)
	}
	return clip(oneLine(s), maxWords)
}

func sessionWords(d events.Data) string {
	switch d := d.(type) {
	case events.SessionCreated:
		return join("created", d.Title)
	case events.SessionConfigured:
		return join("settings changed", d.Title)
	case events.SessionModeChanged:
		return "mode " + d.Mode
	case events.SessionPlanEntered:
		return join("plan mode on", d.Reason)
	case events.SessionPlanExited:
		return "plan mode off"
	case events.SessionClosed:
		return join("closed", d.Reason)
	case events.MessageSubmitted:
		return join("said", d.Content)
	case events.NoteAppended:
		return "note " + d.Kind
	}
	return ""
}

func runWords(d events.Data) string {
	switch d := d.(type) {
	case events.RunRequested:
		s := "asked for a run"
		if r := d.LoopRequest; r != nil {
			s = fmt.Sprintf("asked for a loop of %d iterations, at most %d rounds", r.MaxIterations, r.MaxTotalRounds)
		}
		if d.Message != nil {
			return join(s, d.Message.Content)
		}
		return join(s, d.Cause)
	case events.RunStarted:
		return join("run started by "+d.Runner, d.Roster.Primary.Model)
	case events.RunRefused:
		return join("run refused", d.Code+" "+d.Message)
	case events.RunCancelRequested:
		return "asked to cancel the run"
	case events.RunBudgetExhausted:
		return join("budget spent", d.Kind)
	case events.RunInterrupted:
		return fmt.Sprintf("run interrupted, %d calls without a known outcome", len(d.Unknown))
	case events.RunFinished:
		if d.Error != nil {
			return join("run "+d.Outcome, d.Error.Code+" "+d.Error.Message)
		}
		return join("run "+d.Outcome, d.CompletionReason)
	}
	return ""
}

func roundWords(d events.Data) string {
	switch d := d.(type) {
	case events.RoundStarted:
		return fmt.Sprintf("round %d%s", d.Round+1, ofIteration(d.Iteration))
	case events.RoundFinished:
		if n := len(d.Message.ToolCalls); n > 0 {
			names := make([]string, n)
			for i, c := range d.Message.ToolCalls {
				names[i] = c.Name
			}
			return join("asked for "+strings.Join(names, ", "), d.Message.Content)
		}
		return join("answered", d.Message.Content)
	case events.RoundFailed:
		return join("round failed", d.Error.Code+" "+d.Error.Message)
	case events.LoopStopRequested:
		return "asked the loop to stop"
	case events.LoopStopped:
		return "loop stopped" + progress(&d.Loop)
	case events.LoopBudgetExhausted:
		return "loop out of budget" + progress(&d.Loop)
	case events.LoopRecoveryRefused:
		return "loop without a known end" + progress(&d.Loop)
	case events.LoopAbandoned:
		return "loop given up" + progress(&d.Loop)
	}
	return ""
}

func ofIteration(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" of iteration %d", n)
}

func progress(w *events.Loop) string {
	return fmt.Sprintf(" after %d iterations, %d rounds", w.IterationsCompleted, w.RoundsStarted)
}

func toolWords(d events.Data) string {
	switch d := d.(type) {
	case events.ToolAuthorized:
		return join(d.Name+" allowed by policy", d.Resource)
	case events.ToolDenied:
		return join(d.Name+" denied by policy", d.Resource)
	case events.ToolStarted:
		return d.Name + " started"
	case events.ToolFinished:
		return join(d.Name+" "+succeeded(d.Success), d.Error)
	case events.ToolParked:
		return join(d.Name+" waits for a person", d.Question.Question)
	case events.ToolResolved:
		return d.Name + " given its outcome by hand"
	case events.ReplayStarted:
		return d.Name + " started as approved"
	case events.ReplayFinished:
		return join(d.Name+" "+succeeded(d.Success), d.Error)
	case events.ReplayBlocked:
		return join(d.Name+" approved but not run", d.Reason)
	case events.ReplayReparked:
		return join(d.Name+" waits for a person again", d.Question.Question)
	}
	return ""
}

func decisionWords(d events.Data) string {
	switch d := d.(type) {
	case events.ApprovalDecided:
		return join(strings.ReplaceAll(d.Decision, "_", " ")+" for "+d.Name, d.Note)
	case events.QuestionAnswered:
		return join("answered "+d.Name, d.Answer)
	case events.QuestionExpired:
		return "nobody answered " + d.Name
	}
	return ""
}

func policyWords(d events.Data) string {
	switch d := d.(type) {
	case events.PolicyModeChanged:
		return "policy mode " + d.Mode
	case events.PolicyRuleAdded:
		return join("rule "+d.Effect, d.PermissionType+" "+d.Matcher.Pattern)
	case events.PolicyRuleRemoved:
		return "rule " + d.RuleID + " removed"
	}
	return ""
}

// subjects are the call and the message that an event is about.
func subjects(d events.Data) (call, message string) {
	switch d := d.(type) {
	case events.MessageSubmitted:
		return "", d.MessageID
	case events.RunRequested:
		if d.Message != nil {
			return "", d.Message.MessageID
		}
	case events.RoundFinished:
		return "", d.Message.MessageID
	}
	if ref, ok := callRef(d); ok {
		return ref.ToolCallID, ref.MessageID
	}
	return "", ""
}

// callRef is the call that an event of a call begins with.
func callRef(d events.Data) (events.CallRef, bool) {
	switch d := d.(type) {
	case events.ToolAuthorized:
		return d.CallRef, true
	case events.ToolDenied:
		return d.CallRef, true
	case events.ToolStarted:
		return d.CallRef, true
	case events.ToolFinished:
		return d.CallRef, true
	case events.ToolParked:
		return d.CallRef, true
	case events.ToolResolved:
		return d.CallRef, true
	case events.ApprovalDecided:
		return d.CallRef, true
	case events.QuestionAnswered:
		return d.CallRef, true
	case events.QuestionExpired:
		return d.CallRef, true
	case events.ReplayStarted:
		return d.CallRef, true
	case events.ReplayFinished:
		return d.CallRef, true
	case events.ReplayBlocked:
		return d.CallRef, true
	case events.ReplayReparked:
		return d.CallRef, true
	}
	return events.CallRef{}, false
}

func join(what, detail string) string {
	if detail = strings.TrimSpace(detail); detail == "" {
		return what
	}
	return what + ": " + clip(detail, maxWords)
}

// oneLine makes text from outside a line: white space is one space, and what
// cannot be printed (control characters, text direction marks) a question mark.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) && r != 0x200c && r != 0x200d:
			return '?'
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// clip is at most n characters of s, the last an ellipsis if some are left out.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if len(s) > 4*(n+1) { // no character is longer; do not count a megabyte
		cut := 4 * (n + 1)
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	at := 0
	for i := range s {
		if at++; at == n {
			if utf8.RuneCountInString(s[i:]) > 1 {
				return s[:i] + "…"
			}
			break
		}
	}
	return s
}
