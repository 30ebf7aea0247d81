package aggregate

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"culm/events"
)

// Sweep looks after the sessions that are in memory: a live run whose lease has
// run out is interrupted, and owed is called with the session's Step, from two
// goroutines at once. It goes on after an error.
func (h *Handler) Sweep(ctx context.Context, owed func(Step)) error {
	return h.each(ctx, h.cache.names(), owed)
}

// Survey looks at every session of the log once, as after a start: dead runs
// are interrupted, and owed is called with the session's Step.
func (h *Handler) Survey(ctx context.Context, owed func(Step)) error {
	infos, err := h.opts.Log.Sessions(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Session
	}
	return h.each(ctx, names, owed)
}

// each lapses dead runs of the named sessions, a few at a time.
func (h *Handler) each(ctx context.Context, names []string, owed func(Step)) error {
	var g errgroup.Group
	g.SetLimit(2)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			step, err := h.look(ctx, name)
			switch {
			case errors.Is(err, events.ErrNotFound), errors.Is(err, ErrMalformedState):
				return nil
			case err == nil && owed != nil:
				owed(step)
			}
			return err
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// look appends what the engine finds itself and says what is owed.
func (h *Handler) look(ctx context.Context, session string) (Step, error) {
	return h.step(ctx, session, func(ctx context.Context, a *actor) error {
		return (&transaction{h: h, a: a}).factsNow(ctx)
	})
}

// factsNow is facts against concurrent writers, until nothing is found.
func (t *transaction) factsNow(ctx context.Context) error {
	for range maxAttempts {
		if t.a.state == nil { // deleted since
			return events.ErrNotFound
		}
		env, err := t.env(ctx, t.a.state.Head.Birth)
		if err != nil {
			return err
		}
		found, err := t.facts(ctx, env)
		var wrong *events.WrongSequenceError
		switch {
		case errors.As(err, &wrong):
			if err := t.h.conflicted(ctx, t.a); err != nil {
				return err
			}
		case err != nil || !found:
			return err
		}
	}
	return events.ErrUnavailable
}
