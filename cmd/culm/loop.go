package main

import (
	"context"
	"fmt"
)

type loopStart struct {
	prompting
	Iterations uint32 `short:"n" required:"" placeholder:"N" help:"How often to repeat the prompt, 1 to 100."`
	Rounds     uint32 `placeholder:"N" help:"Most rounds of all iterations together, up to 1000; by default ten for each iteration."`
	OnPark     string `enum:"end,pause" default:"pause" placeholder:"WHAT" help:"What a call that waits for a person does to the loop: pause, it goes on after the decision; or end, the call still runs, and then the loop is blocked until somebody continues or abandons it (${default})."`
	MaxRounds  uint32 `placeholder:"N" help:"Most rounds of the run that the loop is; the lower of this and --rounds holds."`
	budget
	Follow bool `short:"f" help:"Show what happens until the loop ends."`
	commandFlags
}

// maxLoopRounds is the highest round cap there is (docs/rules.md, loop bounds).
const maxLoopRounds = 1000

func (c *loopStart) Run(ctx context.Context, a *app) error {
	prompt, err := c.prompt(a)
	if err != nil {
		return err
	}
	if c.Rounds == 0 {
		c.Rounds = min(10*c.Iterations, maxLoopRounds)
	}
	body := some(data{"prompt": prompt, "budget": c.budget.data(c.MaxRounds)})
	body["loop"] = data{"max_iterations": c.Iterations, "max_total_rounds": c.Rounds, "on_park": c.OnPark}
	return a.request(ctx, request{
		session: string(c.Session), name: "run.request", body: body,
		follow: c.Follow, prompted: prompt != "", flags: c.commandFlags,
	})
}

type loopStop struct {
	Session sessionName `arg:"" help:"Name of the session."`
	commandFlags
}

func (c *loopStop) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := a.do(ctx, b, string(c.Session), "loop.stop", data{}, c.commandFlags)
	if err != nil {
		return a.failed(r, err)
	}
	text := "stop stored; the round that is under way may end, none after it starts"
	if r.Event == nil {
		text = a.stopsNothing(ctx, b, string(c.Session))
	}
	return a.tell(r, "%s", text)
}

type loopStatus struct {
	Session sessionName `arg:"" help:"Name of the session."`
}

func (c *loopStatus) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	v, err := a.viewed(ctx, b, string(c.Session))
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
		return a.printJSON(v.rawLoop)
	case v.Loop == nil:
		_, err = fmt.Fprintf(a.out, "no loop yet; culm loop start %s \"…\" --iterations N begins one\n", c.Session)
	default:
		_, err = fmt.Fprint(a.out, v.loopLines())
	}
	return err
}
