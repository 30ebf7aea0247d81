package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/provider"
	"culm/runner"
	"culm/tool"
)

// dice is a random source for concurrent use.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// once in n.
func (d *dice) once(n int) bool { return d.n(n) == 0 }

// world is one history: a log, two engines, two runners, and what really ran.
type world struct {
	t       *testing.T
	dice    *dice
	log     *events.Mem
	leases  *leases
	engines [2]atomic.Pointer[aggregate.Handler]
	runners [2]*process
	names   int
	calm    atomic.Bool // nothing fails any more

	mu  sync.Mutex
	ran map[string][2]int // by argument bytes: as asked for, as replayed
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}, log: events.NewMem(), leases: &leases{until: map[string]time.Time{}}, ran: map[string][2]int{}}
	w.log.FailAppends(func(events.AppendCall) events.Fault {
		switch n := w.dice.n(40); {
		case w.calm.Load():
		case n == 0:
			return events.FaultBefore
		case n == 1:
			return events.FaultAfter
		}
		return events.FaultNone
	})
	for i := range w.engines {
		w.engines[i].Store(w.engine())
	}
	for i := range w.runners {
		w.runners[i] = w.runner(i)
	}
	return w
}

func (w *world) engine() *aggregate.Handler {
	p, err := policy.New(policy.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	return aggregate.NewHandler(aggregate.Options{
		Log: w.log, Leases: w.leases, Barrier: durable{}, Config: func() aggregate.Config { return aggregate.Config{LeaseMS: 15000, Policy: p} },
	})
}

// restart puts a new engine in the place of one that stops at once.
func (w *world) restart(i int) {
	old := w.engines[i].Swap(w.engine())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = old.Close(ctx)
}

// process is a runner that may die at any moment; then nothing of it goes on.
type process struct {
	w    *world
	i    int
	dead atomic.Bool
	stop context.CancelFunc
	done sync.WaitGroup
}

var errDead = errors.New("the process has died")

func (w *world) runner(i int) *process {
	w.names++
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{w: w, i: i, stop: cancel}
	wake := make(chan string, 100)
	var providers provider.Registry
	if err := providers.Add("p", model{w}); err != nil {
		w.t.Fatal(err)
	}
	r, err := runner.New(runner.Config{
		Engine: p, Wake: wake, Name: fmt.Sprintf("r%d", w.names), Providers: &providers, Tools: tools{p}, Grace: time.Second, Patience: time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.done.Go(func() { _ = r.Run(ctx) })
	p.done.Go(func() {
		for ctx.Err() == nil {
			select {
			case wake <- session:
			default:
			}
			rest(ctx, time.Second)
		}
	})
	return p
}

// die ends the process without a word to anybody.
func (p *process) die() {
	p.dead.Store(true)
	p.stop()
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Do lets the process die before a command, or after it was judged.
func (p *process) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	if p.trips() {
		return aggregate.Reply{}, errDead
	}
	reply, err := give(ctx, p.w.engines[p.i].Load(), "runner", session, c)
	if p.trips() {
		return aggregate.Reply{}, errDead
	}
	return reply, err
}

func (p *process) Next(ctx context.Context, session string) (aggregate.Step, error) {
	if p.dead.Load() {
		return aggregate.Step{}, errDead
	}
	return p.w.engines[p.i].Load().Next(ctx, session)
}

func (p *process) trips() bool {
	if !p.dead.Load() && !p.w.calm.Load() && p.w.dice.once(60) {
		p.die()
	}
	return p.dead.Load()
}

// give gives a command to an engine.
func give(ctx context.Context, h *aggregate.Handler, actor, session string, c runner.Command) (aggregate.Reply, error) {
	body, err := json.Marshal(c.Data)
	if err != nil {
		return aggregate.Reply{}, err
	}
	replies := make(chan aggregate.Reply, 1)
	h.Handle(ctx, aggregate.Request{
		Actor: actor, Session: session, Name: c.Name, Body: body, ID: c.ID, Digest: events.CommandDigest(c.Name, body),
	}, func(r aggregate.Reply) { replies <- r })
	select {
	case r := <-replies:
		return r, nil
	case <-ctx.Done():
		return aggregate.Reply{}, ctx.Err()
	}
}

// leases are kept outside of the log and forgotten by nobody.
type leases struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (*leases) Duration() time.Duration { return 15 * time.Second }

func (l *leases) Renew(_ context.Context, _, run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[run] = time.Now().Add(l.Duration())
	return nil
}

func (l *leases) Alive(_ context.Context, _, run string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until[run]), nil
}

func (*leases) Release(context.Context, string) error { return nil }

type durable struct{}

func (durable) Mark() uint64                    { return 1 }
func (durable) Then(_ uint64, done func(error)) { done(nil) }

// model answers with calls at first and with text later; the same answer for
// the same ordinal.
type model struct{ w *world }

func (m model) Generate(ctx context.Context, r provider.Request, _ func(provider.Delta)) (provider.Answer, error) {
	rest(ctx, time.Duration(m.w.dice.n(3000))*time.Millisecond)
	if !m.w.calm.Load() && m.w.dice.once(30) {
		return provider.Answer{}, &provider.Error{Code: "http_500", Message: "down", Retryable: m.w.dice.once(2)}
	}
	a := provider.Answer{Content: "text"}
	if r.Summary || r.Answers%3 == 2 || r.Answers > 12 {
		return a, nil
	}
	for i := range 1 + (r.Answers+1)%3 {
		kind := []string{"ask", "free", "ask"}[(r.Answers+i)%3]
		a.ToolCalls = append(a.ToolCalls, provider.ToolCall{ID: fmt.Sprint("c", i), Name: "Write", Arguments: fmt.Sprintf(`{"path":"/%s/%d.%d"}`, kind, r.Answers, i)})
	}
	return a, nil
}

// tools are the world's: they note what really ran.
type tools struct{ p *process }

func (tools) Describe(c tool.Call) tool.Access {
	var a struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal([]byte(c.Arguments), &a)
	return tool.Access{Mutating: true, PermissionType: policy.WriteFile, Resource: a.Path}
}

func (t tools) Execute(ctx context.Context, c tool.Call, _ func(string)) tool.Result {
	w := t.p.w
	if c.Replay && w.dice.once(8) {
		return tool.Result{Ask: &tool.Question{Text: "This, too?", Approval: true}}
	}
	rest(ctx, time.Duration(w.dice.n(2000))*time.Millisecond)
	if t.p.trips() {
		return tool.Failed("died", "")
	}
	w.mu.Lock()
	n := w.ran[c.Arguments]
	if c.Replay {
		n[1]++
	} else {
		n[0]++
	}
	w.ran[c.Arguments] = n
	w.mu.Unlock()
	rest(ctx, time.Duration(w.dice.n(20000))*time.Millisecond)
	if w.dice.once(5) {
		return tool.Failed("failed", "it did not work")
	}
	return tool.Result{Success: true, Content: "done"}
}
