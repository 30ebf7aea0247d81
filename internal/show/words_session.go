package show

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"culm/events"
)

func (p *Printer) sessionWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.SessionCreated:
		return plain, "session created" + about(p.settings(d.Settings, d.RequestedMode))
	case events.SessionConfigured:
		return faint, "settings now" + about(p.settings(d.Settings, ""))
	case events.SessionModeChanged:
		return plain, "permission mode set to " + modes(d.Posture)
	case events.SessionPlanEntered:
		return plain, "plan mode on: nothing may be changed" + because(p.quoteIf(d.Reason))
	case events.SessionPlanExited:
		return plain, "plan mode off, permission mode " + modes(d.Posture)
	case events.SessionClosed:
		return good, "session closed" + because(p.quoteIf(d.Reason)) + leftOver(d.Voided, d.Unknown)
	}
	return plain, Clean(d.EventType())
}

func (p *Printer) messageWords(d events.Data) (tone, string) {
	switch d := d.(type) {
	case events.MessageSubmitted:
		return heard, "says " + p.quote(d.Content)
	case events.NoteAppended:
		return faint, fmt.Sprintf("note %s: %s", Clean(d.Kind), Clip(Clean(string(d.Data)), p.style.Width))
	}
	return plain, Clean(d.EventType())
}

// settings lists what is set, most telling first.
func (p *Printer) settings(s events.Settings, mode string) string {
	var parts []string
	add := func(label, value string) {
		if value != "" {
			parts = append(parts, label+Clip(Clean(value), p.style.Width))
		}
	}
	if s.Title != "" {
		parts = append(parts, p.quote(s.Title))
	}
	if s.Model != nil {
		add("model ", s.Model.Provider+"/"+s.Model.Model)
	}
	add("reasoning ", s.ReasoningEffort)
	add("workspace ", s.Workspace)
	add("permission mode ", mode)
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		add(Clip(Clean(key), p.style.Width)+"=", s.Metadata[key])
	}
	return strings.Join(parts, ", ")
}

func modes(p events.Posture) string {
	if p.RequestedMode == p.EffectiveMode {
		return Clean(p.EffectiveMode)
	}
	return fmt.Sprintf("%s (in effect: %s)", Clean(p.RequestedMode), Clean(p.EffectiveMode))
}

// about and because join a detail, if there is one.
func about(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func (p *Printer) quoteIf(s string) string {
	if s == "" {
		return ""
	}
	return p.quote(s)
}

// leftOver tells of calls that an end left behind.
func leftOver(voided []events.VoidedCall, unknown []events.UnknownCall) string {
	text := ""
	if len(voided) > 0 {
		text += "; " + Count(len(voided), "waiting call") + " will not run"
	}
	if len(unknown) > 0 {
		names := make([]string, len(unknown))
		for i, u := range unknown {
			names[i] = Clip(Clean(u.Name), maxName)
		}
		text += "; not known whether it happened: " + Clip(strings.Join(names, ", "), maxNames)
	}
	return text
}
