package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"culm/aggregate/policy"
	"culm/events"
)

// policyFold is the installation's policy as this engine knows it: the
// configuration with the events of the settings session folded over it.
type policyFold struct {
	mu      sync.Mutex // held for moments only, never while the log is read
	folded  policy.Policy
	head    events.Head
	next    *policyRead // will begin when the one under way has ended
	reading bool
}

// policyRead is one look at the settings session, shared by all who came before
// it began.
type policyRead struct {
	done chan struct{}
	err  error // set before done is closed
}

// needsPolicy are the commands that are judged by the newest policy.
func needsPolicy(c Command) bool {
	switch c.(type) {
	case ToolAuthorize, ToolPark, ToolStart, ReplayStart, ApprovalDecide, QuestionAnswer,
		SessionCreate, SessionSetMode, SessionEnterPlan, SessionExitPlan:
		return true
	}
	return false
}

// config is the snapshot that the command is judged by. For a command that
// rests on the policy it is made sure that the newest one is known: what
// another engine has stored by now counts.
func (h *Handler) config(ctx context.Context, c Command) (Config, error) {
	snapshot := h.opts.Config()
	snapshot.LeaseMS = h.leaseMS()
	if needsPolicy(c) {
		if err := h.newestPolicy(ctx, snapshot.Policy); err != nil {
			return snapshot, fmt.Errorf("policy: %w", err)
		}
	}
	p := &h.policies
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(snapshot.Policy)
	snapshot.Policy, snapshot.Mode, snapshot.PolicyRevision = p.folded, p.folded.Mode(), p.folded.Revision()
	return snapshot, nil
}

// begin sets what the events are folded over, before the first of them.
func (p *policyFold) begin(base policy.Policy) {
	if p.head.Seq == 0 {
		p.folded = base
	}
}

// newestPolicy returns once a read of the settings session that began after
// this call has been folded. Callers that come while one is under way share
// the next.
func (h *Handler) newestPolicy(ctx context.Context, base policy.Policy) error {
	p := &h.policies
	p.mu.Lock()
	p.begin(base)
	if p.next == nil {
		p.next = &policyRead{done: make(chan struct{})}
	}
	r := p.next
	if !p.reading {
		p.reading = true
		go h.readPolicy()
	}
	p.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readPolicy does one read after the other while anybody waits for one.
func (h *Handler) readPolicy() {
	p := &h.policies
	for {
		p.mu.Lock()
		r := p.next
		p.next, p.reading = nil, r != nil
		folded, head := p.folded, p.head
		p.mu.Unlock()
		if r == nil {
			return
		}
		ctx, cancel := h.bounded(context.Background())
		folded, head, r.err = h.gainedPolicy(ctx, folded, head)
		cancel()
		p.mu.Lock()
		if r.err == nil {
			p.folded, p.head = folded, head
		}
		p.mu.Unlock()
		close(r.done)
	}
}

// gainedPolicy folds on what the settings session has gained.
func (h *Handler) gainedPolicy(ctx context.Context, folded policy.Policy, head events.Head) (policy.Policy, events.Head, error) {
	last := uint64(0) // all, the first time: that finds a lost end
	if head.Seq > 0 {
		var err error
		last, err = h.last(ctx, SettingsSession, head.Seq)
		switch {
		case errors.Is(err, events.ErrNotFound):
			return folded, head, nil
		case err != nil:
			return folded, head, err
		case last < head.Seq:
			return folded, head, fmt.Errorf("%s: %w", SettingsSession, errLogShrank)
		case last == head.Seq:
			return folded, head, nil
		}
	}
	begun, start := folded, head
	for r, err := range h.opts.Log.Read(ctx, SettingsSession, head.Seq, last) {
		if errors.Is(err, events.ErrNotFound) {
			return begun, start, nil
		}
		if err != nil {
			return folded, head, err
		}
		e, err := events.Decode(r.Payload)
		if err == nil {
			err = head.Check(&e, r.Seq)
		}
		if err != nil {
			return folded, head, malformed(r, err)
		}
		folded, head = folded.Evolve(e.Data, e.Seq), head.Next(&e, r.Payload)
	}
	return folded, head, nil
}

// remember stores the rule of a decision in the settings session, unless it is
// there; stored says that this call did it. The rule's id follows from the
// decision, so that a retry finds it.
func (h *Handler) remember(ctx context.Context, r Request, rule events.PolicyRuleAdded) (stored bool, err error) {
	reply, err := h.internal(ctx, Request{Actor: r.Actor, Traceparent: r.Traceparent}, PolicyAddRule{
		RuleID: rule.RuleID, Effect: rule.Effect, Scope: rule.Scope, Workspace: rule.Workspace,
		PermissionType: rule.PermissionType, Matcher: rule.Matcher,
	})
	return err == nil && reply.Event != nil, err
}

// forgetRule takes a rule back whose decision did not come about.
func (h *Handler) forgetRule(ctx context.Context, r Request, id string) {
	if _, err := h.internal(ctx, Request{Actor: r.Actor, Traceparent: r.Traceparent}, PolicyRemoveRule{RuleID: id}); err != nil {
		h.opts.Logger.Error("a rule stands whose decision was not stored", "rule", id, "err", err)
	}
}

// internal judges a command of the engine's own for the settings session, and
// waits for its outcome.
func (h *Handler) internal(ctx context.Context, r Request, c Command) (Reply, error) {
	r.Session = SettingsSession
	out := make(chan Reply, 1)
	h.submit(SettingsSession, func(a *actor) {
		ctx, cancel := h.bounded(ctx)
		defer cancel()
		r.ID = h.newID("")
		out <- (&transaction{h: h, a: a, r: r, cmd: c}).run(ctx)
	}, func(no *Rejection) { out <- h.refusal(r, 0, no) })
	reply := <-out
	if reply.Error != nil {
		return reply, &Rejection{Code: reply.Error.Code, Message: reply.Error.Message, Details: reply.Error.Details}
	}
	return reply, nil
}
