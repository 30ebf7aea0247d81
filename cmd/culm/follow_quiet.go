package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"culm/events"
)

// quietFor is how long a follower hears nothing of a runner before it says so.
const quietFor = 5 * time.Second

// quiet tells the follower of a run why nothing comes where nothing was heard of
// a runner, from the beginning or since the connection came back: a runner that
// was heard may well be silent, for its model or a tool takes its time.
type quiet struct {
	app     *app
	back    backend
	screen  *screen
	session string
	heard   atomic.Bool
}

// sees looks at an event of the session. What neither this person nor the engine
// itself did is taken for a runner's.
func (q *quiet) sees(e *events.Event) {
	if e.Actor != q.app.Actor && !strings.HasPrefix(e.Actor, "_") {
		q.heard.Store(true)
	}
}

// start begins to wait; stop ends that, and nothing is told after it.
func (q *quiet) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.wait(ctx)
	}()
	return func() { cancel(); <-done }
}

// wait says each thing once.
func (q *quiet) wait(ctx context.Context) {
	said := map[string]bool{"": true}
	over := q.app.later(quietFor)
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.app.again:
			q.heard.Store(false)
			over = q.app.later(quietFor)
		case <-over:
			over = nil
			if text := q.why(ctx); !said[text] {
				said[text] = true
				q.screen.note(text)
			}
		}
	}
}

// why asks an engine how the run stands. Without an answer, and where there is
// nothing to say, it is "".
func (q *quiet) why(ctx context.Context) string {
	if q.heard.Load() {
		return ""
	}
	v, err := q.app.viewed(ctx, q.back, q.session)
	switch {
	case err != nil || q.heard.Load():
	case v.requested():
		return fmt.Sprintf("no runner has taken the run yet; culm session show %s", q.session)
	case v.Run != nil && v.Run.Status == "live":
		return fmt.Sprintf("nothing heard yet from the runner of the run in %s; if it is dead, that is known within its lease", q.session)
	}
	return ""
}

// later is a channel that gets something when the time is over.
func (a *app) later(d time.Duration) <-chan time.Time {
	if a.after != nil {
		return a.after(d)
	}
	return time.After(d)
}
