package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"culm/aggregate"
)

type pending struct {
	Session sessionName `arg:"" optional:"" help:"Only this session; all if left out."`
	Full    bool        `help:"Show long arguments whole."`
}

// Run shows everything that waits for a person, oldest first.
func (c *pending) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	items, err := a.allWaiting(ctx, b, string(c.Session))
	if err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		if c.Full {
			if err := a.complete(ctx, b, it); err != nil {
				return err
			}
		}
		if a.JSON {
			err = a.printJSON(it)
		} else {
			_, err = fmt.Fprint(a.out, blankLine(i), it.block(a, !c.Full))
		}
		if err != nil {
			return err
		}
	}
	if len(items) == 0 && !a.JSON {
		_, err = fmt.Fprintln(a.out, "nothing waits for a person")
	}
	return err
}

func blankLine(i int) string {
	if i == 0 {
		return ""
	}
	return "\n"
}

// allWaiting reads what waits in a session, or with "" in all, oldest first.
// Sessions are read a few at a time; one that is deleted meanwhile is passed
// over.
func (a *app) allWaiting(ctx context.Context, b backend, session string) ([]item, error) {
	if session != "" {
		return a.waitingIn(ctx, b, session)
	}
	infos, err := b.Log().Sessions(ctx)
	if err != nil {
		return nil, err
	}
	found := make([][]item, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, info := range infos {
		if strings.HasPrefix(info.Session, "_") {
			continue
		}
		g.Go(func() error {
			var err error
			found[i], err = a.waitingIn(gctx, b, info.Session)
			if r, ok := errors.AsType[*refusal](err); ok && r.why.Code == aggregate.CodeSessionNotFound {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	items := slices.Concat(found...)
	slices.SortStableFunc(items, func(x, y item) int { return x.Since.Compare(y.Since) })
	return items, nil
}
