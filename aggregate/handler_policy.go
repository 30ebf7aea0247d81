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
	mu     sync.Mutex
	folded policy.Policy
	base   policy.Policy // what folded began with
	head   events.Head
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
	p := &h.policies
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head.Seq == 0 {
		p.folded, p.base = snapshot.Policy, snapshot.Policy
	}
	if needsPolicy(c) {
		if err := h.refreshPolicy(ctx, p); err != nil {
			return snapshot, fmt.Errorf("policy: %w", err)
		}
	}
	snapshot.Policy, snapshot.Mode, snapshot.PolicyRevision = p.folded, p.folded.Mode(), p.folded.Revision()
	return snapshot, nil
}

// refreshPolicy folds on what the settings session has gained.
func (h *Handler) refreshPolicy(ctx context.Context, p *policyFold) error {
	last, err := h.opts.Log.Last(ctx, SettingsSession)
	switch {
	case errors.Is(err, events.ErrNotFound):
		return nil
	case err != nil:
		return err
	case last == p.head.Seq:
		return nil
	case last < p.head.Seq:
		return fmt.Errorf("%s: %w", SettingsSession, errLogShrank)
	}
	folded, head := p.folded, p.head
	for r, err := range h.opts.Log.Read(ctx, SettingsSession, head.Seq, last) {
		if err != nil {
			return err
		}
		e, err := events.Decode(r.Payload)
		if err == nil {
			err = head.Check(&e, r.Seq)
		}
		if err != nil {
			return malformed(r, err)
		}
		folded, head = folded.Evolve(e.Data, e.Seq), head.Next(&e, r.Payload)
	}
	p.folded, p.head = folded, head
	return nil
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
