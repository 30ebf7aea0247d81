package projection

import (
	"encoding/json"
	"slices"

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
