package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"culm/aggregate"
	"culm/projection"
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

// allWaiting reads what waits in a session, or with "" in all, oldest first. Of
// one session an engine is asked, of all a projector, which may be a moment
// behind; where there is none, an engine for every session.
func (a *app) allWaiting(ctx context.Context, b backend, session string) ([]item, error) {
	if session != "" {
		return a.waitingIn(ctx, b, session)
	}
	items, err := a.viewedWaiting(ctx, b)
	if withoutViews(err) && !noEngine(err) {
		return a.readWaiting(ctx, b)
	}
	return items, err
}

// viewedWaiting reads what waits from the views.
func (a *app) viewedWaiting(ctx context.Context, b backend) (items []item, err error) {
	var cut bool
	for it, err := range all(0, &cut, func(l projection.List) (projection.Page[projection.ApprovalItem], error) {
		return query[projection.ApprovalItem](ctx, a, b, "approvals.list", "", projection.ApprovalsQuery{List: l})
	}) {
		if err != nil {
			return nil, err
		}
		if it.Omitted { // too large for a page of the view
			whole, err := a.waitingIn(ctx, b, it.Session)
			if err != nil {
				return nil, err
			}
			whole = slices.DeleteFunc(whole, func(w item) bool { return w.MessageID != it.MessageID })
			items = append(items, whole...)
			continue
		}
		one, err := itemOf(it)
		if err != nil {
			return nil, err
		}
		items = append(items, one)
	}
	return items, nil
}

// itemOf is the item that a view tells of.
func itemOf(v projection.ApprovalItem) (item, error) {
	it := item{
		Session: v.Session, ToolCallID: v.ToolCallID, MessageID: v.MessageID, Kind: v.Kind, Tool: v.Name, Generation: v.Generation, Since: v.Since,
		Sequence: uint64(max(0, v.SinceSeq)), Arguments: v.Arguments, ArgumentsBytes: int(v.ArgumentsBytes), ArgumentsDigest: v.ArgumentsDigest,
	}
	if len(v.Question) > 0 {
		if err := json.Unmarshal(v.Question, &it.Question); err != nil {
			return it, fmt.Errorf("question of %s: %w", it.name(), err)
		}
	}
	if len(v.Request) > 0 {
		if err := json.Unmarshal(v.Request, &it.Request); err != nil {
			return it, fmt.Errorf("request of %s: %w", it.name(), err)
		}
	}
	it.decisions()
	return it, nil
}

// readWaiting asks an engine about every session, a few at a time; one that is
// deleted meanwhile is passed over.
func (a *app) readWaiting(ctx context.Context, b backend) ([]item, error) {
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
