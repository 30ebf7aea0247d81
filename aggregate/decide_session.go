package aggregate

import (
	"bytes"
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate/policy"
	"culm/events"
)

func decideCreate(s *State, c SessionCreate, env Env) (Decision, *Rejection) {
	if s.Exists() {
		return refuse(reject(CodeSessionExists, "the session exists since %s", s.Session.Created.Format("2006-01-02 15:04:05Z07:00")).with("birth", s.Head.Birth))
	}
	mode := c.Mode
	if mode == "" {
		mode = modeDefault
	}
	kind := kindRoot
	if c.Parent != nil {
		kind = kindChild
	}
	return appendEvent(events.SessionCreated{
		Kind: kind, Parent: c.Parent, Mode: mode, ReadOnly: c.ReadOnly, NoHumanApprover: c.NoHumanApprover, EnforcePolicy: c.EnforcePolicy,
		Settings: events.Settings{
			Title: c.Title, Model: c.Model, ReasoningEffort: c.ReasoningEffort, Workspace: c.Workspace,
			Gold: goldOf(c.Gold), Metadata: maps.Clone(c.Metadata),
		},
		Posture: posture(0, mode, false, env),
	})
}

// posture is the permission state after change number revision+1.
func posture(revision uint64, requested string, plan bool, env Env) events.Posture {
	return events.Posture{
		AuditRevision: revision + 1, PolicyRevision: env.Config.PolicyRevision, RequestedMode: requested,
		EffectiveMode: policy.EffectiveMode(env.Config.Mode, requested, plan),
	}
}

// goldOf keeps an object as given, but for white space, which storing drops;
// null and absent are none.
func goldOf(v jsontext.Value) jsontext.Value {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	kept := v.Clone()
	if err := kept.Compact(jsontext.PreserveRawStrings(true)); err != nil {
		return v.Clone()
	}
	return kept
}

func decideConfigure(s *State, c SessionConfigure) (Decision, *Rejection) {
	n := s.Session.Settings
	n.Metadata = maps.Clone(n.Metadata)
	set(&n.Title, c.Title)
	set(&n.ReasoningEffort, c.ReasoningEffort)
	set(&n.Workspace, c.Workspace)
	if c.Model != nil {
		n.Model = c.Model
	}
	if c.Gold != nil {
		n.Gold = goldOf(c.Gold)
	}
	for k, v := range c.Metadata {
		if v == nil {
			delete(n.Metadata, k)
			continue
		}
		if n.Metadata == nil {
			n.Metadata = map[string]string{}
		}
		n.Metadata[k] = *v
	}
	if len(n.Metadata) == 0 {
		n.Metadata = nil
	}
	if sameSettings(n, s.Session.Settings) {
		return nothing(nil)
	}
	return appendEvent(events.SessionConfigured{Settings: n})
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

func sameSettings(a, b events.Settings) bool {
	return a.Title == b.Title && a.ReasoningEffort == b.ReasoningEffort && a.Workspace == b.Workspace &&
		deref(a.Model) == deref(b.Model) && bytes.Equal(a.Gold, b.Gold) && maps.Equal(a.Metadata, b.Metadata)
}

func decideSetMode(s *State, c SessionSetMode, env Env) (Decision, *Rejection) {
	if c.Mode == s.Session.Mode {
		return nothing(nil)
	}
	return appendEvent(events.SessionModeChanged{Mode: c.Mode, Posture: posture(s.Session.Posture.AuditRevision, c.Mode, s.Session.Plan != nil, env)})
}

func decideEnterPlan(s *State, c SessionEnterPlan, env Env) (Decision, *Rejection) {
	if s.Session.Plan != nil {
		return nothing(nil)
	}
	return appendEvent(events.SessionPlanEntered{Reason: c.Reason, Posture: posture(s.Session.Posture.AuditRevision, s.Session.Mode, true, env)})
}

func decideExitPlan(s *State, env Env) (Decision, *Rejection) {
	if s.Session.Plan == nil {
		return nothing(nil)
	}
	return appendEvent(events.SessionPlanExited{Posture: posture(s.Session.Posture.AuditRevision, s.Session.Mode, false, env)})
}

// decideClose ends everything the session has open.
func decideClose(s *State, c SessionClose, env Env) (Decision, *Rejection) {
	e := events.SessionClosed{
		Reason: c.Reason, Voided: s.voidCalls("the session was closed", notStarted), Unknown: s.unknownCalls(env.mint),
	}
	if s.Run != nil {
		e.RunID = s.Run.ID
	}
	if l := s.Loop; l != nil && (l.Status.Live() || l.Status == events.StatusPaused) {
		e.Loop = l.finish(resultCancelled).wire()
	}
	return appendEvent(e)
}

func decideMessage(c MessageSubmit, env Env) (Decision, *Rejection) {
	return appendEvent(events.MessageSubmitted{
		UserMessage: events.UserMessage{MessageID: env.mint("message", 0), Content: c.Content}, Role: roleUser,
	})
}
