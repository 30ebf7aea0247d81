package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/runner"
	"culm/tool"
)

// numbers are round and index of all deltas, in the order of their publication.
func (d *deltas) numbers(t *testing.T) (out []string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, seen := range d.seen {
		var delta runner.Delta
		if err := json.Unmarshal([]byte(seen[strings.Index(seen, "{"):]), &delta); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d.%d", delta.Round, delta.Index))
	}
	return out
}

// streams runs a call that streams two pieces.
func streams(_ context.Context, _ tool.Call, output func(string)) tool.Result {
	output("a")
	output("b")
	return tool.Result{Success: true}
}

// TestDeltas_OfAReplay: the round that follows a replay counts on from it.
func TestDeltas_OfAReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d := decided(), &deltas{}
		f.round = 0
		stop := start(t, f, "r1", says("-", "end"), func(c *runner.Config) { c.Deltas, c.Tools = d, tools{execute: streams} })
		synctest.Wait()
		stop()
		if diff := cmp.Diff([]string{"0.0", "0.1", "0.2"}, d.numbers(t)); diff != "" {
			t.Errorf("deltas (-want +got):\n%s", diff)
		}
	})
}

// TestDeltas_OfAnAdoptedRun: tools of a run that was handed back stream in the
// round of their answer.
func TestDeltas_OfAnAdoptedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d := requested(), &deltas{}
		f.runner, f.fence, f.round, f.answers = "r0", 7, 3, 3
		f.calls = []fakeCall{{status: "open", StepCall: aggregate.StepCall{ID: "a", Name: "Bash", Answer: 2}}}
		stop := start(t, f, "r1", says("end"), func(c *runner.Config) {
			c.Deltas, c.Tools = d, tools{execute: streams}
			offered := false
			c.Adopt = func(string) (runner.Held, bool) {
				first := !offered
				offered = true
				return runner.Held{RunID: "R", Fence: 7}, first
			}
		})
		synctest.Wait()
		stop()
		if diff := cmp.Diff([]string{"2.0", "2.1", "3.0"}, d.numbers(t)); diff != "" {
			t.Errorf("deltas (-want +got):\n%s", diff)
		}
	})
}

// TestDeltas_OfParallelTools go out in the order of their numbers.
func TestDeltas_OfParallelTools(t *testing.T) {
	t.Parallel()
	f, d := requested(), &deltas{}
	const calls, each = 4, 500
	var ready sync.WaitGroup
	ready.Add(calls)
	finished := make(chan struct{})
	f.hook = func(_ context.Context, name string, _ body) (*aggregate.Reply, error) {
		if name == "run.finish" {
			close(finished)
		}
		return nil, nil
	}
	stop := start(t, f, "r1", says("call a=A b=B c=C d=D", "end"), func(c *runner.Config) {
		c.Deltas = d
		c.Tools = tools{execute: func(_ context.Context, _ tool.Call, output func(string)) tool.Result {
			ready.Done()
			ready.Wait()
			for range each {
				output("x")
			}
			return tool.Result{Success: true}
		}}
	})
	<-finished
	stop()
	var want []string
	for i := range calls * each {
		want = append(want, fmt.Sprintf("0.%d", i))
	}
	if got := d.numbers(t); !slices.Equal(got, append(want, "1.0")) {
		t.Errorf("%d deltas, out of order", len(got))
	}
}
