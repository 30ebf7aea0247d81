package aggregate

import (
	"context"
	"errors"

	"culm/aggregate/policy"
	"culm/events"
)

// engineActor speaks where the engine itself finds a fact.
const engineActor = "_engine"

// append stores one event after the state's head and folds it in. On an error
// the state is as it was; see events.Log.Append for the errors.
func (t *transaction) append(ctx context.Context, d events.Data, r Request, env Env) (*events.Event, error) {
	s := t.a.state
	e, stored, err := t.encode(s, d, r, env)
	if err != nil {
		return nil, err
	}
	if err := t.h.opts.Log.Append(ctx, t.a.session, s.Head.Seq, e.Type, stored); err != nil {
		return nil, err
	}
	t.a.ticket = t.h.opts.Barrier.Mark()
	s.apply(&e, stored)
	t.fresh = true
	t.renew(ctx)
	t.warn(&e)
	if err := s.Validate(); err != nil {
		t.h.opts.Logger.Error("accepted command broke an invariant", "session", t.a.session, "seq", e.Seq, "err", err)
	}
	return &e, nil
}

// encode spells the event that d becomes after the head of s.
func (t *transaction) encode(s *State, d events.Data, r Request, env Env) (events.Event, []byte, error) {
	e := events.Event{
		ID: t.h.newID(s.Head.ID), Type: d.EventType(), Session: t.a.session, Time: env.Now, Seq: s.Head.Seq + 1, Birth: env.Birth,
		Actor: r.Actor, Command: r.ID, CommandDigest: r.Digest, Run: runOf(s, d), Prevhash: s.Head.Hash,
		Traceparent: r.Traceparent, Data: d,
	}
	stored, err := events.Encode(e)
	return e, stored, err
}

// warn tells the operator when the brakes are taken off.
func (t *transaction) warn(e *events.Event) {
	mode := ""
	switch d := e.Data.(type) {
	case events.SessionCreated:
		mode = d.Mode
	case events.SessionModeChanged:
		mode = d.Mode
	case events.PolicyModeChanged:
		mode = d.Mode
	}
	if mode == policy.ModeAuto {
		t.h.opts.Logger.Warn("mode auto: dangerous operations run without asking, only deny rules stop them", "session", e.Session, "actor", e.Actor)
	}
}

// runOf is the run that an event belongs to, "" for none.
func runOf(s *State, d events.Data) string {
	switch d := d.(type) {
	case events.RunRequested:
		return d.RunID
	case events.SessionCreated, events.SessionConfigured, events.SessionModeChanged, events.SessionPlanEntered,
		events.SessionPlanExited, events.MessageSubmitted, events.NoteAppended:
		return ""
	}
	if s.Run != nil {
		return s.Run.ID
	}
	return ""
}

// create makes the session's log and appends its first event.
func (t *transaction) create(ctx context.Context) (Reply, bool) {
	h := t.h
	if t.r.Expected != nil && *t.r.Expected != 0 {
		return t.refused(reject(CodeWrongExpectedSequence, "the session does not exist").with("actual", 0)), false
	}
	if err := h.opts.Headroom(); err != nil {
		return t.refused(reject(CodeUnavailable, "no room for another session: %v", err)), false
	}
	env, err := t.env(ctx, h.newID(""))
	if err != nil {
		return t.refused(asRejection(err)), false
	}
	d, refused := Decide(&State{}, t.cmd, env)
	switch {
	case refused != nil:
		return t.refused(refused), false
	case d.Event == nil:
		return t.accepted(nil, d.Result), false
	}
	// What cannot be stored must not leave an empty log behind. (An id that was
	// deleted before goes on at a longer sequence; the append then checks again.)
	_, stored, err := t.encode(&State{}, d.Event, t.r, env)
	if err == nil {
		err = h.opts.Log.Fits(t.a.session, 0, d.Event.EventType(), stored)
	}
	if err != nil {
		return t.refused(asRejection(err)), false
	}
	expected, err := h.opts.Log.Create(ctx, t.a.session)
	if err != nil {
		return t.refused(asRejection(err)), false
	}
	t.a.state = &State{Head: events.Head{Seq: expected}}
	e, err := t.append(ctx, d.Event, t.r, env)
	if err != nil {
		t.a.forget()
		return t.retryOr(ctx, err)
	}
	return t.outcome(t.a.state, e), false
}

// delete carries session.delete out: the log goes, nothing is appended.
func (t *transaction) delete(ctx context.Context) Reply {
	cmd, _ := t.cmd.(SessionDelete)
	t.a.forget()
	if err := t.h.load(ctx, t.a); err != nil && !errors.Is(err, ErrMalformedState) {
		return t.refused(asRejection(err))
	}
	birth, err := t.birth(ctx)
	switch {
	case err != nil:
		return t.refused(asRejection(err))
	case birth != cmd.Birth:
		return t.refused(reject(CodeBirthChanged, "the session was born %s, not %.32q", birth, cmd.Birth).with("birth", birth))
	case t.r.Expected != nil && *t.r.Expected != t.a.sequence():
		return t.refused(reject(CodeWrongExpectedSequence, "the session is at %d", t.a.sequence()).with("actual", t.a.sequence()))
	}
	reply := t.accepted(nil, nil)
	if err := t.h.opts.Log.Delete(ctx, t.a.session, birth); err != nil {
		t.a.forget()
		return t.refused(asRejection(err))
	}
	_ = t.h.opts.Leases.Release(ctx, t.a.session)
	t.a.forget()
	t.a.broken = nil
	t.a.ticket = t.h.opts.Barrier.Mark()
	return reply
}

// birth is that of the log's first event, so that a session that cannot be
// folded can still be deleted.
func (t *transaction) birth(ctx context.Context) (string, error) {
	if t.a.state != nil {
		return t.a.state.Head.Birth, nil
	}
	for r, err := range t.h.opts.Log.Read(ctx, t.a.session, 0, 0) {
		if err != nil {
			return "", err
		}
		e, _ := events.Decode(r.Payload)
		return e.Birth, nil
	}
	return "", events.ErrNotFound
}

// renew keeps the lease of the run whose holder has just been heard: any
// accepted runner command renews it. A failure is not the command's.
func (t *transaction) renew(ctx context.Context) {
	if _, ok := t.cmd.(runnerCommand); !ok || t.a.state == nil {
		return
	}
	run := t.a.state.Run
	if run == nil || run.Status != runLive {
		return
	}
	if err := t.h.opts.Leases.Renew(ctx, t.a.session, run.ID); err != nil {
		t.h.opts.Logger.Warn("lease not renewed", "session", t.a.session, "run", run.ID, "err", err)
	}
}

// facts appends one fact that the engine finds itself, if there is one: a run
// whose lease has run out, an item that nobody decided in time. It is an append
// of its own, made before the command is judged; found asks to look again.
func (t *transaction) facts(ctx context.Context, env Env) (found bool, err error) {
	s := t.a.state
	env.Actor, env.Command = engineActor, factCommand(s.Head.Seq)
	fact := Expire(s, env)
	if fact == nil && s.Run != nil && s.Run.Status == runLive {
		alive, err := t.h.opts.Leases.Alive(ctx, t.a.session, s.Run.ID)
		if err != nil {
			return false, err
		}
		if !alive {
			fact = Lapse(s, env)
		}
	}
	if fact == nil {
		return false, nil
	}
	e, err := t.append(ctx, fact, Request{Actor: engineActor}, env)
	if err != nil {
		return false, err
	}
	t.h.opts.Logger.Info("found by the engine", "session", t.a.session, "seq", e.Seq, "event", e.Type)
	return true, nil
}

// remember stores the rule of the decision before the decision itself; again
// asks to decide anew, by the policy that now holds the rule.
func (t *transaction) remember(ctx context.Context, rule events.PolicyRuleAdded) (again bool, err error) {
	stored, err := t.h.remember(ctx, t.r, rule)
	if stored {
		t.rule = rule.RuleID
	}
	return stored, err
}

// unremember takes back the rule of a decision that is refused after all: since
// the rule was stored, by this transaction or by one that a crash ended, something
// else came first.
func (t *transaction) unremember(ctx context.Context) {
	if t.rule == "" {
		t.rule = t.orphan(ctx)
	}
	if t.rule != "" {
		t.h.forgetRule(ctx, t.r, t.rule)
		t.rule = ""
	}
}

// orphan is the id of a rule that stands for the refused decision although that
// can never be stored, "" if there is none.
func (t *transaction) orphan(ctx context.Context) string {
	c, ok := t.cmd.(ApprovalDecide)
	if !ok || t.a.state == nil {
		return ""
	}
	id := t.a.state.ruleOfNone(c)
	if id == "" {
		return ""
	}
	config, err := t.h.config(ctx, c)
	if err != nil {
		t.h.opts.Logger.Warn("it is not known whether a rule stands without its decision", "session", t.a.session, "rule", id, "err", err)
		return ""
	}
	if _, there := config.Policy.Rule(id); !there {
		return ""
	}
	return id
}
