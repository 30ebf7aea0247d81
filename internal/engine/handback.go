package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/provider"
	"culm/runner"
)

// handBacks gives back what the built-in runner holds when it stops, and offers
// it what others gave back: a stop that is asked for loses nothing and makes
// nobody decide.
type handBacks struct {
	back      *bus.HandBacks
	providers *provider.Registry
	log       *slog.Logger
	nc        *nats.Conn
	every     time.Duration // a third of the lease
	appeared  chan struct{} // something may have been given back; holds at most one

	due        bool   // something may have been given back that is not offered yet
	reconnects uint64 // of nc, when it was looked

	mu      sync.Mutex
	offered map[string]bus.HandedBack // by session, as last listed
}

// handBackTime bounds one hand-back, and taking one.
const handBackTime = 2 * time.Second

// startHandBack joins the runner to the runs that are given back.
func (e *engine) startHandBack(ctx context.Context, rc *runner.Config) error {
	back, err := bus.NewHandBacks(ctx, e.nc, e.cfg.Replicas)
	if err != nil {
		return err
	}
	h := &handBacks{back: back, providers: rc.Providers, log: e.log, nc: e.nc, every: e.cfg.Lease / 3, appeared: make(chan struct{}, 1)}
	stop, err := back.Appear(func() {
		select {
		case h.appeared <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, stop)
	rc.HandBack = func(session string, run runner.Held) { h.put(context.WithoutCancel(ctx), session, run) }
	rc.Adopt = func(session string) (runner.Held, bool) { return h.adopt(ctx, session) }
	e.handBacks = h
	return nil
}

func (h *handBacks) put(ctx context.Context, session string, run runner.Held) {
	ctx, cancel := context.WithTimeout(ctx, handBackTime)
	defer cancel()
	if err := h.back.Put(ctx, session, bus.Held(run)); err != nil {
		h.log.Warn("run not handed back: it will be interrupted", "session", session, "run", run.RunID, "err", err)
	}
}

// list notes and returns the sessions whose runs are to be had by this engine. Runs of
// providers that it does not hold are left to others.
func (h *handBacks) list(ctx context.Context) ([]string, error) {
	all, err := h.back.List(ctx)
	if err != nil {
		return nil, err
	}
	offered, names := map[string]bus.HandedBack{}, make([]string, 0, len(all))
	for _, one := range all {
		if _, held := h.providers.Get(one.Held.Provider); held || one.Held.Provider == "" {
			offered[one.Session] = one
			names = append(names, one.Session)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offered = offered
	return names, nil
}

// adopt takes the run of the session that is offered, if another engine has not.
func (h *handBacks) adopt(ctx context.Context, session string) (runner.Held, bool) {
	h.mu.Lock()
	one, ok := h.offered[session]
	delete(h.offered, session)
	h.mu.Unlock()
	if !ok {
		return runner.Held{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, handBackTime)
	defer cancel()
	taken, err := h.back.Take(ctx, one)
	if err != nil && ctx.Err() == nil {
		h.log.Warn("run not taken over", "session", session, "run", one.Held.RunID, "err", err)
	}
	return runner.Held(one.Held), taken
}

// keepOn wakes the runner for runs that no event tells of: those that it holds
// and that rest, since this engine or its server was out of reach for a while,
// three times within a lease; and those that were handed back, when they are.
func (h *handBacks) keepOn(ctx context.Context, w *wakeUps, resting func() []string) error {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	return h.keepOnWith(ctx, w, resting, tick.C)
}

func (h *handBacks) keepOnWith(ctx context.Context, w *wakeUps, resting func() []string, sweep <-chan time.Time) error {
	h.offer(ctx, w)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-h.appeared:
			h.offer(ctx, w)
			h.due = true // once more: what was announced may not have been stored yet
		case <-sweep:
			for _, session := range resting() {
				w.wake(ctx, session)
			}
			if h.due || n%surveyEvery == 0 || h.nc.Stats().Reconnects != h.reconnects {
				h.offer(ctx, w)
			}
		}
	}
}

// offer looks for what was given back, wakes the runner for it, and says in due
// whether there is reason to look again.
func (h *handBacks) offer(ctx context.Context, w *wakeUps) {
	h.reconnects = h.nc.Stats().Reconnects
	names, err := h.list(ctx)
	if err != nil && ctx.Err() == nil {
		h.log.Warn("look for runs that were handed back", "err", err)
	}
	h.due = err != nil || len(names) > 0
	for _, session := range names {
		w.wake(ctx, session)
	}
}
