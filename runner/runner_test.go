package runner_test

import (
	"context"
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

// says answers with the given texts in turn; "call a=Read b=Write" asks for
// two calls, each given as id=name.
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
	access  map[string]tool.Access
}

func (t tools) Describe(c tool.Call) tool.Access {
	a, ok := t.access[c.Name]
	if !ok {
		a = tool.AccessByName(c.Name)
	}
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

// several is an engine of many sessions.
type several map[string]*fake

func (e several) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	return e[session].Do(ctx, "S", c)
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
