package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"culm/provider"
	"culm/runner"
)

// blocks is a model that streams half an answer and then waits for its context.
func blocks(ended *error) model {
	return func(ctx context.Context, _ provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
		emit(provider.Delta{Kind: provider.Text, Text: "half"})
		<-ctx.Done()
		*ended = context.Cause(ctx)
		return provider.Answer{}, *ended
	}
}

func TestRun_CancelEndsTheModelCall(t *testing.T) {
	t.Parallel()
	for name, poke := range map[string]bool{"noticed by the heartbeat": false, "noticed by the feed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				var ended error
				stop := start(t, f, "r1", blocks(&ended), nil)
				synctest.Wait()
				f.mu.Lock()
				f.cancel = true
				if poke {
					f.wake()
				}
				f.mu.Unlock()
				if !poke {
					time.Sleep(6 * time.Second)
				}
				synctest.Wait()
				stop()
				want(t, f, "round.start 0", "round.fail cancelled", "run.finish cancelled")
				if ended == nil {
					t.Error("the model call was not ended")
				}
			})
		})
	}
}

func TestRun_LostLeaseDropsTheLateResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d := requested(), &deltas{}
		late := make(chan struct{})
		stop := start(t, f, "r1", model(func(ctx context.Context, _ provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
			<-ctx.Done() // and yet it answers
			emit(provider.Delta{Kind: provider.Text, Text: "late"})
			close(late)
			return provider.Answer{Content: "late"}, nil
		}), func(c *runner.Config) { c.Deltas = d })
		synctest.Wait()
		f.mu.Lock()
		f.fence = 99 // somebody else holds the run
		f.runner = "other"
		f.mu.Unlock()
		<-late
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", "run.renew refused stale_run")
		if len(d.seen) != 0 {
			t.Errorf("deltas after the loss: %v", d.seen)
		}
	})
}

func TestRun_RetriesTheModelAndSaysHowOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d := requested(), &deltas{}
		calls := 0
		stop := start(t, f, "r1", model(func(_ context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
			if calls++; calls < 3 {
				emit(provider.Delta{Kind: provider.Text, Text: "part"})
				return provider.Answer{}, fmt.Errorf("call: %w", &provider.Error{Code: "overloaded", Retryable: true, RetryAfter: 2 * time.Second})
			}
			emit(provider.Delta{Kind: provider.Text, Text: "whole"})
			return provider.Answer{Content: "whole"}, nil
		}), func(c *runner.Config) { c.Deltas = d })
		time.Sleep(time.Minute)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "whole" after 3 attempts finalize`, "run.finish ok")
		if last := d.seen[len(d.seen)-1]; !strings.Contains(last, `"attempt":3`) || !strings.Contains(last, `"index":4`) {
			t.Errorf("last delta %s", last)
		}
	})
}

func TestRun_ModelFailureEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model model
		calls int
		code  string
	}{
		"retryable to the end": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			return provider.Answer{}, &provider.Error{Code: "overloaded", Retryable: true}
		}, 3, "overloaded"},
		"not retryable": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			return provider.Answer{}, &provider.Error{Code: "auth"}
		}, 1, "auth"},
		"untyped": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			return provider.Answer{}, errors.New("broken")
		}, 1, "provider_failed"},
		"panic": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			panic("oh")
		}, 1, "panic"},
		"too slow": {func(ctx context.Context, _ provider.Request, _ func(provider.Delta)) (provider.Answer, error) {
			<-ctx.Done()
			return provider.Answer{}, ctx.Err()
		}, 3, "timeout"},
		"does not end": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			time.Sleep(24 * time.Hour)
			return provider.Answer{Content: "late"}, nil
		}, 1, "timeout"},
		"not text": {func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			return provider.Answer{ToolCalls: []provider.ToolCall{{Name: "A", Arguments: "\xff"}}}, nil
		}, 1, "invalid_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				var calls atomic.Int32 // a call that was given up is not waited for
				stop := start(t, f, "r1", model(func(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
					calls.Add(1)
					return tc.model(ctx, r, emit)
				}), nil)
				time.Sleep(25 * time.Hour)
				stop()
				want(t, f, "round.start 0", "round.fail "+tc.code, "run.finish error "+tc.code)
				if got := int(calls.Load()); got != tc.calls {
					t.Errorf("%d calls, want %d", got, tc.calls)
				}
			})
		})
	}
}

func TestRun_MissingProviderFailsTheRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		stop := start(t, f, "r1", says("x"), func(c *runner.Config) { c.Providers = &provider.Registry{} })
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", "round.fail provider_unavailable", "run.finish error provider_unavailable")
	})
}
