package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/internal/show"
)

type send struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Text    string      `arg:"" help:"The message; - reads it from standard input."`
	commandFlags
}

func (c *send) Run(ctx context.Context, a *app) error {
	content, err := a.text(c.Text)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("message stored; culm run %s has it answered", c.Session)
	return a.command(ctx, string(c.Session), "message.submit", data{"content": content}, c.commandFlags, text, text)
}

// text reads a text argument, from standard input for "-".
func (a *app) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(a.in, 1<<20+1))
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	if len(b) > 1<<20 {
		return "", errors.New("standard input: more than 1 MiB")
	}
	if !utf8.Valid(b) {
		return "", errors.New("standard input is not UTF-8: it would be stored as something else")
	}
	return strings.TrimRight(string(b), "\n"), nil
}

// budget bounds a run; 0 is no bound.
type budget struct {
	MaxTokens    uint64 `placeholder:"N" help:"Most model tokens of the run."`
	MaxToolCalls uint32 `placeholder:"N" help:"Most tool calls of the run."`
	MaxSubagents uint32 `placeholder:"N" help:"Most subagents of the run."`
}

func (b budget) data(rounds uint32) data {
	return some(data{"max_rounds": rounds, "max_total_tokens": b.MaxTokens, "max_tool_calls": b.MaxToolCalls, "max_subagents": b.MaxSubagents})
}

// prompting is how a person gives a prompt.
type prompting struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Text    string      `arg:"" optional:"" name:"prompt" help:"What to do; - reads it from standard input. Left out, the last message is the prompt."`
	Prompt  string      `placeholder:"TEXT" help:"The same, as a flag."`
}

func (p prompting) prompt(a *app) (string, error) {
	switch {
	case p.Text != "" && p.Prompt != "":
		return "", usage(errors.New("the prompt is given twice, as argument and as flag"), nil)
	case p.Text != "":
		return a.text(p.Text)
	default:
		return a.text(p.Prompt)
	}
}

type run struct {
	prompting
	MaxRounds uint32 `default:"50" placeholder:"N" help:"Most rounds of the run, 0 for no bound: a model may never stop by itself (${default})."`
	budget
	Follow bool `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

func (c *run) Run(ctx context.Context, a *app) error {
	prompt, err := c.prompt(a)
	if err != nil {
		return err
	}
	return a.request(ctx, request{
		session: string(c.Session), name: "run.request", body: some(data{"prompt": prompt, "budget": c.budget.data(c.MaxRounds)}),
		follow: c.Follow, prompted: prompt != "", flags: c.commandFlags,
	})
}

type resume struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Follow  bool        `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

func (c *resume) Run(ctx context.Context, a *app) error {
	return a.request(ctx, request{session: string(c.Session), name: "run.resume", body: data{}, follow: c.Follow, flags: c.commandFlags})
}

type cancel struct {
	Session sessionName `arg:"" help:"Name of the session."`
	RunID   string      `name:"run" placeholder:"ID" help:"Only this run; by default the one there is."`
	commandFlags
}

func (c *cancel) Run(ctx context.Context, a *app) error {
	return a.command(ctx, string(c.Session), "run.cancel", some(data{"run_id": c.RunID}), c.commandFlags,
		"cancel stored; nothing more of the run starts", "there is nothing to cancel any more")
}

// request is a command that asks for a run.
type request struct {
	session, name string
	body          data
	follow        bool
	prompted      bool // a prompt goes with it, which is lost if a run is under way
	flags         commandFlags
}

// outcome is the result of a request.
type outcome struct {
	Outcome string `json:"outcome"` // requested, already_running or nothing_pending
	RunID   string `json:"run_id"`
}

func (a *app) request(ctx context.Context, q request) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return a.requestOn(ctx, b, q)
}

// requestOn sends the command, tells what became of it and follows the run.
func (a *app) requestOn(ctx context.Context, b backend, q request) error {
	r, err := a.do(ctx, b, q.session, q.name, q.body, q.flags)
	if err != nil {
		return a.failed(r, a.whyBlocked(ctx, b, err))
	}
	o, err := outcomeOf(r)
	if err != nil {
		return err
	}
	if o.Outcome == "already_running" && q.prompted {
		return fmt.Errorf("%s, so the prompt was not stored; wait for it or cancel it (culm cancel %s)", a.running(ctx, b, q.session), q.session)
	}
	if o.Outcome == "nothing_pending" {
		return a.tell(r, "%s", a.nothingPending(ctx, b, q.session))
	}
	if !q.follow && o.Outcome == "already_running" {
		return a.tell(r, "%s; culm watch %s shows it", a.running(ctx, b, q.session), q.session)
	}
	if !q.follow {
		return a.tell(r, "run requested; culm watch %[1]s shows it, culm cancel %[1]s ends it", q.session)
	}
	from := r.Sequence
	if r.Event != nil {
		from = r.Event.Sequence - 1
	}
	return a.follow(ctx, b, q.session, o.RunID, from)
}

func outcomeOf(r aggregate.Reply) (o outcome, err error) {
	if len(r.Result) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(r.Result, &o); err != nil {
		return o, fmt.Errorf("result of the request: %w", err)
	}
	return o, nil
}

// nothingPending says why there is nothing to go on with: calls that wait for a
// person are for the person.
func (a *app) nothingPending(ctx context.Context, b backend, session string) string {
	if v, err := a.viewed(ctx, b, session); err == nil && len(v.Pending) > 0 {
		return fmt.Sprintf("nothing goes on until you decide: %s for a person; culm pending %s", waitingCalls(len(v.Pending)), session)
	}
	return fmt.Sprintf("nothing is pending; culm run %s \"…\" gives it something to do", session)
}

// waitingCalls is "1 call waits" or "2 calls wait".
func waitingCalls(n int) string {
	return show.Count(n, "call") + when(n == 1, " waits") + when(n != 1, " wait")
}

// running says how the run stands that is there already. Without an answer it is
// taken to be under way.
func (a *app) running(ctx context.Context, b backend, session string) string {
	if v, err := a.viewed(ctx, b, session); err == nil && v.requested() {
		return "a run is requested already, and no runner has taken it yet"
	}
	return "a run is under way already"
}
