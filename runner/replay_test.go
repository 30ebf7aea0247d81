package runner_test

import (
	"context"
	"testing"
	"testing/synctest"

	"culm/aggregate"
	"culm/runner"
	"culm/tool"
)

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
