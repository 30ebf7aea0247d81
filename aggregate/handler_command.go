package aggregate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"culm/events"
)

// maxAttempts bounds how often one command is decided anew against concurrent
// writers before it is given up as unavailable.
const maxAttempts = 64

// transaction is one command on its way.
type transaction struct {
	h     *Handler
	a     *actor
	r     Request
	cmd   Command
	fresh bool   // the state was read from the log within this transaction
	rule  string // id of the rule that this transaction has stored for its decision
}

// handle judges one command and answers it once its outcome is durable.
func (h *Handler) handle(a *actor, r Request, done func(Reply)) {
	reply := h.judge(h.until(), a, r)
	h.answer(a.ticket, func(err error) {
		if err != nil {
			reply = h.refusal(r, 0, asRejection(err))
		}
		done(reply)
	})
}

// judge takes the command to its outcome.
func (h *Handler) judge(ctx context.Context, a *actor, r Request) Reply {
	cmd, refused := DecodeCommand(r.Name, r.Body)
	if refused != nil {
		return h.refusal(r, a.sequence(), refused)
	}
	t := &transaction{h: h, a: a, r: r, cmd: cmd}
	if _, ok := cmd.(SessionDelete); ok {
		return t.delete(ctx)
	}
	return t.run(ctx)
}

// answer calls done when everything up to the ticket is durable.
func (h *Handler) answer(ticket uint64, done func(error)) { h.opts.Barrier.Then(ticket, done) }

func (a *actor) sequence() uint64 {
	if a.state == nil {
		return 0
	}
	return a.state.Head.Seq
}

// run is the transaction: load, decide, append; on a conflict read on and
// decide again (docs/rules.md#transaction).
func (t *transaction) run(ctx context.Context) Reply {
	for attempt := range maxAttempts {
		if attempt > 2 && !pause(ctx, attempt) {
			break
		}
		reply, again := t.attempt(ctx)
		if again {
			continue
		}
		if reply.Error != nil && reply.Error.Code != CodeUnavailable { // what is unavailable may be tried again
			t.unremember(ctx)
		}
		return reply
	}
	return t.refused(reject(CodeUnavailable, "too many concurrent writers; retry with the same command id"))
}

// pause waits a little, longer with each attempt, so that writers part.
func pause(ctx context.Context, attempt int) bool {
	limit := min(time.Duration(attempt)*time.Millisecond, 20*time.Millisecond)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(limit)))) //nolint:gosec // jitter
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *transaction) refused(r *Rejection) Reply { return t.h.refusal(t.r, t.a.sequence(), r) }

// attempt takes the transaction once through its checks, in the order session,
// receipt, expected sequence, rules; again asks for another attempt.
func (t *transaction) attempt(ctx context.Context) (reply Reply, again bool) {
	if t.a.state == nil || t.a.broken != nil {
		err := t.h.load(ctx, t.a)
		t.fresh = true
		if errors.Is(err, events.ErrNotFound) {
			if begins(t.cmd) {
				return t.create(ctx)
			}
		}
		if err != nil {
			return t.refused(asRejection(err)), false
		}
	}
	s := t.a.state
	if seq, digest, ok := s.Receipt(t.r.ID); ok {
		// A state of a former life, deleted since by another engine, must not answer.
		return t.unlessStale(ctx, func() Reply { return t.repeat(ctx, seq, digest) })
	}
	if t.r.Expected != nil && *t.r.Expected != s.Head.Seq {
		return t.unlessStale(ctx, func() Reply {
			return t.refused(reject(CodeWrongExpectedSequence, "the session is at %d, not at %d", s.Head.Seq, *t.r.Expected).with("actual", s.Head.Seq))
		})
	}
	env, err := t.env(ctx, s.Head.Birth)
	if err != nil {
		return t.refused(asRejection(err)), false
	}
	if found, err := t.facts(ctx, env); found || err != nil {
		return t.retryOr(ctx, err)
	}
	d, refused := Decide(s, t.cmd, env)
	switch {
	case refused != nil:
		return t.unlessStale(ctx, func() Reply { return t.refused(refused) })
	case d.Event == nil:
		return t.unlessStale(ctx, func() Reply { t.renew(ctx); return t.accepted(nil, d.Result) })
	}
	if d.Rule != nil {
		if again, err := t.remember(ctx, *d.Rule); again || err != nil {
			return t.retryOr(ctx, err)
		}
	}
	if _, ok := t.cmd.(RunClaim); ok {
		if err := t.h.opts.Leases.Renew(ctx, t.a.session, s.Run.ID); err != nil {
			return t.refused(asRejection(err)), false
		}
	}
	e, err := t.append(ctx, d.Event, t.r, env)
	if err != nil {
		return t.retryOr(ctx, err)
	}
	return t.outcome(s, e), false
}

// begins says that a session may begin with the command.
func begins(c Command) bool {
	switch c.(type) {
	case SessionCreate, PolicySetMode, PolicyAddRule, PolicyRemoveRule:
		return true
	}
	return false
}

// env is what Decide may use.
func (t *transaction) env(ctx context.Context, birth string) (Env, error) {
	config, err := t.h.config(ctx, t.cmd)
	return Env{Now: t.h.opts.Now().UTC(), Actor: t.r.Actor, Command: t.r.ID, Session: t.a.session, Birth: birth, Config: config}, err
}

// unlessStale answers without an append, if the state holds everything that was
// in the log; else the command is decided again.
func (t *transaction) unlessStale(ctx context.Context, answer func() Reply) (Reply, bool) {
	if !t.fresh {
		t.fresh = true
		moved, err := t.h.current(ctx, t.a)
		if errors.Is(err, events.ErrNotFound) {
			t.a.forget()
			return Reply{}, true // it was deleted; session.create makes it anew
		}
		if err != nil {
			return t.refused(asRejection(err)), false
		}
		if moved {
			return Reply{}, true
		}
	}
	return answer(), false
}

// retryOr turns an error of an append into the next attempt or a refusal.
func (t *transaction) retryOr(ctx context.Context, err error) (Reply, bool) {
	var wrong *events.WrongSequenceError
	switch {
	case err == nil:
		return Reply{}, true
	case errors.As(err, &wrong):
		if err := t.h.conflicted(ctx, t.a); err != nil && !errors.Is(err, events.ErrNotFound) {
			return t.refused(asRejection(err)), false
		}
		return Reply{}, true
	case errors.Is(err, events.ErrNotFound):
		t.a.forget()
		return Reply{}, true
	case errors.Is(err, events.ErrUnavailable):
		reply := t.refused(asRejection(err))
		t.a.forget()
		return reply, false
	}
	return t.refused(asRejection(err)), false
}

// accepted is the reply to a command that appended nothing or event e.
func (t *transaction) accepted(e *events.Event, result any) Reply {
	if result == nil {
		result = empty{}
	}
	raw, err := marshal(result)
	if err != nil {
		return t.refused(reject(CodeUnavailable, "spell the result: %v", err))
	}
	reply := Reply{OK: true, Session: t.r.Session, Command: t.r.ID, Sequence: t.a.sequence(), Result: raw}
	if e != nil {
		reply.Sequence = e.Seq
		reply.Event = &EventRef{Sequence: e.Seq, Type: e.Type}
	}
	return reply
}

// outcome is the reply to a command whose event e was appended.
func (t *transaction) outcome(after *State, e *events.Event) Reply {
	result, refused := Outcome(t.r.Name, after, e, t.h.leaseMS())
	if refused != nil {
		reply := t.refused(refused)
		reply.Sequence = e.Seq
		return reply
	}
	return t.accepted(e, result)
}

func (h *Handler) leaseMS() int64 { return h.opts.Leases.Duration().Milliseconds() }

// newID is a ULID that sorts after last.
func (h *Handler) newID(last string) string {
	var entropy [10]byte
	h.opts.Entropy(entropy[:])
	id, err := events.NextID(last, h.opts.Now(), entropy)
	if err != nil {
		h.opts.Logger.Error("clock gives no id", "err", err)
		return ulid.Make().String()
	}
	return id
}
