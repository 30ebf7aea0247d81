package runner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"culm/aggregate"
	"culm/runner"
	"culm/tool"
)

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

func TestRun_PolicyIsAskedBeforeEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.enforce = map[string]string{"Read": "allow", "Write": "deny", "Bash": "ask", "Grep": "allow"}
		stop := start(t, f, "r1", says("call a=Read b=Write c=Bash d=Grep"), func(c *runner.Config) { c.Tools = tools{execute: slow} })
		time.Sleep(time.Minute)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`,
			"tool.authorize a allow", "tool.start a", "tool.authorize b deny", "tool.authorize c ask", "tool.authorize d allow", "tool.start d",
			`tool.finish a true "Read done"`, `tool.finish d true "Grep done"`)
	})
}

// slow works for a second, so that everything else comes before its result.
func slow(_ context.Context, c tool.Call, _ func(string)) tool.Result {
	time.Sleep(time.Second)
	return tool.Result{Success: true, Content: c.Name + " done"}
}

// What the policy cannot judge gets a failed result, and the run goes on.
func TestRun_CallThatCannotBeJudgedDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"payload_too_large", "invalid_command"} {
		synctest.Test(t, func(t *testing.T) {
			f := requested()
			f.hook = func(_ context.Context, name string, _ body) (*aggregate.Reply, error) {
				if name == "tool.authorize" {
					r := no(code)
					return &r, nil
				}
				return nil, nil
			}
			stop := start(t, f, "r1", says("call a=Bash", "end"), nil)
			synctest.Wait()
			stop()
			want(t, f, "round.start 0", `round.finish 0 "" tools`,
				`tool.finish a false "Bash was not run: the policy could not judge it: refused by the fake" not_authorized`,
				"round.start 1", `round.finish 1 "end" finalize`, "run.finish ok")
		})
	}
}

func TestRun_PlanModeDeniesWhatChangesTheWorld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.planMode = true
		stop := start(t, f, "r1", says("call a=Write", "call b=Read c=Odd", "end"), func(c *runner.Config) {
			c.Tools = tools{execute: slow, access: map[string]tool.Access{"Odd": {Mutating: true, Risk: "low", PermissionType: "read", Resource: "x"}}}
		})
		time.Sleep(time.Minute)
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.authorize a deny",
			"round.start 1", `round.finish 1 "" tools`, "tool.start b",
			"tool.start refused plan_mode", `tool.finish c false "Odd was not run: plan mode lets nothing change the world" plan_mode`,
			`tool.finish b true "Read done"`,
			"round.start 2", `round.finish 2 "end" finalize`, "run.finish ok")
	})
}

// A tool that wants an approval of its own is asked about after the policy.
func TestRun_PolicyComesBeforeTheToolsOwnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := requested()
		f.enforce = map[string]string{"Write": "deny"}
		stop := start(t, f, "r1", says("call a=Write b=Edit"), func(c *runner.Config) {
			q := &tool.Question{Text: "Sure?", Approval: true}
			c.Tools = tools{ask: map[string]*tool.Question{"Write": q, "Edit": q}}
		})
		synctest.Wait()
		stop()
		want(t, f, "round.start 0", `round.finish 0 "" tools`, "tool.authorize a deny", `tool.park b "Sure?" true`)
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
			`tool.park c "Which?" false`, `tool.park a "Run delete_file? A question of the same answer is still open." true`,
			"tool.start b", `tool.finish b true "Read done"`)
	})
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
