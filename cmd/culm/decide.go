package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/internal/show"
)

// Decisions of approval.decide.
const (
	allowOnce      = policy.AllowOnce
	allowSession   = policy.AllowSession
	allowWorkspace = policy.AllowWorkspace
	allowGlobal    = policy.AllowGlobal
	denyOnce       = policy.DenyOnce
	denySession    = policy.DenySession
)

// outdated are the refusals that say: it was another item, or somebody was faster.
var outdated = map[string]bool{
	aggregate.CodeAlreadyDecided: true, aggregate.CodeNoPendingQuestion: true, aggregate.CodeGenerationChanged: true,
	aggregate.CodePendingQuestionMismatch: true, aggregate.CodeSessionClosed: true,
}

// aboutCall is what every decision begins with.
type aboutCall struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Call    string      `arg:"" optional:"" help:"Id of the call, as culm pending tells it; may be left out while exactly one item waits."`
}

type approve struct {
	aboutCall
	ForSession   bool   `name:"session" xor:"scope" help:"Allow what the matcher covers for this session, too."`
	ForWorkspace bool   `name:"workspace" xor:"scope" help:"Allow it in every session of the workspace from now on."`
	Everywhere   bool   `name:"global" xor:"scope" help:"Allow it everywhere from now on; asks once more, or takes --confirm-global."`
	Confirmed    bool   `name:"confirm-global" help:"I mean it: everywhere."`
	Matcher      string `placeholder:"ID" help:"With --session, --workspace or --global: which suggested matcher to remember (exact_resource)."`
	Note         string `placeholder:"TEXT" help:"Why; it is stored."`
	Yes          bool   `short:"y" help:"Do not ask."`
	Follow       bool   `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

// Help is shown by culm approve --help.
func (approve) Help() string {
	return `Lets one waiting call run, once, exactly as shown: the decision names the request that was read, and is refused if another has taken its place. A plan is approved the same way. On a terminal the call is shown first, whole, and you are asked.`
}

func (c *approve) decision() string {
	switch {
	case c.ForSession:
		return allowSession
	case c.ForWorkspace:
		return allowWorkspace
	case c.Everywhere:
		return allowGlobal
	}
	return allowOnce
}

func (c *approve) Run(ctx context.Context, a *app) error {
	if c.Matcher != "" && c.decision() == allowOnce {
		return usage(errors.New("--matcher needs --session, --workspace or --global"), nil)
	}
	return a.decide(ctx, verdict{aboutCall: c.aboutCall, decision: c.decision(), matcher: c.Matcher, note: c.Note, confirmed: c.Confirmed, yes: c.Yes, follow: c.Follow, flags: c.commandFlags})
}

type deny struct {
	aboutCall
	ForSession bool   `name:"session" help:"Deny what the matcher covers for this session, too."`
	Matcher    string `placeholder:"ID" help:"With --session: which suggested matcher to remember (exact_resource)."`
	Note       string `placeholder:"TEXT" help:"Why; it is stored, and the model reads it."`
	Yes        bool   `short:"y" help:"Do not ask."`
	Follow     bool   `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

func (c *deny) Run(ctx context.Context, a *app) error {
	decision := denyOnce
	if c.ForSession {
		decision = denySession
	} else if c.Matcher != "" {
		return usage(errors.New("--matcher needs --session"), nil)
	}
	return a.decide(ctx, verdict{aboutCall: c.aboutCall, decision: decision, matcher: c.Matcher, note: c.Note, yes: c.Yes, follow: c.Follow, flags: c.commandFlags})
}

// verdict is what a person says about a call.
type verdict struct {
	aboutCall
	decision       string
	matcher        string // for a decision that is remembered; "" is matchExact
	note           string
	confirmed, yes bool
	follow         bool
	flags          commandFlags
}

func (v *verdict) allows() bool { return policy.Allows(v.decision) }

// decide finds the item, shows it where somebody looks on, and decides exactly
// what was shown.
func (a *app) decide(ctx context.Context, v verdict) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var revision uint64 // of the policy, seen before the item
	if policy.Durable(v.decision) {
		if revision, err = a.policyRevision(ctx, b); err != nil {
			return err
		}
	}
	it, err := a.find(ctx, b, string(v.Session), v.Call)
	if err != nil {
		return err
	}
	if it.Kind == kindQuestion {
		return a.decideQuestion(ctx, b, it, v)
	}
	if err := v.fits(it); err != nil {
		return err
	}
	if err := a.agree(ctx, it, &v); err != nil {
		return err
	}
	r, err := a.do(ctx, b, it.Session, "approval.decide", v.body(it, revision), v.flags)
	if err != nil {
		return a.failed(r, a.tooLate(ctx, b, it, err))
	}
	return a.decided(ctx, b, it, r, v.told(it), v.follow)
}

// fits refuses what the item does not allow, before anybody is asked.
func (v *verdict) fits(it *item) error {
	if !slices.Contains(it.Decisions, v.decision) {
		return refused(it.Session, &aggregate.Error{
			Code: aggregate.CodeDecisionNotAllowed, Message: fmt.Sprintf("this call takes %s", spoken(strings.Join(it.Decisions, ", "))),
		})
	}
	if !policy.Remembered(v.decision) {
		return nil
	}
	v.matcher = cmp.Or(v.matcher, matchExact)
	if it.Request == nil || v.remembers(it) != nil {
		return nil
	}
	var offered []string
	for _, m := range it.Request.SuggestedMatchers {
		offered = append(offered, m.ID)
	}
	return refused(it.Session, &aggregate.Error{
		Code: aggregate.CodeUnknownMatcher, Message: fmt.Sprintf("this call offers %s to remember, not %s", cmp.Or(oneOf(offered), "nothing"), show.Clip(show.Clean(v.matcher), 80)),
	})
}

// matchExact is the matcher that is remembered where none is named.
const matchExact = policy.ExactResource

// body is the command: it names the request that was read.
func (v *verdict) body(it *item, revision uint64) data {
	body := data{"tool_call_id": it.ToolCallID, "generation": it.Generation, "decision": v.decision}
	if v.note != "" {
		body["note"] = v.note
	}
	if policy.Remembered(v.decision) {
		body["matcher_id"] = v.matcher
	}
	if policy.Durable(v.decision) {
		body["expected_policy_revision"] = revision
	}
	if v.decision == allowGlobal {
		body["confirm_global"] = v.confirmed
	}
	return body
}

// remembers is the matcher that the decision names, nil for none.
func (v *verdict) remembers(it *item) *events.Matcher {
	if it.Request == nil || !policy.Remembered(v.decision) {
		return nil
	}
	for _, m := range it.Request.SuggestedMatchers {
		if m.ID == v.matcher {
			return &m
		}
	}
	return nil
}
