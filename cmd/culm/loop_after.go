package main

import (
	"context"
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/internal/show"
)

// aftermath is what a person says about a loop that blocks its session.
type aftermath struct {
	Session     sessionName `arg:"" help:"Name of the session."`
	Generation  string      `placeholder:"ID" help:"Only this loop; by default the one there is."`
	Acknowledge bool        `name:"acknowledge-unknown" aliases:"ack" help:"I know that the outcome of the last step is not known (--ack for short)."`
	commandFlags
}

// body asks the engine how the loop stands and makes the command. It wants the
// acknowledgement only where there is something to acknowledge; any other
// loop's command says it, too, but holds for the state that was read alone.
func (c *aftermath) body(ctx context.Context, a *app, b backend) (data, *view, error) {
	v, err := a.viewed(ctx, b, string(c.Session))
	if err != nil {
		return nil, nil, err
	}
	l := v.Loop
	switch {
	case l == nil:
		return nil, nil, refused(string(c.Session), &aggregate.Error{Code: aggregate.CodeNoLoop, Message: "the session has no loop"})
	case c.Acknowledge:
	case v.loopBlocks():
		return nil, nil, usage(fmt.Errorf("the loop blocks the session: %s; look at it (culm log %s), then say so with --acknowledge-unknown (--ack)", v.blockedWhy(), c.Session), nil)
	case c.Expect == nil:
		c.Expect = &v.reply.Sequence
	}
	if c.Generation == "" {
		c.Generation = l.Generation
	}
	return data{"generation": c.Generation, "acknowledge_unknown": true}, v, nil
}

type loopContinue struct {
	aftermath
	Follow bool `short:"f" help:"Show what happens until the loop ends."`
}

// Help is shown by culm loop continue --help.
func (loopContinue) Help() string {
	return `Begins a new loop with the iterations and rounds that the blocked one has left: its run was interrupted, or ended when a call had to wait for a person. What the last step did may not be known: look first (culm log SESSION), decide what waits (culm pending SESSION), then say that you know with --acknowledge-unknown.`
}

func (c *loopContinue) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	body, _, err := c.body(ctx, a, b)
	if err != nil {
		return err
	}
	return a.requestOn(ctx, b, request{session: string(c.Session), name: "loop.continue", body: body, follow: c.Follow, flags: c.commandFlags})
}

type loopAbandon struct{ aftermath }

// Help is shown by culm loop abandon --help.
func (loopAbandon) Help() string {
	return `The loop stays as it ended and no longer stands in the way of other work. Where the outcome of its last step is not known, say that you know with --acknowledge-unknown.`
}

func (c *loopAbandon) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	body, v, err := c.body(ctx, a, b)
	if err != nil {
		return err
	}
	r, err := a.do(ctx, b, string(c.Session), "loop.abandon", body, c.commandFlags)
	switch {
	case err != nil:
		return a.failed(r, err)
	case r.Event == nil && v.Loop.Abandoned:
		return a.tell(r, "the loop was abandoned before; nothing changes")
	case r.Event == nil:
		return a.tell(r, "nothing to abandon: the loop is %s and blocks nothing", strings.ReplaceAll(show.Clean(string(v.Loop.Status)), "_", " "))
	}
	return a.tell(r, "loop abandoned; session %s is free for other work", c.Session)
}
