package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"culm/aggregate"
	"culm/provider"
	"culm/runner"
	"culm/tool"
)

func TestRun_ShutdownLetsTheCallEndAndAdmitsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.iterations = 3
		stop := start(t, f, "r1", model(func(ctx context.Context, _ provider.Request, _ func(provider.Delta)) (provider.Answer, error) {
			time.Sleep(5 * time.Second)
			return provider.Answer{Content: "x"}, context.Cause(ctx)
		}), nil)
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "x" continue`)
	})
}

func TestRun_ShutdownLeavesWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		says string
		want []string
	}{
		"model": {"block", []string{"round.start 0"}},
		"tool":  {"call a=Bash b=Bash", []string{"round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				var ended error
				p := says(tc.says)
				if tc.says == "block" {
					p = blocks(&ended)
				}
				stop := start(t, f, "r1", p, func(c *runner.Config) {
					c.Tools = tools{execute: func(ctx context.Context, _ tool.Call, _ func(string)) tool.Result {
						<-ctx.Done()
						return tool.Failed("", "interrupted")
					}}
				})
				synctest.Wait()
				began := time.Now()
				stop()
				want(t, f, tc.want...)
				if took := time.Since(began); took < 10*time.Second || took > 16*time.Second {
					t.Errorf("Run returned after %v", took)
				}
			})
		})
	}
}

func TestRun_NothingBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		storing := make(chan struct{})
		f.hook = func(_ context.Context, name string, _ body) (*aggregate.Reply, error) {
			if name == "tool.start" { // the end comes while the start is being stored
				close(storing)
				time.Sleep(time.Second)
			}
			return nil, nil
		}
		stop := start(t, f, "r1", says("call a=Bash b=Bash"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				t.Error("a call was run after the end")
				return tool.Result{}
			}}
		})
		<-storing
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a",
			`tool.finish a false "Bash was not run: the runner was told to stop" not_run`)
	})
}

func TestRun_RefusalsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuse, code, end string
	}{
		"unexpected at admission":     {"round.start", "no_loop", "run.finish error no_loop"},
		"a race that does not end":    {"round.start", "round_open", "run.finish error round_open"},
		"answer too large":            {"round.finish", "payload_too_large", "run.finish error payload_too_large"},
		"the end itself":              {"run.finish", "no_loop", `round.finish 0 "x" finalize`},
		"somebody else has the claim": {"run.claim", "already_claimed", ""},
		"malformed":                   {"round.start", "", "run.finish error malformed_reply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				refusals := 0
				f.hook = func(_ context.Context, name string, _ body) (*aggregate.Reply, error) {
					if name != tc.refuse {
						return nil, nil
					}
					refusals++
					r := no(tc.code)
					if tc.code == "" {
						r.Error = nil
					}
					return &r, nil
				}
				stop := start(t, f, "r1", says("x"), nil)
				time.Sleep(time.Hour)
				stop()
				last := ""
				if len(f.log) > 0 {
					last = f.log[len(f.log)-1]
				}
				if last != tc.end || refusals > 10 || f.nexts > 100 {
					t.Errorf("%d refusals, %d looks, log %v", refusals, f.nexts, f.log)
				}
			})
		})
	}
}

func TestRun_RepliesThatAreLostAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, unavailable := range []bool{true, false} {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("unavailable %v stored %v", unavailable, stored), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := requested()
					lost, executed := map[string]bool{}, 0
					f.hook = func(_ context.Context, name string, b body) (*aggregate.Reply, error) {
						if lost[name] {
							return nil, nil
						}
						lost[name] = true
						if stored {
							f.do(name, b)
						}
						if !unavailable {
							return nil, errors.New("connection lost")
						}
						r := no("unavailable")
						return &r, nil
					}
					stop := start(t, f, "r1", says("call a=Bash", "end"), func(c *runner.Config) {
						c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
							executed++
							return tool.Result{Success: true, Content: "done"}
						}}
					})
					time.Sleep(time.Hour)
					stop()
					again := len(f.log)
					f.log = slices.DeleteFunc(f.log, func(s string) bool { return strings.HasSuffix(s, " again") })
					told := 0
					if stored {
						told = len(lost) - 1 // tool.authorize stores nothing here
					}
					if again -= len(f.log); again != told {
						t.Errorf("%d commands were told their first outcome, %d replies lost", again, len(lost))
					}
					want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", `tool.finish a true "done"`,
						"round.start 1", `round.finish 1 "end" finalize`, "run.finish ok")
					if executed != 1 {
						t.Errorf("the call ran %d times", executed)
					}
				})
			})
		}
	}
}

// TestRun_ShutdownDoesNotWaitForAnEngineOutOfReach: neither the renewals nor
// the reports of a run keep Run from returning in time.
func TestRun_ShutdownDoesNotWaitForAnEngineOutOfReach(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		p      func() provider.Provider
		out    string // the command that is not answered; "" for all
		within time.Duration
	}{
		"model call under way": {func() provider.Provider { var ended error; return blocks(&ended) }, "run.renew", 16 * time.Second},
		"answer to report": {func() provider.Provider {
			return model(func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
				time.Sleep(25 * time.Second)
				return provider.Answer{Content: "x"}, nil
			})
		}, "", 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				f.hook = func(ctx context.Context, name string, _ body) (*aggregate.Reply, error) {
					if name == "run.claim" || name == "round.start" || tc.out != "" && tc.out != name {
						return nil, nil
					}
					select {
					case <-time.After(5 * time.Second):
						r := no("unavailable")
						return &r, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				stop := start(t, f, "r1", tc.p(), nil)
				time.Sleep(20 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took > tc.within {
					t.Errorf("Run returned after %v", took)
				}
			})
		})
	}
}

// TestRun_RenewalIsTriedAgainWithTheNextBeat: one that gets no answer at all
// does not keep the next one back.
func TestRun_RenewalIsTriedAgainWithTheNextBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, renewals := requested(), 0
		f.hook = func(ctx context.Context, name string, _ body) (*aggregate.Reply, error) {
			if name != "run.renew" {
				return nil, nil
			}
			if renewals++; renewals > 1 {
				return nil, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var ended error
		stop := start(t, f, "r1", blocks(&ended), nil)
		synctest.Wait()
		f.mu.Lock()
		f.cancel = true
		f.mu.Unlock()
		time.Sleep(16 * time.Second)
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", "round.fail cancelled", "run.finish cancelled")
		if renewals != 2 {
			t.Errorf("%d renewals", renewals)
		}
	})
}
