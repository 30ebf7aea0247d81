package runner

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// watch runs fn while it keeps the run's lease. fn's context does not end with
// ctx but with the cause errCancel, errLost or, Grace after ctx has ended,
// errShutdown; watch returns that cause, nil if there was none.
func (s *session) watch(ctx context.Context, fn func(context.Context)) error {
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	beat, stop := context.WithCancel(context.WithoutCancel(ctx))
	var heart sync.WaitGroup
	heart.Go(func() { s.beat(beat, ctx.Done(), cancel) })
	fn(call)
	stop()
	heart.Wait()
	return context.Cause(call)
}

// beat renews the lease at a third of it until ctx ends. A poke is a hint to
// look for a cancel sooner. An engine that does not answer delays neither the
// shutdown nor the next renewal by more than that third.
func (s *session) beat(ctx context.Context, shutdown <-chan struct{}, cancel context.CancelCauseFunc) {
	every := max(s.hold.lease/3, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	ctx, stop := context.WithCancel(ctx)
	looks := looks{s: s, ctx: ctx, atMost: every, cancel: cancel}
	defer func() { stop(); looks.wait() }()
	var grace <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-shutdown:
			shutdown, grace = nil, time.After(s.r.cfg.Grace)
		case <-grace:
			cancel(errShutdown)
			return // what does not end now is left without a lease
		case <-looks.ended:
			looks.next()
		case <-tick.C:
			looks.begin(true)
		case <-s.poke:
			looks.begin(false)
		}
	}
}

// looks are the looks at the engine of one beat, one at a time.
type looks struct {
	s      *session
	ctx    context.Context //nolint:containedctx // of all looks
	atMost time.Duration   // for one look
	cancel context.CancelCauseFunc

	ended chan struct{} // closed when the one under way has ended; nil if there is none
	poked bool          // something happened since it began
}

// begin looks at the engine unless that is under way: to renew the lease, or
// only to see whether something has changed.
func (l *looks) begin(renew bool) {
	if l.ended != nil {
		l.poked = l.poked || !renew
		return
	}
	ended := make(chan struct{})
	l.ended, l.poked = ended, false
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(l.ctx, l.atMost)
		defer cancel()
		if renew || l.s.changed(ctx) {
			l.s.renew(ctx, l.cancel)
		}
	}()
}

// next is called when a look has ended.
func (l *looks) next() {
	if l.ended = nil; l.poked {
		l.begin(false)
	}
}

func (l *looks) wait() {
	if l.ended != nil {
		<-l.ended
	}
}

// changed asks Next whether something speaks against going on.
func (s *session) changed(ctx context.Context) bool {
	step, err := s.r.cfg.Engine.Next(ctx, s.name)
	return err == nil && (step.Cancelled || step.RunID != s.hold.RunID || step.Fence != s.hold.Fence)
}

// renew tries once: the next beat is the next try.
func (s *session) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	var out renewResult
	_, err := s.once(ctx, Command{ID: cryptorand.Text(), Name: "run.renew", Data: s.hold.runRef}, &out)
	_, isRefusal := refused(err)
	switch {
	case isRefusal, errors.Is(err, errLost):
		cancel(errLost)
	case errors.Is(ctx.Err(), context.Canceled): // the call has ended
	case err != nil: // out of reach: going on is safe, the fence decides
		s.log.Warn("renew", "run", s.hold.RunID, "err", err)
	case out.CancelRequested:
		cancel(errCancel)
	}
}

// isolate runs fn in a goroutine of its own, so that neither a panic nor a
// call that does not end takes the session with it. ok is false if fn was
// given up, patience after ctx had ended.
func isolate[T any](ctx context.Context, log *slog.Logger, patience time.Duration, fn func() T, panicked func(any) T) (result T, ok bool) {
	done := make(chan T, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				log.Error("panic", "err", p, "stack", string(debug.Stack()))
				done <- panicked(p)
			}
		}()
		done <- fn()
	}()
	select {
	case result = <-done:
		return result, true
	case <-ctx.Done():
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case result = <-done:
		return result, true
	case <-t.C:
		return result, false
	}
}
