package runner_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"culm/aggregate"
	"culm/events"
	"culm/provider"
	"culm/runner"
	"culm/tool"
)

// TestRun_CancelEndsAsCancelled: also where a call does not end, which leaves
// that call without an outcome, and where the run fails before it has heard.
func TestRun_CancelEndsAsCancelled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		f    *fake
		says string
		want []string
	}{
		"a call hangs":          {requested(), "call a=Hang b=Bash", []string{"round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b", `tool.finish b true "Bash done"`, "run.finish cancelled"}},
		"a replayed call hangs": {decided(), "x", []string{"replay.start a", "run.finish cancelled"}},
		"the run fails":         {requested(), "fail", []string{"round.start 0", "round.fail broken", "run.finish cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := tc.f
				if len(f.calls) > 0 {
					f.calls[0].Name = "Hang"
				}
				cancelled := func() { f.mu.Lock(); f.cancel = true; f.mu.Unlock() }
				f.hook = func(_ context.Context, name string, _ body) (*aggregate.Reply, error) {
					if name == "round.fail" {
						cancelled()
					}
					return nil, nil
				}
				says := says(tc.says)
				stop := start(t, f, "r1", model(func(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
					if tc.says == "fail" {
						return provider.Answer{}, &provider.Error{Code: "broken", Message: "no"}
					}
					return says(ctx, r, emit)
				}), func(c *runner.Config) { c.Tools = tools{execute: hangs} })
				time.Sleep(2 * time.Second)
				cancelled()
				time.Sleep(time.Hour)
				stop()
				want(t, f, tc.want...)
			})
		})
	}
}

// TestRules_CancelOfACallThatHangs: run and loop are cancelled, and the call
// is left without an outcome, for a person to look at.
func TestRules_CancelOfACallThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stop := startRuled(t, says("call a=Read"), tools{execute: func(ctx context.Context, c tool.Call, output func(string)) tool.Result {
			c.Name = "Hang" // by another name the policy would ask
			return hangs(ctx, c, output)
		}})
		r.do(t, "session.create", m{})
		r.do(t, "run.request", m{"prompt": "P", "loop": m{"max_iterations": 3, "max_total_rounds": 9}})
		synctest.Wait()
		r.do(t, "run.cancel", m{})
		time.Sleep(time.Minute)
		types := r.types(t)
		last := ""
		for rec, err := range r.log.Read(t.Context(), "S", uint64(len(types)-1), 0) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := events.Decode(rec.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := e.Data.(events.RunFinished); ok && len(end.Unknown) == 1 && end.Loop != nil {
				last = end.Outcome + " " + string(end.Loop.Status) + " " + end.Unknown[0].ToolCallID
			}
		}
		if !strings.HasSuffix(strings.Join(types, " "), "tool.started run.cancel_requested run.finished") || last != "cancelled cancelled a" {
			t.Errorf("the end is %q, events: %v", last, types)
		}
		time.Sleep(time.Hour) // until what hangs has ended
		stop()
	})
}
