package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"culm/aggregate"
	"culm/provider"
	"culm/runner"
	"culm/tool"
)

// out is an engine that can be out of reach: every command is unavailable then.
type out struct{ atomic.Bool }

func (o *out) hook(context.Context, string, body) (*aggregate.Reply, error) {
	if !o.Load() {
		return nil, nil
	}
	r := no("unavailable")
	return &r, nil
}

// TestRun_OutageKeepsTheRunAndWhatIsKnown: an engine that is out of reach for
// longer than a command is tried costs neither the run nor an outcome that the
// runner knows: with the next wake-up it goes on, and does nothing twice.
func TestRun_OutageKeepsTheRunAndWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"the answer", "a result"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, o := requested(), &out{}
				f.hook = o.hook
				var asked, executed atomic.Int32
				says := says("call a=Bash b=Bash", "end")
				stop := start(t, f, "r1", model(func(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
					asked.Add(1)
					o.Store(at == "the answer" && r.Answers == 0)
					return says(ctx, r, emit)
				}), func(c *runner.Config) {
					c.Tools = tools{execute: func(_ context.Context, c tool.Call, _ func(string)) tool.Result {
						executed.Add(1)
						time.Sleep(time.Second)
						o.Store(at == "a result")
						return tool.Result{Success: true, Content: c.ID}
					}}
				})
				time.Sleep(time.Minute)
				o.Store(false)
				f.wake()
				time.Sleep(time.Minute)
				stop()
				want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b", `tool.finish a true "a"`, `tool.finish b true "b"`,
					"round.start 1", `round.finish 1 "end" finalize`, "run.finish ok")
				if asked.Load() != 2 || executed.Load() != 2 {
					t.Errorf("%d model calls, %d tool calls", asked.Load(), executed.Load())
				}
			})
		})
	}
}

// TestRun_SecondGateInAnOutageIsAskedAbout: what a replayed call asked is not
// lost either.
func TestRun_SecondGateInAnOutageIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, o := decided(), &out{}
		f.hook = o.hook
		stop := start(t, f, "r1", says("x"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				o.Store(true)
				return tool.Result{Ask: &tool.Question{Text: "Outside of the workspace?", Approval: true}}
			}}
		})
		time.Sleep(time.Minute)
		o.Store(false)
		f.wake()
		time.Sleep(time.Minute)
		stop()
		want(t, f, "replay.start a", `tool.park a "Outside of the workspace?" true`)
	})
}

// TestRun_FailureInAnOutageIsReportedLater: a run that has failed is ended when
// the engine is back, and nothing more of it is begun.
func TestRun_FailureInAnOutageIsReportedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, o := requested(), &out{}
		f.hook = o.hook
		stop := start(t, f, "r1", says("call a=Hang b=Bash"), func(c *runner.Config) {
			c.Parallel = 1
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				o.Store(true)
				time.Sleep(10 * time.Minute)
				return tool.Result{}
			}}
		})
		time.Sleep(time.Hour)
		o.Store(false)
		f.wake()
		time.Sleep(time.Minute)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", "run.finish error call_unresolved")
	})
}

// TestResting: what a run that cannot go on is found by, until it can, or until
// its fence is gone.
func TestResting(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, o := requested(), &out{}
			f.hook = o.hook
			wake := make(chan string, 10)
			f.wakes = append(f.wakes, wake)
			var providers provider.Registry
			if err := providers.Add("p", model(func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
				o.Store(true)
				return provider.Answer{Content: "x"}, nil
			})); err != nil {
				t.Fatal(err)
			}
			r, err := runner.New(runner.Config{Engine: f, Wake: wake, Name: "r1", Providers: &providers, Tools: tools{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- r.Run(ctx) }()
			if wake <- "S"; len(r.Resting()) != 0 {
				t.Errorf("resting at the beginning: %v", r.Resting())
			}
			time.Sleep(time.Minute)
			if got := r.Resting(); len(got) != 1 || got[0] != "S" {
				t.Errorf("resting in the outage: %v", got)
			}
			o.Store(false)
			last := `run.finish ok`
			if f.mu.Lock(); lost {
				f.fence, f.runner, last = f.fence+10, "r2", "round.start 0"
			}
			f.mu.Unlock()
			wake <- "S"
			time.Sleep(time.Minute)
			if got := r.Resting(); len(got) != 0 || f.log[len(f.log)-1] != last {
				t.Errorf("lost %t, resting in the end: %v, %v", lost, got, f.log)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRun_WhatEndedIsReportedBesideWhatDidNot: of the calls of one answer each
// that ended has its result, before and after one that was given up.
func TestRun_WhatEndedIsReportedBesideWhatDidNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		stop := start(t, f, "r1", says("call a=Bash b=Hang c=Bash d=Hang e=Bash"), func(c *runner.Config) { c.Tools = tools{execute: hangs} })
		time.Sleep(time.Hour)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b", "tool.start c", "tool.start d", "tool.start e",
			`tool.finish a true "Bash done"`, `tool.finish c true "Bash done"`, `tool.finish e true "Bash done"`, "run.finish error call_unresolved")
	})
}

// hangs works for a second, or as Hang for ten minutes, whoever asks.
func hangs(ctx context.Context, c tool.Call, output func(string)) tool.Result {
	if c.Name == "Hang" {
		time.Sleep(10 * time.Minute)
	}
	return slow(ctx, c, output)
}

// TestRun_ShutdownReportsWhatEndedBesideWhatDidNot: as above, where the end of
// the runner cuts a call off.
func TestRun_ShutdownReportsWhatEndedBesideWhatDidNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		stop := start(t, f, "r1", says("call a=Hang b=Bash"), func(c *runner.Config) { c.Tools = tools{execute: hangs} })
		synctest.Wait()
		stop()
		time.Sleep(time.Hour) // until what hangs has ended
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b", `tool.finish b true "Bash done"`)
	})
}

// TestRun_HandedBackRun: it is taken over with its fence where it still has it
// and nothing of it was under way.
func TestRun_HandedBackRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fence  uint64 // that was handed back; the run's is 5
		status string // of a call
		want   string
	}{
		"as it was":         {5, "open", "tool.start a, tool.finish a true \"Bash done\", round.start 1, round.finish 1 \"x\" finalize, run.finish ok"},
		"another has it":    {4, "open", "run.renew refused stale_run"},
		"a call is unknown": {5, "started", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{run: "R", runner: "r0", fence: 5, answers: 1, round: 1}
				f.calls = []fakeCall{{status: tc.status, StepCall: aggregate.StepCall{ID: "a", Name: "Bash", Arguments: `{}`}}}
				offers := 1
				stop := start(t, f, "r1", says("-", "x"), func(c *runner.Config) {
					c.Adopt = func(string) (runner.Held, bool) {
						offers--
						return runner.Held{RunID: "R", Fence: tc.fence}, offers == 0
					}
				})
				synctest.Wait()
				stop()
				if got := strings.Join(f.log, ", "); got != tc.want {
					t.Errorf("commands: %s\nwant: %s", got, tc.want)
				}
			})
		})
	}
}
