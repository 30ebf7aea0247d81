package projection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"culm/aggregate"
	"culm/events"
)

// expected is what the rows of one session must be, found by watching how
// aggregate's fold changes with each event. It shares no code with live: what
// happened to a run or a call is read off the states before and after.
type expected struct {
	state      aggregate.State
	transcript aggregate.Transcript
	was        moment // before the event
	first      uint64
	last       events.Event
	used, sum  usageRow         // by the event, and by all
	stamps     map[uint64]stamp // by sequence
	provider   string           // of the run that was started last
	model      string

	byRun   map[string]*runRow
	byLoop  map[string]*loopRow
	byRound map[string]*roundRow
	byCall  map[string]*callRow
	byItem  map[string]*itemRow // waiting, by message id
	byUsage map[string]*usageRow
	ended   *runRow // run that ended last and has no successor

	sessions  []*sessionRow
	runs      []*runRow
	loops     []*loopRow
	rounds    []*roundRow
	messages  []*messageRow
	tools     []*callRow
	approvals []*itemRow
	usage     []*usageRow
	timeline  []*timelineRow
}

// moment is the part of a state that the next event may change.
type moment struct {
	run   *aggregate.Run
	calls []aggregate.Call
	usage events.Usage
}

type stamp struct {
	at         int64
	actor, run string
}

// raw is what events say besides what the fold keeps.
type raw struct {
	Loop             json.RawMessage `json:"loop"`
	Outcome          string          `json:"outcome"`
	CompletionReason string          `json:"completion_reason"`
	Code             string          `json:"code"`
	Message          json.RawMessage `json:"message"`
	Error            json.RawMessage `json:"error"`
	RunID            string          `json:"run_id"`
	Round            uint32          `json:"round"`
	Decision         string          `json:"decision"`
	FinishReason     string          `json:"finish_reason"`
	Attempts         uint32          `json:"attempts"`
	Note             string          `json:"note"`
	Matcher          json.RawMessage `json:"matcher"`
	Answer           string          `json:"answer"`
	PermissionType   string          `json:"permission_type"`
	Resource         string          `json:"resource"`
	Step             string          `json:"step"`
	RuleID           string          `json:"rule_id"`
	ElapsedMS        uint64          `json:"elapsed_ms"`
	Reason           string          `json:"reason"`
	ToolCallID       string          `json:"tool_call_id"`
	MessageID        string          `json:"message_id"`
	Roster           struct {
		Primary struct{ Provider, Model string } `json:"primary"`
	} `json:"roster"`
}

func newExpected(cp *checkpointRow) *expected {
	return &expected{
		state:  aggregate.State{Head: events.Head{Session: cp.Session}},
		stamps: map[uint64]stamp{}, byRun: map[string]*runRow{}, byLoop: map[string]*loopRow{}, byRound: map[string]*roundRow{},
		byCall: map[string]*callRow{}, byItem: map[string]*itemRow{}, byUsage: map[string]*usageRow{},
	}
}

// step folds one event and notes what it changed.
func (x *expected) step(r events.Record) error {
	x.was = moment{calls: slices.Clone(x.state.Calls), usage: x.state.Usage}
	if x.state.Run != nil {
		run := *x.state.Run
		x.was.run = &run
	}
	if err := x.state.Apply(r); err != nil {
		return err
	}
	e, err := events.Decode(r.Payload)
	if err != nil {
		return err
	}
	if x.first == 0 {
		x.first = e.Seq
	}
	x.last = e
	x.stamps[e.Seq] = stamp{nanos(e.Time), e.Actor, e.Run}
	x.transcript.Evolve(&e)
	var d raw
	if err := json.Unmarshal(e.Raw, &d); err != nil {
		// A field of another shape: what it would be needed for is in no event like that.
		d.RunID = ""
	}
	x.observe(&e, &d, len(r.Payload))
	return nil
}

func (x *expected) observe(e *events.Event, d *raw, size int) {
	if e.Type == "run.started" {
		x.provider, x.model = d.Roster.Primary.Provider, d.Roster.Primary.Model
	}
	x.used = usageRow{
		Prompt:     int64(min(x.state.Usage.Prompt-x.was.usage.Prompt, 1<<40)),         //nolint:gosec // bounded
		Completion: int64(min(x.state.Usage.Completion-x.was.usage.Completion, 1<<40)), //nolint:gosec // bounded
		Total:      int64(min(x.state.Usage.Total-x.was.usage.Total, 1<<40)),           //nolint:gosec // bounded
	}
	x.observeRound(e, d)
	x.observeRun(e, d)
	x.observeLoop(e, d)
	x.observeCalls(e, d)
	x.observeUsage(e)
	call, message := d.ToolCallID, d.MessageID
	if m := nested(d.Message).MessageID; m != "" {
		message = m
	}
	x.timeline = append(x.timeline, &timelineRow{
		Session: e.Session, Seq: clamp(e.Seq), At: nanos(e.Time), EventID: e.ID, Type: e.Type, Actor: e.Actor, Command: e.Command,
		RunID: e.Run, ToolCallID: call, MessageID: message, Bytes: int64(size),
	})
}

// nested are the fields of objects within an event's data.
func nested(b json.RawMessage) (n struct {
	MessageID string `json:"message_id"`
	Code      string `json:"code"`
	Message   string `json:"message"`
}) {
	_ = json.Unmarshal(b, &n) // no object: nothing is nested
	return n
}

func (x *expected) observeRun(e *events.Event, d *raw) {
	was, now := x.was.run, x.state.Run
	if was != nil && (now == nil || now.ID != was.ID) {
		x.endRun(e, d, was)
	}
	if now == nil {
		return
	}
	row := x.byRun[now.ID]
	if row == nil {
		row = &runRow{Session: e.Session, RunID: now.ID, RequestedBy: e.Actor, RequestedSeq: clamp(e.Seq), RequestedAt: nanos(e.Time)}
		x.byRun[now.ID] = row
		x.runs = append(x.runs, row)
	}
	row.Status, row.Cause, row.Runner, row.Fence = now.Status, now.Cause, now.Runner, clamp(now.Fence)
	row.CancelRequested, row.Rounds = now.CancelRequested, int64(now.Rounds)
	if e.Type == "round.finished" {
		row.PromptTokens += x.used.Prompt
		row.CompletionTokens += x.used.Completion
		row.TotalTokens += x.used.Total
	}
	if now.Fence == e.Seq {
		row.StartedAt, row.Provider, row.Model = nanos(e.Time), x.provider, x.model
	}
	if l := x.state.Loop; l != nil && l.Owner == now.ID {
		row.LoopGeneration = l.Generation
	}
}

func (x *expected) endRun(e *events.Event, d *raw, was *aggregate.Run) {
	row := x.byRun[was.ID]
	row.EndedSeq, row.EndedAt = clamp(e.Seq), nanos(e.Time)
	x.ended = row
	switch e.Type {
	case "run.finished":
		row.Status, row.Reason = d.Outcome, d.CompletionReason
		row.ErrorCode, row.ErrorMessage = nested(d.Error).Code, nested(d.Error).Message
	case "run.refused":
		var message string
		_ = json.Unmarshal(d.Message, &message) // a string in this event
		row.Status, row.Reason, row.ErrorCode, row.ErrorMessage = "refused", d.Code, d.Code, message
	case "run.interrupted":
		row.Status, row.Reason = "interrupted", d.Code
	case "session.closed":
		row.Status, row.Reason = "cancelled", "session_closed"
	case "loop.stop_requested":
		row.Status, row.Reason = "stopped", "stop_requested"
	default:
		row.Status, row.Successor = "continued", x.state.Run.ID
		x.ended = x.endedBefore(row)
	}
}

// endedBefore is the run that ended last before this one, without a successor.
func (x *expected) endedBefore(except *runRow) *runRow {
	var last *runRow
	for _, r := range x.runs {
		if r != except && r.EndedSeq > 0 && r.Successor == "" && (last == nil || r.EndedSeq >= last.EndedSeq) {
			last = r
		}
	}
	return last
}

func (x *expected) observeRound(e *events.Event, d *raw) {
	was, now := x.was.run, x.state.Run
	if was != nil && was.RoundOpen && !(now != nil && now.ID == was.ID && now.RoundOpen && now.Rounds == was.Rounds) {
		row := x.byRound[roundKey(was)]
		row.EndedSeq, row.EndedAt = clamp(e.Seq), nanos(e.Time)
		switch e.Type {
		case "round.finished":
			row.Status, row.MessageID, row.Decision, row.FinishReason = "finished", nested(d.Message).MessageID, d.Decision, d.FinishReason
			row.Attempts, row.ToolCalls = int64(d.Attempts), int64(len(x.state.Calls))
			row.PromptTokens, row.CompletionTokens, row.TotalTokens = x.used.Prompt, x.used.Completion, x.used.Total
		case "round.failed":
			row.Status, row.ErrorCode, row.ErrorMessage = "failed", nested(d.Error).Code, nested(d.Error).Message
		default:
			row.Status = "lost"
		}
	}
	if now == nil || !now.RoundOpen || x.byRound[roundKey(now)] != nil {
		return
	}
	row := &roundRow{
		Session: e.Session, RunID: now.ID, Round: int64(now.Rounds) - 1, Iteration: int64(now.Iteration), Summary: now.Summary, Status: "open",
		StartedSeq: clamp(e.Seq), StartedAt: nanos(e.Time),
	}
	if l := x.state.Loop; l != nil && l.Owner == now.ID {
		row.LoopGeneration = l.Generation
	}
	x.byRound[roundKey(now)] = row
	x.rounds = append(x.rounds, row)
}

func roundKey(r *aggregate.Run) string { return fmt.Sprint(r.ID, " ", r.Rounds) }

func (x *expected) observeLoop(e *events.Event, d *raw) {
	l := x.state.Loop
	if l == nil {
		return
	}
	row := x.byLoop[l.Generation]
	if row == nil {
		row = &loopRow{Session: e.Session, Generation: l.Generation, StartedSeq: clamp(e.Seq), StartedAt: nanos(e.Time)}
		x.byLoop[l.Generation] = row
		x.loops = append(x.loops, row)
	}
	row.Revision, row.Status, row.Reason, row.Owner, row.Objective, row.OnPark = clamp(l.Revision), string(l.Status), l.Reason, l.Owner, l.Objective, l.OnPark
	row.MaxIterations, row.MaxTotalRounds = int64(l.MaxIterations), int64(l.MaxTotalRounds)
	row.IterationsStarted, row.IterationsCompleted, row.RoundsStarted = int64(l.IterationsStarted), int64(l.IterationsCompleted), int64(l.RoundsStarted)
	row.StopRequested, row.Abandoned = l.StopRequested, l.Abandoned
	if len(d.Loop) > 0 && string(d.Loop) != "null" {
		row.UpdatedSeq, row.UpdatedAt = clamp(e.Seq), nanos(e.Time)
	}
}

func (x *expected) observeUsage(e *events.Event) {
	if e.Type != "round.finished" {
		return
	}
	row := &usageRow{Session: e.Session, Day: e.Time.UTC().Format("2006-01-02")}
	if x.was.run != nil {
		row.Provider, row.Model = x.provider, x.model
	}
	key := row.Day + " " + row.Provider + " " + row.Model
	if x.byUsage[key] == nil {
		x.byUsage[key] = row
		x.usage = append(x.usage, row)
	}
	row = x.byUsage[key]
	row.Rounds++
	row.Prompt += x.used.Prompt
	row.Completion += x.used.Completion
	row.Total += x.used.Total
	x.sum.Prompt += x.used.Prompt
	x.sum.Completion += x.used.Completion
	x.sum.Total += x.used.Total
}

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
		Waiting: int64(s.Waiting()), StuckSeq: cp.StuckSeq, StuckReason: cp.StuckReason,
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
