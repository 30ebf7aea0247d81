package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/events"
	"culm/internal/show"
)

// errEnded ends a Follow from its handler: the run has ended.
var errEnded = errors.New("ended")

// errWaits: the run waits for a person.
var errWaits = errors.New("the run waits for a person")

// follow shows the events of a session after the given sequence until the run
// ends. It returns nil if the run ended well. run may be "": then it is the
// first one requested.
func (a *app) follow(ctx context.Context, b backend, session, run string, after uint64) error {
	s := newScreen(a, a.style())
	s.learn(ctx, b, session)
	end := runEnd{run: run}
	q := quiet{app: a, back: b, screen: s, session: session}
	stop := q.start(ctx)
	opts := events.FollowOptions{Session: session, From: map[string]uint64{session: after}}
	err := b.Feed().Follow(ctx, opts, func(r events.Record) error {
		if err := s.record(r); err != nil {
			return err
		}
		e, err := events.Decode(r.Payload)
		if err != nil {
			return fmt.Errorf("event %d: %w", r.Seq, err)
		}
		q.sees(&e)
		if end.sees(&e) {
			return errEnded
		}
		return nil
	})
	stop()
	switch {
	case end.over:
		a.tellStand(ctx, b, session)
		return end.err
	case ctx.Err() != nil:
		return fmt.Errorf("no longer watching; the run goes on: culm watch %[1]s shows it, culm cancel %[1]s ends it", session)
	case err == nil:
		return errors.New("the feed ended before the run did")
	}
	return err
}

// runEnd waits for the end of one run.
type runEnd struct {
	run  string
	over bool
	err  error // of an end that is not a good one
}

// sees looks at the next event of the session and says whether the run is over.
func (w *runEnd) sees(e *events.Event) bool {
	if d, ok := e.Data.(events.RunRequested); ok && w.run == "" {
		w.run = d.RunID
	}
	switch d := e.Data.(type) {
	case events.RunFinished:
		w.end(d.RunID, finishedBadly(d))
	case events.RunRefused:
		w.end(d.RunID, fmt.Errorf("the run was refused, %s: %s", show.Clean(d.Code), show.Clean(d.Message)))
	case events.RunInterrupted:
		w.end(d.RunID, errors.New("the run was interrupted: nothing was heard of its runner"))
	case events.LoopStopRequested:
		if d.RunID != "" {
			w.end(d.RunID, errors.New("stopped before the loop began"))
		}
	case events.SessionClosed:
		w.end(w.run, errors.New("the session was closed"))
	}
	if events.Suspends(e.Data) {
		w.end(e.Run, fmt.Errorf("%w: culm pending %s", errWaits, e.Session))
	}
	return w.over
}

func (w *runEnd) end(run string, err error) {
	if run == w.run {
		w.over, w.err = true, err
	}
}

// finishedBadly is nil for a run that did what it was asked, or was asked to stop.
func finishedBadly(d events.RunFinished) error {
	if d.Outcome != "completed" {
		return fmt.Errorf("the run ended as %s", show.Clean(d.Outcome))
	}
	if l := d.Loop; l != nil && l.Status != events.StatusCompleted && l.Status != events.StatusStopped {
		return fmt.Errorf("the loop ended as %s", strings.ReplaceAll(string(l.Status), "_", " "))
	}
	return nil
}
