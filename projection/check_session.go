package projection

import (
	"slices"
	"strings"

	"culm/aggregate"
	"culm/events"
)

// finish makes the rows that follow from the last state.
func (x *expected) finish(cp *checkpointRow) {
	for i, m := range x.transcript.Messages {
		s := x.stamps[m.Seq]
		row := &messageRow{
			Session: cp.Session, N: int64(i) + 1, MessageID: m.MessageID, Role: m.Role, Origin: m.Origin, Content: m.Content, ToolCallID: m.ToolCallID,
			Success: -1, Seq: clamp(m.Seq), At: s.at, Actor: s.actor, RunID: s.run,
		}
		if len(m.ToolCalls) > 0 {
			row.ToolCalls = text(m.ToolCalls)
		}
		if m.Success != nil {
			row.Success = map[bool]int64{false: 0, true: 1}[*m.Success]
		}
		x.messages = append(x.messages, row)
		if c := x.byCall[m.MessageID]; c != nil && m.Role == "tool" {
			c.ResultBytes = int64(len(m.Content))
		}
	}
	x.sessions = []*sessionRow{x.session(cp)}
}

func (x *expected) session(cp *checkpointRow) *sessionRow {
	s, n := &x.state, &x.state.Session
	row := &sessionRow{
		Session: cp.Session, Birth: s.Head.Birth, Kind: n.Kind, Title: n.Title, ReasoningEffort: n.ReasoningEffort, Workspace: n.Workspace,
		Mode: n.Mode, EffectiveMode: n.Posture.EffectiveMode, Plan: n.Plan != nil, ReadOnly: n.ReadOnly, NoHumanApprover: n.NoHumanApprover,
		EnforcePolicy: n.EnforcePolicy, Closed: n.Closed, CreatedAt: nanos(n.Created), UpdatedAt: nanos(x.last.Time), FirstSeq: clamp(x.first),
		Seq: clamp(s.Head.Seq), LastType: x.last.Type, LastActor: x.last.Actor, Messages: int64(len(x.transcript.Messages)), Round: -1,
		PromptTokens: x.sum.Prompt, CompletionTokens: x.sum.Completion, TotalTokens: x.sum.Total,
		StuckSeq: cp.StuckSeq, StuckReason: cp.StuckReason,
	}
	if n.Parent != nil {
		row.ParentSession, row.ParentCall = n.Parent.Session, n.Parent.ToolCallID
	}
	if n.Model != nil {
		row.Provider, row.Model = n.Model.Provider, n.Model.Model
	}
	if len(n.Metadata) > 0 {
		row.Metadata = text(n.Metadata)
	}
	if answers := slices.DeleteFunc(slices.Clone(x.transcript.Messages), func(m aggregate.TranscriptMessage) bool { return m.Role != "assistant" }); len(answers) > 0 {
		row.AnswerID = answers[len(answers)-1].MessageID
	}
	if r := s.Run; r != nil {
		row.RunID, row.RunStatus, row.RunCause, row.Runner, row.CancelRequested, row.Round = r.ID, r.Status, r.Cause, r.Runner, r.CancelRequested, int64(r.Rounds)-1
	}
	if l := s.Loop; l != nil {
		row.LoopGeneration, row.LoopStatus, row.LoopReason = l.Generation, string(l.Status), l.Reason
		row.IterationsStarted, row.IterationsCompleted, row.MaxIterations = int64(l.IterationsStarted), int64(l.IterationsCompleted), int64(l.MaxIterations)
		row.RoundsStarted, row.MaxTotalRounds = int64(l.RoundsStarted), int64(l.MaxTotalRounds)
	}
	if !n.Closed {
		row.Waiting = int64(s.Waiting())
	}
	for _, i := range x.byItem {
		if row.WaitingSince == 0 || i.SinceAt < row.WaitingSince {
			row.WaitingSince = i.SinceAt
		}
	}
	if r := x.ended; r != nil {
		row.LastOutcome = r.Status
		if r.ErrorMessage != "" {
			row.LastError = clip(r.ErrorCode+": "+r.ErrorMessage, 300)
		} else if slices.Contains([]string{"failed", "interrupted", "refused"}, r.Status) {
			row.LastError = r.Reason
		}
	}
	row.Status = x.status(row)
	return row
}

func (x *expected) status(row *sessionRow) string {
	s := &x.state
	l := s.Loop
	blocks := l != nil && !l.Abandoned && (l.Status == events.StatusRecoveryUnsupported || l.Status.Live() && (s.Run == nil || s.Run.ID != l.Owner))
	for _, c := range []struct {
		holds  bool
		status string
	}{
		{row.StuckSeq > 0, "stuck"},
		{s.Session.Closed, "closed"},
		{s.Run != nil && s.Run.Status == "live", "running"},
		{s.Run != nil && s.Run.Status == "requested", "requested"},
		{s.Waiting() > 0, "waiting"},
		{blocks, "blocked"},
		{strings.Contains(" failed refused interrupted ", " "+row.LastOutcome+" "), "failed"},
	} {
		if c.holds {
			return c.status
		}
	}
	return "idle"
}
