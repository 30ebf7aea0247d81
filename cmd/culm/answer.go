package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/internal/show"
)

type answer struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Words   []string    `arg:"" name:"text" help:"The answer in one argument, exactly as an option is written or, where that is allowed, in other words; - reads it from standard input. Where several items wait, the id of the call as an argument before it."`
	Follow  bool        `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

func (c *answer) Run(ctx context.Context, a *app) error {
	call, text := "", c.Words[len(c.Words)-1]
	switch len(c.Words) {
	case 1:
	case 2:
		call = c.Words[0]
	default:
		return usage(errors.New("an answer is one argument: put it between quotation marks"), nil)
	}
	text, err := a.text(text)
	if err != nil {
		return err
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	it, err := a.find(ctx, b, string(c.Session), call)
	if err != nil {
		return err
	}
	if it.Kind != kindQuestion {
		return refused(it.Session, &aggregate.Error{
			Code: aggregate.CodeTypedDecisionRequired, Message: "this is no question; " + strings.Join(it.commands(), " or ") + " decides it",
		})
	}
	return a.answerWith(ctx, b, it, text, "answered: "+show.Quote(text, 80), c.Follow, c.commandFlags)
}

// answerWith gives an answer to the question that was read.
func (a *app) answerWith(ctx context.Context, b backend, it *item, text, told string, follow bool, flags commandFlags) error {
	r, err := a.do(ctx, b, it.Session, "question.answer", data{"tool_call_id": it.ToolCallID, "answer": text}, flags)
	if err != nil {
		return a.failed(r, a.tooLate(ctx, b, it, err))
	}
	return a.decided(ctx, b, it, r, told, follow)
}

// option is the one that approves what a question proposes, or the other one;
// "" where the options are not of that kind.
func (it *item) option(approves bool) string {
	yes := -1
	for i, o := range it.Question.Options {
		o = strings.ToLower(o)
		if strings.HasPrefix(o, "approve") || strings.HasPrefix(o, "enter plan mode") {
			if yes >= 0 {
				return ""
			}
			yes = i
		}
	}
	switch {
	case yes < 0 || len(it.Question.Options) != 2:
		return ""
	case approves:
		return it.Question.Options[yes]
	}
	return it.Question.Options[1-yes]
}

// decideQuestion approves or denies what a question proposes, a plan say.
func (a *app) decideQuestion(ctx context.Context, b backend, it *item, v verdict) error {
	text := it.option(v.allows())
	switch {
	case text == "":
		return refused(it.Session, &aggregate.Error{
			Code: aggregate.CodeDecisionNotAllowed, Message: "this is a question, and wants an answer: " + strings.Join(it.commands(), " or "),
		})
	case v.decision != allowOnce && v.decision != denyOnce:
		return usage(errors.New("an answer to a question is not remembered; leave the scope out"), nil)
	case v.note != "":
		return usage(errors.New("an answer to a question takes no note"), nil)
	}
	if a.terminal && !a.JSON && !v.yes {
		fmt.Fprint(a.errOut, it.block(a, false))
		switch strings.ToLower(a.ask(ctx, fmt.Sprintf("Answer %s? [y/N] ", show.Quote(text, 80)))) {
		case "y", "yes":
		default:
			return errNothingDone
		}
	}
	return a.answerWith(ctx, b, it, text, "answered: "+show.Quote(text, 80), v.follow, v.flags)
}

type resolve struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Call    string      `arg:"" help:"Id of the call, as culm pending tells it."`
	Success *string     `xor:"outcome" placeholder:"TEXT" help:"It happened; this is its result, as the model will read it."`
	Failed  *string     `xor:"outcome" placeholder:"TEXT" help:"It did not happen, or went wrong; this is what the model will read."`
	Follow  bool        `short:"f" help:"Show what happens until the run ends."`
	commandFlags
}

// Help is shown by culm resolve --help.
func (resolve) Help() string {
	return `For a call that was started and whose outcome was lost with its runner; exactly one of --success and --failed tells it. Look first what it did; it is never run again by itself. To have it run again, approve it instead.`
}

func (c *resolve) Run(ctx context.Context, a *app) error {
	if c.Success == nil && c.Failed == nil { // not "required": the usage line would ask for both
		return usage(errors.New("missing: --success=TEXT or --failed=TEXT"), nil)
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	it, err := a.find(ctx, b, string(c.Session), c.Call)
	if err != nil {
		return err
	}
	if it.Kind != kindUnknown {
		return refused(it.Session, &aggregate.Error{
			Code: aggregate.CodeTypedDecisionRequired, Message: "this call has not run; " + strings.Join(it.commands(), " or ") + " decides it",
		})
	}
	body := data{"tool_call_id": it.ToolCallID, "generation": it.Generation, "success": c.Success != nil}
	word := "failed"
	if c.Success != nil {
		body["content"], word = *c.Success, "succeeded"
	} else {
		body["content"] = *c.Failed
	}
	r, err := a.do(ctx, b, it.Session, "tool.resolve", body, c.commandFlags)
	if err != nil {
		return a.failed(r, a.tooLate(ctx, b, it, err))
	}
	return a.decided(ctx, b, it, r, fmt.Sprintf("stored: %s (call %s) %s", show.Clip(show.Clean(it.Tool), 40), it.name(), word), c.Follow)
}
