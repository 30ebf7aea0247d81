package projection

import (
	"encoding/json"
	"fmt"

	"culm/aggregate"
	"culm/events"
)

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
