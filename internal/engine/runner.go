package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
	"culm/runner"
	"culm/tool"

	"github.com/nats-io/nats.go"
)

// runnerActor speaks for the built-in runner.
const runnerActor = "runner"

// direct gives the built-in runner's commands to the rules without a detour
// over NATS; they are answered by the same rules, durable like any other.
type direct struct {
	handler  *aggregate.Handler
	rules    aggregate.Service // the handler, measured
	subjects bus.Subjects
	wake     *wakeUps
}

// Do implements runner.Engine.
func (d direct) Do(ctx context.Context, session string, c runner.Command) (aggregate.Reply, error) {
	body, err := json.Marshal(c.Data)
	if err != nil {
		return aggregate.Reply{}, fmt.Errorf("spell %s: %w", c.Name, err)
	}
	r := aggregate.Request{
		Actor: runnerActor, Session: session, Name: c.Name, Body: body, ID: c.ID,
		Digest: events.CommandDigest(d.subjects.Command(runnerActor, session, c.Name), body),
	}
	out := make(chan aggregate.Reply, 1)
	d.rules.Handle(ctx, r, func(r aggregate.Reply) { out <- r })
	select {
	case r := <-out:
		return r, nil
	case <-ctx.Done():
		return aggregate.Reply{}, ctx.Err()
	}
}

// Next implements runner.Engine. What the runner was woken for may have been
// stored by another engine: if this one's copy of the session does not show it,
// it is brought up to the log first.
func (d direct) Next(ctx context.Context, session string) (aggregate.Step, error) {
	st, err := d.handler.Next(ctx, session)
	if err != nil || !d.wake.news(session) || st.Kind == aggregate.StepClaim || st.Cancelled {
		return st, err
	}
	current := make(chan struct{})
	d.handler.Read(ctx, session, aggregate.ReadQuery{}, func(aggregate.ReadReply) { close(current) })
	select {
	case <-current:
		return d.handler.Next(ctx, session)
	case <-ctx.Done():
		return st, ctx.Err()
	}
}

// deltas publishes what is streamed; it is not stored.
type deltas struct {
	nc       *nats.Conn
	subjects bus.Subjects
}

// Publish implements runner.Deltas. The connection's buffer takes it; what does
// not get through is lost, as deltas may be.
func (d deltas) Publish(session, run string, payload []byte) {
	_ = d.nc.Publish(d.subjects.Delta(session, run), payload)
}

// runnerConfig is the built-in runner over this engine.
func (e *engine) runnerConfig(in *instances, w *wakeUps) runner.Config {
	name := e.cfg.RunnerName
	if name == "" {
		name = "r-" + ulid.Make().String()
	}
	var tools tool.Tools = in.tools
	if e.cfg.Tools != nil {
		tools = liveTools{in.tools, e.cfg.Live, e.cfg.Tools}
	}
	return runner.Config{
		Engine: direct{e.handler, e.rules, e.subjects, w}, Wake: w.names, Name: name, Providers: &in.registry, DefaultProvider: in.first,
		Tools: tools, Deltas: deltas{e.nc, e.subjects}, Sessions: e.cfg.Sessions, Log: e.log,
	}
}

// wakeUps feeds the runner: every event that may owe it something, now and then
// every session that is in memory, and the runs that keepOn looks for.
type wakeUps struct {
	names  chan string
	unseen sync.Map // sessions with an event that asks for something, until news
}

// wakeTypes are the events after which a runner may have something to do that
// it does not hold already; true for those that ask for something.
var wakeTypes = map[string]bool{
	"run.requested": true, "approval.decided": true, "question.answered": true, "question.expired": true, "tool.resolved": true,
	"run.cancel_requested": true, "run.finished": false, "run.interrupted": false, "session.closed": false,
}

func (w *wakeUps) event(ctx context.Context, r events.Record) error {
	asks, wakes := wakeTypes[r.Type]
	if asks {
		w.unseen.Store(r.Session, nil)
	}
	if wakes {
		w.wake(ctx, r.Session)
	}
	return nil
}

// news says, once, that an event asked for something in the session.
func (w *wakeUps) news(session string) bool {
	_, asked := w.unseen.LoadAndDelete(session)
	return asked
}

func (w *wakeUps) wake(ctx context.Context, session string) {
	select {
	case w.names <- session:
	case <-ctx.Done():
	}
}

// owed wakes for a step that a runner could pay.
func (w *wakeUps) owed(ctx context.Context, st aggregate.Step) {
	if st.Kind == aggregate.StepClaim {
		w.wake(ctx, st.Session)
	}
}

// surveyEvery is how many sweeps of what is in memory go by until all sessions
// of the log are looked at again: another engine may have died with theirs.
const surveyEvery = 60

// look is a sweep, or a survey, by rest: where no session had a run, nor waited
// for anybody, the next has nothing to find until the server stores something.
func look(ctx context.Context, rest *bus.Rest, by func(context.Context, func(aggregate.Step)) error, owed func(aggregate.Step)) error {
	var busy atomic.Bool
	rest.Begin(0)
	err := by(ctx, func(st aggregate.Step) {
		if st.Kind != aggregate.StepNothing {
			busy.Store(true)
		}
		owed(st)
	})
	rest.End(err == nil && !busy.Load())
	return err
}

// sweeps looks for dead runs, and for requested runs that no event announced.
func (e *engine) sweeps(ctx context.Context, w *wakeUps) error {
	owed := func(st aggregate.Step) {
		if w != nil {
			w.owed(ctx, st)
		}
	}
	if err := e.handler.Survey(ctx, owed); err != nil && ctx.Err() == nil {
		e.log.Warn("survey of all sessions", "err", err)
	}
	tick := time.NewTicker(e.cfg.Lease / 3)
	defer tick.Stop()
	rest := bus.NewRest(e.server)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			by := e.handler.Sweep
			if n%surveyEvery == 0 {
				by = e.handler.Survey
			} else if !rest.Due(0) {
				continue
			}
			if err := look(ctx, rest, by, owed); err != nil && ctx.Err() == nil {
				e.log.Warn("sweep", "err", err)
			}
		}
	}
}
