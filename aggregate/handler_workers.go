package aggregate

import (
	"context"
	"sync/atomic"
	"time"
)

// maxIdleWorkers bounds the goroutines that are kept for later work, and
// idleWorker how long.
const (
	maxIdleWorkers = 64
	idleWorker     = 10 * time.Second
)

// workers serve actors. A goroutine that has served one waits for the next: a
// new one would grow its stack anew for every command.
type workers struct {
	ctx  context.Context //nolint:containedctx // ends the idle ones
	next chan *actor
	idle *atomic.Int32
}

func newWorkers(ctx context.Context) workers {
	return workers{ctx: ctx, next: make(chan *actor), idle: &atomic.Int32{}}
}

// give hands the actor to a goroutine that waits, or to a new one.
func (w workers) give(a *actor, serve func(*actor)) {
	select {
	case w.next <- a:
	default:
		go w.work(a, serve)
	}
}

func (w workers) work(a *actor, serve func(*actor)) {
	for a != nil {
		serve(a)
		a = w.wait()
	}
}

// wait is the next actor to serve, nil when this goroutine is not needed.
func (w workers) wait() *actor {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdleWorkers {
		return nil
	}
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	select {
	case a := <-w.next:
		return a
	case <-timer.C:
	case <-w.ctx.Done():
	}
	return nil
}

// until is the context of a command: it ends with the handler or after the
// timeout, whatever becomes of the caller: what was taken is carried out.
func (h *Handler) until() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.ctx, h.opts.Timeout)
}
