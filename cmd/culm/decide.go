package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

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
	Matcher      string `placeholder:"ID" help:"Which suggested matcher to remember (${default})." default:"exact_resource"`
	Note         string `help:"Why; it is stored."`
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
	return a.decide(ctx, verdict{aboutCall: c.aboutCall, decision: c.decision(), matcher: c.Matcher, note: c.Note, confirmed: c.Confirmed, yes: c.Yes, follow: c.Follow, flags: c.commandFlags})
}

type deny struct {
	aboutCall
	ForSession bool   `name:"session" help:"Deny what the matcher covers for this session, too."`
	Matcher    string `placeholder:"ID" help:"Which suggested matcher to remember (${default})." default:"exact_resource"`
	Note       string `help:"Why; it is stored, and the model reads it."`
	Yes        bool   `short:"y" help:"Do not ask."`
	Follow     bool   `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

func (c *deny) Run(ctx context.Context, a *app) error {
	decision := denyOnce
	if c.ForSession {
		decision = denySession
	}
	return a.decide(ctx, verdict{aboutCall: c.aboutCall, decision: decision, matcher: c.Matcher, note: c.Note, yes: c.Yes, follow: c.Follow, flags: c.commandFlags})
}

// verdict is what a person says about a call.
type verdict struct {
	aboutCall
	decision       string
	matcher        string // for a decision that is remembered
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
	if slices.Contains(it.Decisions, v.decision) {
		return nil
	}
	return refused(it.Session, &aggregate.Error{
		Code: aggregate.CodeDecisionNotAllowed, Message: fmt.Sprintf("this call takes %s", spoken(strings.Join(it.Decisions, ", "))),
	})
}

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

// agree shows the item and asks, where a person looks on and has not said --yes.
// A rule for everything needs a word of its own.
func (a *app) agree(ctx context.Context, it *item, v *verdict) error {
	if a.terminal && !a.JSON && !v.yes {
		fmt.Fprint(a.errOut, it.block(a, false))
	}
	if v.decision == allowGlobal && !v.confirmed {
		if !a.terminal {
			return usage(errors.New("a rule for every session of this installation needs --confirm-global"), nil)
		}
		if a.ask(ctx, fmt.Sprintf("Allow %s everywhere, in every session, from now on? Type global: ", v.scope(it))) != "global" {
			return errNothingDone
		}
		v.confirmed = true
		return nil
	}
	if !a.terminal || a.JSON || v.yes {
		return nil
	}
	question := "Run exactly this, once?"
	switch {
	case !v.allows():
		question = "Deny it?"
	case it.Kind == kindUnknown:
		question = "It may have happened already. Run exactly this again, once?"
	case v.decision != allowOnce:
		question = fmt.Sprintf("Run this, and from now on %s?", v.scope(it))
	}
	switch strings.ToLower(a.ask(ctx, question+" [y/N] ")) {
	case "y", "yes":
		return nil
	}
	return errNothingDone
}

var errNothingDone = errors.New("nothing was done")

// scope tells what a remembered decision covers.
func (v *verdict) scope(it *item) string {
	m := v.remembers(it)
	if m == nil {
		return show.Clean(v.matcher)
	}
	return fmt.Sprintf("%s for %s %s", show.Clean(it.Request.PermissionType), strings.ReplaceAll(show.Clean(m.Kind), "_", " "), show.Clip(exact(m.Pattern), listValue))
}

// ask reads one line of a person; "" at the end of the input.
func (a *app) ask(ctx context.Context, question string) string {
	fmt.Fprint(a.errOut, question)
	text, _ := a.line(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(a.errOut)
	}
	return text
}

// line reads one line of standard input; ok is false at its end and when ctx
// ends before.
func (a *app) line(ctx context.Context) (text string, ok bool) {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.in)
	}
	read := make(chan struct{})
	var line string
	var err error
	go func() { // nothing ends a read but its input
		defer close(read)
		line, err = a.lines.ReadString('\n')
	}()
	select {
	case <-read:
		return strings.TrimSpace(line), err == nil || line != ""
	case <-ctx.Done():
		return "", false
	}
}

var past = map[string]string{
	allowOnce: "allowed once", allowSession: "allowed for this session", allowWorkspace: "allowed in this workspace", allowGlobal: "allowed everywhere",
	denyOnce: "denied", denySession: "denied for this session",
}

func (v *verdict) told(it *item) string {
	text := fmt.Sprintf("%s: %s (call %s)", past[v.decision], show.Clip(show.Clean(it.Tool), 40), it.name())
	if m := v.remembers(it); m != nil {
		text += ", and from now on " + v.scope(it)
	}
	return text
}

// decided tells what became of an accepted decision or answer.
func (a *app) decided(ctx context.Context, b backend, it *item, r aggregate.Reply, text string, follow bool) error {
	var out struct {
		Replayed bool   `json:"replayed"`
		RunID    string `json:"run_id"`
		Blocked  string `json:"blocked"`
	}
	if len(r.Result) > 0 {
		if err := json.Unmarshal(r.Result, &out); err != nil {
			return fmt.Errorf("result of the decision: %w", err)
		}
	}
	switch {
	case out.Replayed:
		text = "nothing changes, the same was decided before"
		if before := a.became(ctx, b, it); before != "" {
			text += ": " + before
		}
	case out.Blocked != "":
		text += fmt.Sprintf("; it is stored, and waits for what becomes of the loop whose runner was lost: culm loop continue %[1]s or culm loop abandon %[1]s", it.Session)
	case out.RunID != "" && follow && r.Event != nil:
		if !a.JSON {
			fmt.Fprintln(a.out, text+"; the run goes on")
		}
		return a.follow(ctx, b, it.Session, out.RunID, r.Event.Sequence-1)
	case out.RunID != "":
		text += fmt.Sprintf("; the run goes on, culm watch %s shows it", it.Session)
	default:
		text += "; other calls are under way or still wait: culm pending " + it.Session
	}
	return a.tell(r, "%s", text)
}
