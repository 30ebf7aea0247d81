package aggregate

import (
	"context"
	"sync"
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
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	for a != nil {
		serve(a)
		a = w.wait(timer)
	}
}

// wait is the next actor to serve, nil when this goroutine is not needed.
func (w workers) wait(timer *time.Timer) *actor {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdleWorkers {
		return nil
	}
	timer.Reset(idleWorker)
	select {
	case a := <-w.next:
		return a
	case <-timer.C:
	case <-w.ctx.Done():
	}
	return nil
}

// job is work for an actor.
type job struct {
	queued  time.Time
	run     func(*actor)
	refused func(*Rejection)
}

// do runs the job, or refuses it if it has waited longer than the patience.
func (j job) do(a *actor, patience time.Duration) {
	if waited := time.Since(j.queued); waited > patience {
		j.refused(reject(CodeUnavailable, "it waited %s for its turn; retry with the same command id", waited.Round(time.Millisecond)))
		return
	}
	j.run(a)
}

// moment is the context of the commands that begin at about the same time: one
// for each would cost more than many a decision.
type moment struct {
	mu     sync.Mutex
	ctx    context.Context    //nolint:containedctx // of the commands that begin before over
	cancel context.CancelFunc // not needed: the context ends by its timeout
	over   time.Time
}

// sharing is the part of the timeout in which commands share a context, so much
// less than the timeout may one of them get.
const sharing = 32

// until is the context of a command: it ends with the handler or after the
// timeout, whatever becomes of the caller: what was taken is carried out.
func (h *Handler) until() context.Context {
	m := &h.moment
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.ctx == nil || now.After(m.over) {
		m.ctx, m.cancel = context.WithTimeout(h.ctx, h.opts.Timeout)
		m.over = now.Add(h.opts.Timeout / sharing)
	}
	return m.ctx
}
