package projection

import (
	"culm/events"
)

func (l *live) applyRun(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.RunRequested:
		l.voidCalls(e, d.Voided)
		l.person(e, d.Message)
		l.request(e, d.RunID, d.Cause)
	case events.RunStarted:
		return l.started(e, &d)
	case events.RunRefused:
		l.voidCalls(e, d.Voided)
		l.unknownCalls(e, d.Unknown)
		l.endRun(e, runRefused, d.Code, &events.Failure{Code: d.Code, Message: d.Message})
		return l.setLoop(e, d.Loop)
	case events.RunCancelRequested:
		if l.run != nil {
			l.run.CancelRequested = true
			l.out.runs.add(l.run)
		}
	case events.RunInterrupted:
		l.voidCalls(e, d.Voided)
		l.unknownCalls(e, d.Unknown)
		l.endRun(e, runInterrupted, d.Code, nil)
	case events.RunFinished:
		l.voidCalls(e, d.Voided)
		l.unknownCalls(e, d.Unknown)
		l.endRun(e, d.Outcome, d.CompletionReason, d.Error)
		return l.setLoop(e, d.Loop)
	}
	return nil
}

// request notes a requested run; a suspended one before it is continued by it.
func (l *live) request(e *events.Event, id, cause string) {
	if l.run != nil {
		l.run.Successor = id
		l.endRun(e, runContinued, "", nil)
	}
	l.run = &runRow{
		Session: e.Session, RunID: id, Status: runRequested, Cause: cause, RequestedBy: e.Actor,
		RequestedSeq: clamp(e.Seq), RequestedAt: nanos(e.Time),
	}
	l.out.runs.add(l.run)
}

func (l *live) started(e *events.Event, d *events.RunStarted) error {
	if l.run == nil || l.run.RunID != d.RunID {
		l.request(e, d.RunID, d.Cause)
	}
	n := l.run
	n.Status, n.Cause, n.Runner, n.Fence, n.StartedAt = runLive, d.Cause, d.Runner, clamp(e.Seq), nanos(e.Time)
	n.Provider, n.Model = d.Roster.Primary.Provider, d.Roster.Primary.Model
	l.out.runs.add(n)
	if d.Loop == nil {
		return nil
	}
	n.LoopGeneration = d.Loop.Generation
	if l.loop == nil || l.loop.Generation != d.Loop.Generation {
		l.loop = &loopRow{Session: e.Session, Generation: d.Loop.Generation, StartedSeq: clamp(e.Seq), StartedAt: nanos(e.Time)}
	}
	o := l.loop
	o.Owner, o.Objective, o.OnPark = d.Loop.Owner, d.Loop.Objective, d.Loop.OnPark
	o.MaxIterations, o.MaxTotalRounds = int64(d.Loop.MaxIterations), int64(d.Loop.MaxTotalRounds)
	return l.setLoop(e, &d.Loop.Loop)
}

// endRun notes how the session's run ended; without one nothing ends.
func (l *live) endRun(e *events.Event, status, reason string, failure *events.Failure) {
	n := l.run
	if n == nil {
		return
	}
	if o := l.round; o != nil {
		o.Status, o.EndedSeq, o.EndedAt = roundLost, clamp(e.Seq), nanos(e.Time)
		l.out.rounds.add(o)
		l.round = nil
	}
	n.Status, n.Reason, n.EndedSeq, n.EndedAt = status, reason, clamp(e.Seq), nanos(e.Time)
	if failure != nil {
		n.ErrorCode, n.ErrorMessage = failure.Code, failure.Message
	}
	l.out.runs.add(n)
	l.run = nil
	if status != runContinued {
		l.row.LastOutcome, l.row.LastError = status, lastError(n)
	}
}

// lastError is the run's error in one line, "" if it ended well.
func lastError(n *runRow) string {
	switch {
	case n.ErrorMessage != "":
		return clip(n.ErrorCode+": "+n.ErrorMessage, 300)
	case n.Status == runFailed || n.Status == runInterrupted || n.Status == runRefused:
		return n.Reason
	}
	return ""
}

func (l *live) applyRound(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.RoundStarted:
		l.admitted(e, &d.Admission)
		return l.setLoop(e, d.Loop)
	case events.RoundFinished:
		return l.answer(e, &d)
	case events.RoundFailed:
		if o := l.endRound(e, roundFailed); o != nil {
			o.ErrorCode, o.ErrorMessage = d.Error.Code, d.Error.Message
		}
	}
	return nil
}

// admitted opens a round of the session's run.
func (l *live) admitted(e *events.Event, a *events.Admission) {
	if a.Repeat != nil {
		l.message(e, &messageRow{MessageID: a.Repeat.MessageID, Role: "user", Origin: "repeat", Content: a.Repeat.Content, Success: -1})
	}
	n := l.run
	if n == nil {
		return
	}
	n.Rounds = int64(a.Round) + 1
	l.out.runs.add(n)
	l.round = &roundRow{
		Session: e.Session, RunID: n.RunID, Round: int64(a.Round), LoopGeneration: n.LoopGeneration, Iteration: int64(a.Iteration),
		Summary: a.Summary, Status: roundOpen, StartedSeq: clamp(e.Seq), StartedAt: nanos(e.Time),
	}
	l.out.rounds.add(l.round)
}

// endRound closes the open round and returns it, or nil.
func (l *live) endRound(e *events.Event, status string) *roundRow {
	o := l.round
	if o == nil {
		return nil
	}
	o.Status, o.EndedSeq, o.EndedAt = status, clamp(e.Seq), nanos(e.Time)
	l.out.rounds.add(o)
	l.round = nil
	return o
}

// answer takes the model's answer: its message, calls, tokens, and the round
// that it may have admitted.
func (l *live) answer(e *events.Event, d *events.RoundFinished) error {
	calls := ""
	if len(d.Message.ToolCalls) > 0 {
		calls = text(d.Message.ToolCalls)
	}
	l.message(e, &messageRow{MessageID: d.Message.MessageID, Role: "assistant", Origin: "model", Content: d.Message.Content, ToolCalls: calls, Success: -1})
	l.newCalls(e, d)
	if o := l.endRound(e, roundFinished); o != nil {
		o.MessageID, o.Decision, o.FinishReason = d.Message.MessageID, d.Decision, d.FinishReason
		o.Attempts, o.ToolCalls = int64(d.Attempts), int64(len(d.Message.ToolCalls))
		if d.Usage != nil {
			o.PromptTokens, o.CompletionTokens, o.TotalTokens = tokens(d.Usage.Prompt), tokens(d.Usage.Completion), tokens(d.Usage.Total)
		}
	}
	l.used(e, d)
	if err := l.setLoop(e, d.Loop); err != nil {
		return err
	}
	if d.Next != nil && d.Next.Admitted {
		l.admitted(e, &d.Next.Admission)
	}
	return nil
}

// used counts the tokens of an answer.
func (l *live) used(e *events.Event, d *events.RoundFinished) {
	u := events.Usage{}
	if d.Usage != nil {
		u = *d.Usage
	}
	prompt, completion, total := tokens(u.Prompt), tokens(u.Completion), tokens(u.Total)
	row := &usageRow{Session: e.Session, Day: e.Time.UTC().Format("2006-01-02"), Rounds: 1, Prompt: prompt, Completion: completion, Total: total}
	if n := l.run; n != nil {
		row.Provider, row.Model = n.Provider, n.Model
		n.PromptTokens, n.CompletionTokens, n.TotalTokens = n.PromptTokens+prompt, n.CompletionTokens+completion, n.TotalTokens+total
		l.out.runs.add(n)
	}
	l.out.usage.add(row)
	r := &l.row
	r.PromptTokens, r.CompletionTokens, r.TotalTokens = r.PromptTokens+prompt, r.CompletionTokens+completion, r.TotalTokens+total
}

// maxTokens bounds what one answer can have used. More is no count of tokens,
// and sums of it would leave the numbers that SQL has.
const maxTokens = 1 << 40

func tokens(n uint64) int64 { return int64(min(n, maxTokens)) } //nolint:gosec // bounded
