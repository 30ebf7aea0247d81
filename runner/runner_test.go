package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/provider"
	"culm/provider/recorded"
	"culm/provider/transcript"
	"culm/runner"
	"culm/tool"
	recordedtool "culm/tool/recorded"
)

type model func(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error)

func (m model) Generate(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
	return m(ctx, r, emit)
}

// says answers with the given texts in turn; a text that begins with "call "
// asks for the tools named after it, all with the id x unless it says id=name.
func says(texts ...string) model {
	return func(_ context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
		text := texts[r.Answers%uint64(len(texts))]
		var a provider.Answer
		if names, ok := strings.CutPrefix(text, "call "); ok {
			for _, name := range strings.Fields(names) {
				id, name, _ := strings.Cut(name, "=")
				a.ToolCalls = append(a.ToolCalls, provider.ToolCall{ID: id, Name: name, Arguments: `{"n":9007199254740993}`})
			}
			return a, nil
		}
		emit(provider.Delta{Kind: provider.Text, Text: text})
		a.Content = text
		return a, nil
	}
}

type tools struct {
	execute func(ctx context.Context, c tool.Call, output func(string)) tool.Result
	ask     map[string]*tool.Question
}

func (t tools) Describe(c tool.Call) tool.Access {
	a := tool.AccessByName(c.Name)
	if !c.Replay {
		a.Ask = t.ask[c.Name]
	}
	return a
}

func (t tools) Execute(ctx context.Context, c tool.Call, output func(string)) tool.Result {
	if t.execute == nil {
		return tool.Result{Success: true, Content: c.Name + " done"}
	}
	return t.execute(ctx, c, output)
}

type deltas struct {
	mu   sync.Mutex
	seen []string
}

func (d *deltas) Publish(session, run string, payload []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, session+" "+run+" "+string(payload))
}

// start runs a Runner on f within a synctest bubble and wakes it. The returned
// function ends its context and waits until Run has returned.
func start(t *testing.T, f *fake, name string, p provider.Provider, change func(*runner.Config)) (stop func()) {
	t.Helper()
	wake := make(chan string, 1000)
	f.mu.Lock()
	f.wakes = append(f.wakes, wake)
	f.mu.Unlock()
	var providers provider.Registry
	if err := providers.Add("p", p); err != nil {
		t.Fatal(err)
	}
	c := runner.Config{Engine: f, Wake: wake, Name: name, Providers: &providers, Tools: tools{}}
	if change != nil {
		change(&c)
	}
	r, err := runner.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	wake <- "S"
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

// want compares the log after the claim.
func want(t *testing.T, f *fake, lines ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(append([]string{"run.claim r1"}, lines...), f.log); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// requested is a session with one run that waits for a runner.
func requested() *fake { return &fake{run: "R"} }

func TestRun_PlainRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d := requested(), &deltas{}
		stop := start(t, f, "r1", says("hello"), func(c *runner.Config) { c.Deltas = d })
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "hello" finalize`, "run.finish ok")
		if diff := cmp.Diff([]string{`S R {"round":0,"index":0,"kind":"text","text":"hello"}`}, d.seen); diff != "" {
			t.Errorf("deltas (-want +got):\n%s", diff)
		}
	})
}

func TestRun_LoopCostsOneCommandPerIteration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.iterations = 3
		stop := start(t, f, "r1", says("a", "b"), nil)
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "a" continue, admitted`, `round.finish 1 "b" continue, admitted`,
			`round.finish 2 "a" finalize`, "run.finish ok")
	})
}

func TestRun_BatchRunsSideBySideAndReportsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		var running, most int
		var mu sync.Mutex
		stop := start(t, f, "r1", says("call a=Read b=Write c=Bash =Grep", "end"), func(c *runner.Config) {
			c.Tools = tools{execute: func(_ context.Context, c tool.Call, _ func(string)) tool.Result {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Duration('z'-c.ID[0]) * time.Second) // the first ends last
				mu.Lock()
				running--
				mu.Unlock()
				if c.Arguments != `{"n":9007199254740993}` || c.At == nil || c.At.Answer != 0 {
					t.Errorf("call = %+v", c)
				}
				if c.Name == "Bash" {
					return tool.Failed("exit_1", "no such file")
				}
				return tool.Result{Success: true, Content: c.Name + " \xff\x00"}
			}}
		})
		time.Sleep(time.Minute)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", "tool.start b", "tool.start c", "tool.start minted3",
			`tool.finish a true "Read �\x00"`, `tool.finish b true "Write �\x00"`, `tool.finish c false "no such file" exit_1`,
			`tool.finish minted3 true "Grep �\x00"`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok")
		if most != 4 {
			t.Errorf("%d calls ran at once", most)
		}
	})
}

func TestRun_BatchIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		var mu sync.Mutex
		running, most := 0, 0
		stop := start(t, f, "r1", says("call a=A b=B c=C d=D e=E", "end"), func(c *runner.Config) {
			c.Parallel = 2
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return tool.Result{Success: true}
			}}
		})
		time.Sleep(time.Minute)
		stop()
		if most != 2 || f.log[len(f.log)-1] != "run.finish ok" {
			t.Errorf("%d calls ran at once; %v", most, f.log)
		}
	})
}

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

func TestRun_CancelLetsStartedCallsReportAndStartsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		stop := start(t, f, "r1", says("call a=Bash b=Bash"), func(c *runner.Config) {
			c.Parallel = 1
			c.Tools = tools{execute: func(ctx context.Context, _ tool.Call, _ func(string)) tool.Result {
				<-ctx.Done()
				return tool.Failed("", "interrupted")
			}}
		})
		synctest.Wait()
		f.mu.Lock()
		f.cancel = true
		f.mu.Unlock()
		time.Sleep(10 * time.Second)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start a", `tool.finish a false "interrupted" tool_failed`, "run.finish cancelled")
	})
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

func TestRun_ToolTrouble(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		execute func(ctx context.Context, c tool.Call, output func(string)) tool.Result
		want    []string
	}{
		"panic": {func(context.Context, tool.Call, func(string)) tool.Result { panic("oh") }, []string{
			`tool.finish a false "Bash panicked" panic`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok",
		}},
		"too slow": {func(ctx context.Context, _ tool.Call, _ func(string)) tool.Result {
			<-ctx.Done()
			return tool.Failed("", "stopped")
		}, []string{
			`tool.finish a false "stopped" timeout`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok",
		}},
		"does not end": {func(context.Context, tool.Call, func(string)) tool.Result {
			time.Sleep(time.Hour)
			return tool.Result{Success: true}
		}, []string{"run.finish error call_unresolved"}},
		"large": {func(context.Context, tool.Call, func(string)) tool.Result {
			return tool.Result{Success: true, Content: strings.Repeat("é", 10)}
		}, []string{
			`tool.finish a true "éé\n[cut: 4 of 20 bytes]"`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok",
		}},
		"asks too late": {func(context.Context, tool.Call, func(string)) tool.Result {
			return tool.Result{Ask: &tool.Question{Text: "?", Approval: true}}
		}, []string{
			`tool.finish a false "Bash asked for an approval after it was started" needs_approval`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := requested()
				stop := start(t, f, "r1", says("call a=Bash", "end"), func(c *runner.Config) {
					c.Tools = tools{execute: tc.execute}
					if name == "large" {
						c.MaxResult = 5
					}
				})
				time.Sleep(2 * time.Hour)
				stop()
				want(t, f, append([]string{"round.start 0", `round.finish 0 "" tools`, "tool.start a"}, tc.want...)...)
			})
		})
	}
}

func TestRun_PolicyIsAskedWhereTheSessionWantsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.enforce = map[string]string{"Read": "allow", "Write": "deny", "Bash": "ask"}
		stop := start(t, f, "r1", says("call a=Read b=Write c=Bash"), nil)
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`,
			"tool.start refused not_authorized", "tool.authorize a allow", "tool.start a",
			"tool.start refused not_authorized", "tool.authorize b deny",
			"tool.start refused not_authorized", "tool.authorize c ask",
			`tool.finish a true "Read done"`)
	})
}

func TestRun_PlanModeDeniesWhatChangesTheWorld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.planMode = true
		stop := start(t, f, "r1", says("call a=Write", "call b=Read", "end"), nil)
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.start refused plan_mode", "tool.authorize a deny",
			"round.start 1", `round.finish 1 "" tools`, "tool.start b", `tool.finish b true "Read done"`,
			"round.start 2", `round.finish 2 "end" finalize`, "run.finish ok")
	})
}

func TestRun_OpenQuestionHoldsBackWhatChangesTheWorld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		stop := start(t, f, "r1", says("call a=delete_file b=Read c=AskUserQuestion"), func(c *runner.Config) {
			c.Tools = tools{ask: map[string]*tool.Question{"AskUserQuestion": {Text: "Which?", AllowCustom: true}}}
		})
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`,
			`tool.park a "Run delete_file? A question of the same answer is still open." true`, `tool.park c "Which?" false`,
			"tool.start b", `tool.finish b true "Read done"`)
	})
}

// decided is a session whose run is to replay one approved call.
func decided() *fake {
	f := requested()
	f.answers, f.round = 1, 1
	f.calls = []fakeCall{{status: "decided", StepCall: aggregate.StepCall{ID: "a", Name: "Write", Arguments: `{"x" : 1}`}}}
	return f
}

func TestRun_ReplayRunsExactlyWhatWasApproved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := decided()
		stop := start(t, f, "r1", says("-", "end"), func(c *runner.Config) {
			c.Tools = tools{execute: func(_ context.Context, c tool.Call, _ func(string)) tool.Result {
				return tool.Result{Success: c.Replay, Content: c.Arguments}
			}}
		})
		synctest.Wait()
		stop()
		want(t, f, "replay.start a", `tool.finish a true "{\"x\" : 1}"`, "round.start 1", `round.finish 1 "end" finalize`, "run.finish ok")
	})
}

func TestRun_ReplayWithOtherArgumentsIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := decided()
		f.badDigest = true
		stop := start(t, f, "r1", says("x"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				t.Error("the call was run")
				return tool.Result{}
			}}
		})
		synctest.Wait()
		stop()
		want(t, f, "replay.start a", `tool.finish a false "Write was not run: its arguments are not the ones that were approved" arguments_digest_mismatch`,
			"run.finish error arguments_digest_mismatch")
	})
}

func TestRun_SecondGateOfAReplayParksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := decided()
		stop := start(t, f, "r1", says("x"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				return tool.Result{Ask: &tool.Question{Text: "Outside of the workspace?", Approval: true}}
			}}
		})
		synctest.Wait()
		stop()
		want(t, f, "replay.start a", `tool.park a "Outside of the workspace?" true`)
	})
}

func TestRun_CallOfSomebodyElseIsNotRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := decided()
		f.calls[0].status = "started"
		stop := start(t, f, "r1", says("x"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				t.Error("the call was run")
				return tool.Result{}
			}}
		})
		synctest.Wait()
		stop()
		want(t, f, "run.finish error call_unresolved")
	})
}

func TestRun_OneOfTwoRunnersWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.iterations = 3
		stop1 := start(t, f, "r1", says("x"), nil)
		stop2 := start(t, f, "r2", says("x"), nil)
		synctest.Wait()
		stop1()
		stop2()
		accepted := slices.DeleteFunc(slices.Clone(f.log), func(s string) bool { return s == "run.claim refused already_claimed" })
		for i, line := range accepted {
			accepted[i] = strings.Replace(line, "run.claim r2", "run.claim r1", 1)
		}
		f.log = accepted
		want(t, f, "round.start 0", `round.finish 0 "x" continue, admitted`, `round.finish 1 "x" continue, admitted`,
			`round.finish 2 "x" finalize`, "run.finish ok")
	})
}

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
					f.log = slices.DeleteFunc(f.log, func(s string) bool { return strings.Contains(s, " refused ") })
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

func TestRun_ResultThatNoEventHoldsIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.hook = func(_ context.Context, name string, b body) (*aggregate.Reply, error) {
			if name == "tool.finish" && len(b.Content) > 100_000 {
				r := no("payload_too_large")
				return &r, nil
			}
			return nil, nil
		}
		stop := start(t, f, "r1", says("call a=Read", "end"), func(c *runner.Config) {
			c.Tools = tools{execute: func(context.Context, tool.Call, func(string)) tool.Result {
				return tool.Result{Success: true, Content: strings.Repeat("x", 200_000)}
			}}
		})
		synctest.Wait()
		stop()
		if line := f.log[4]; !strings.Contains(line, "true") || !strings.Contains(line, "[cut: 16384 of 200000 bytes]") {
			t.Errorf("result: %.100s", line)
		}
	})
}

// several is an engine of many sessions.
type several map[string]*fake

func (e several) Do(ctx context.Context, session, name string, data any) (aggregate.Reply, error) {
	return e[session].Do(ctx, "S", name, data)
}

func (e several) Next(ctx context.Context, session string) (aggregate.Step, error) {
	return e[session].Next(ctx, "S")
}

func TestRun_SessionsBeyondTheBoundQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine, wake := several{}, make(chan string, 100)
		for i := range 10 {
			name := fmt.Sprint("S", i)
			engine[name] = requested()
			wake <- name
			wake <- name
		}
		var running, most atomic.Int32
		var providers provider.Registry
		err := providers.Add("p", model(func(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return provider.Answer{Content: "x"}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{Engine: engine, Wake: wake, Name: "r1", Providers: &providers, Tools: tools{}, Sessions: 3})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		<-done
		for name, f := range engine {
			if len(f.log) == 0 || f.log[len(f.log)-1] != "run.finish ok" {
				t.Errorf("%s: %v", name, f.log)
			}
		}
		if most.Load() != 3 {
			t.Errorf("%d sessions at once", most.Load())
		}
	})
}

func TestRun_PlaysTheExample(t *testing.T) {
	t.Parallel()
	r, err := transcript.Open("../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.iterations = 3
		stop := start(t, f, "r1", recorded.New(r, recorded.Options{Pace: time.Millisecond}), func(c *runner.Config) {
			c.Tools = recordedtool.New(r, recordedtool.Options{})
		})
		time.Sleep(time.Minute)
		stop()
		finished := 0
		for _, line := range f.log {
			if strings.HasPrefix(line, "tool.finish") {
				finished++
			}
			if strings.Contains(line, "not_recorded") || strings.Contains(line, "result_missing") {
				t.Error(line)
			}
		}
		if last := f.log[len(f.log)-1]; last != "run.finish ok" || f.iteration != 3 || f.answers != 10 || finished != 10 {
			t.Errorf("iteration %d, answers %d, %d calls, %s", f.iteration, f.answers, finished, last)
		}
	})
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := runner.New(runner.Config{}); err == nil {
		t.Error("New accepted an empty Config")
	}
}
