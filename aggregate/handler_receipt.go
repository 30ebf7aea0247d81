package aggregate

import (
	"context"

	"culm/events"
)

// repeat answers a command id that has appended before: with the first outcome,
// from the log, or a refusal if the command is another one. Most outcomes follow
// from the event alone; the others cost a fold up to it.
func (t *transaction) repeat(ctx context.Context, seq uint64, digest string) Reply {
	if digest != t.r.Digest {
		return t.refused(reject(CodeCommandIDReused, "the command id %.128q belongs to another command, stored at %d", t.r.ID, seq).with("sequence", seq))
	}
	e, err := t.stored(ctx, seq)
	if err != nil {
		return t.refused(asRejection(err))
	}
	if e.Seq != seq || e.Command != t.r.ID || e.CommandDigest != digest {
		return t.refused(reject(CodeMalformedState, "the first outcome at %d cannot be read", seq))
	}
	after := t.a.state
	if outcomeNeedsState(e.Data) {
		if after, err = Fold(t.h.opts.Log.Read(ctx, t.a.session, 0, seq)); err != nil {
			return t.refused(asRejection(err))
		}
	}
	reply := t.outcome(after, &e)
	reply.Duplicate = true
	return reply
}

// stored reads one event of the log; the zero event if there is none at seq.
func (t *transaction) stored(ctx context.Context, seq uint64) (e events.Event, err error) {
	for r, err := range t.h.opts.Log.Read(ctx, t.a.session, seq-1, seq) {
		if err != nil {
			return e, err
		}
		if e, err = events.Decode(r.Payload); err != nil {
			return e, malformed(r, err)
		}
	}
	return e, nil
}

// outcomeNeedsState says that Outcome looks at the state after the event, for
// some command.
func outcomeNeedsState(d events.Data) bool {
	switch d.(type) {
	case events.LoopRecoveryRefused, events.LoopStopped, events.LoopBudgetExhausted, events.RunBudgetExhausted,
		events.ReplayStarted, events.ReplayBlocked, events.ApprovalDecided, events.QuestionAnswered, events.ToolResolved:
		return true
	}
	return false
}
