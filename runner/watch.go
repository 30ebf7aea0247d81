package runner

import (
	"context"
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
// look for a cancel sooner.
func (s *session) beat(ctx context.Context, shutdown <-chan struct{}, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(s.hold.lease/3, time.Millisecond))
	defer tick.Stop()
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
		case <-tick.C:
			s.renew(ctx, cancel)
		case <-s.poke:
			if s.changed(ctx) {
				s.renew(ctx, cancel)
			}
		}
	}
}

// changed asks Next whether something speaks against going on.
func (s *session) changed(ctx context.Context) bool {
	step, err := s.r.cfg.Engine.Next(ctx, s.name)
	return err == nil && (step.Cancelled || step.RunID != s.hold.RunID || step.Fence != s.hold.Fence)
}

func (s *session) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	var out renewResult
	_, err := s.try(ctx, "run.renew", s.hold.runRef, &out)
	_, isRefusal := refused(err)
	switch {
	case isRefusal, errors.Is(err, errLost):
		cancel(errLost)
	case ctx.Err() != nil:
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
