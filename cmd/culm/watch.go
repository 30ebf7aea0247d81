package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"culm/events"
)

type watch struct {
	Session sessionName `arg:"" optional:"" help:"Only this session; all if left out."`
	From    uint64      `placeholder:"SEQ" help:"Begin with this event of the session; by default with what is new."`
	Deltas  bool        `help:"Show what models and tools stream, too; it is stored nowhere."`
	Ask     bool        `name:"approvals" help:"Ask here about everything that waits for a person, and decide it as you say."`
}

// Run shows events until it is interrupted, which is its proper end.
func (c *watch) Run(ctx context.Context, a *app) error {
	if c.From > 0 && c.Session == "" {
		return usage(errors.New("--from counts the events of one session; name it"), nil)
	}
	if c.Ask && a.JSON {
		return usage(errors.New("--approvals talks to a person, --json to a program"), nil)
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	session := string(c.Session)
	if session != "" {
		if err := a.exists(ctx, b, session); err != nil {
			return err
		}
	}
	c.announce(a)
	s := newScreen(a, a.style())
	if c.From != 1 {
		s.learn(ctx, b, session)
	}
	opts := events.FollowOptions{Session: session}
	if c.From > 0 {
		opts.From = map[string]uint64{session: c.From - 1}
	}
	g, gctx := errgroup.WithContext(ctx)
	handle := s.record
	if c.Ask {
		q := newAsker(a, b, session, s)
		handle = q.record
		g.Go(func() error { return q.run(gctx) })
	}
	g.Go(func() error { return b.Feed().Follow(gctx, opts, handle) })
	if c.Deltas {
		g.Go(func() error { return b.Deltas(gctx, session, s.delta) })
	}
	if err := g.Wait(); ctx.Err() == nil && !errors.Is(err, errInputEnded) {
		return err
	}
	return nil
}

// announce says what is waited for: nothing else may be seen for long.
func (c *watch) announce(a *app) {
	what := "every session"
	if c.Session != "" {
		what = "session " + string(c.Session)
	}
	ask := ""
	if c.Ask {
		ask = ", and asking about what waits"
	}
	fmt.Fprintf(a.errOut, "culm: watching %s at %s%s; Ctrl-C ends it\n", what, redacted(a.NATS), ask)
}

// exists refuses to watch a session that is not there: more likely its name is
// mistyped.
func (a *app) exists(ctx context.Context, b backend, session string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	_, err := b.Log().Last(ctx, session)
	return notFound(session, err)
}
