package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/bus"
	"culm/events"
	"culm/projection/web"
	"culm/runner"
)

// engine is one running process.
type engine struct {
	cfg      Config
	log      *slog.Logger
	subjects bus.Subjects
	server   *bus.Server // nil with a server of its own
	nc       *nats.Conn
	barrier  events.Barrier
	failed   <-chan struct{} // closed when syncs have failed for good; nil if they cannot
	sessions *bus.JetStreamLog
	metrics  *web.Metrics
	views    *views // nil without
	handler  *aggregate.Handler
	rules    aggregate.Service // the handler, measured
	service  *bus.Service
	later    *bus.Later
	ready    atomic.Bool
	// handBacks are the runs that change hands at a stop; nil without a runner.
	handBacks *handBacks
	closers   []func(context.Context) error // run in reverse
}

// drainTime bounds a graceful stop.
const drainTime = 15 * time.Second

// Run is an engine from start to graceful stop. It prints the server's address
// ("nats: URL") and "ready" on out, and returns nil once ctx has ended and what
// was under way has been answered. ErrUsage is wrapped by errors that a person
// mends on the command line.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	e := &engine{cfg: cfg, log: cfg.Logger}
	e.startMetrics()
	e.subjects, _ = bus.NewSubjects(cfg.Prefix)
	err := e.start(ctx)
	if err == nil {
		err = e.serve(ctx, out)
	}
	return errors.Join(err, e.stop())
}

// start brings the parts up in the order in which they need each other; what
// was started is closed by stop.
func (e *engine) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{e.startServer, e.startLog, e.startHandler, e.startFrontDoor} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) onStop(f func(context.Context) error) { e.closers = append(e.closers, f) }

func (e *engine) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var errs []error
	for i := len(e.closers) - 1; i >= 0; i-- {
		errs = append(errs, e.closers[i](ctx))
	}
	return errors.Join(errs...)
}

// startMetrics makes the figures, and the views that some of them come from.
// Without a folder of its own an engine has no views.
func (e *engine) startMetrics() {
	if e.cfg.NoProjector || e.cfg.Data == "" {
		e.metrics = web.NewMetrics(nil)
		return
	}
	e.views = newViews(e)
	e.metrics = web.NewMetrics(e.views.gauges)
}

func (e *engine) startLog(ctx context.Context) error {
	opts := bus.LogOptions{Subjects: e.subjects, Replicas: e.cfg.Replicas, Logger: e.log, Barrier: e.barrier}
	if e.server != nil {
		opts.Health, opts.Embedded = e.server.Healthy, true
	}
	var err error
	e.sessions, err = bus.NewJetStreamLog(ctx, e.nc, opts)
	return err
}

func (e *engine) startHandler(ctx context.Context) error {
	leases, err := bus.NewLeases(ctx, e.nc, bus.LeaseOptions{Duration: e.cfg.Lease, Replicas: e.cfg.Replicas, Logger: e.log})
	if err != nil {
		return err
	}
	snapshot, err := e.snapshot()
	if err != nil {
		return err
	}
	e.handler = aggregate.NewHandler(aggregate.Options{
		Log: e.metrics.Log(e.sessions), Leases: leases, Barrier: e.barrier, Logger: e.log,
		Config: func() aggregate.Config { return snapshot }, Headroom: bus.CheckDescriptors,
		MaxReply: int(e.nc.MaxPayload()) - bus.ReplyMargin,
	})
	e.rules = e.metrics.Service(e.handler)
	e.onStop(e.handler.Close)
	return nil
}

// snapshot is what decisions rest on: one reading of the configuration for the
// life of the process. Nothing that an agent runs may touch the engine's data.
func (e *engine) snapshot() (aggregate.Config, error) {
	permissions := e.cfg.Rules.Permissions
	own, err := e.ownFiles()
	if err != nil {
		return aggregate.Config{}, err
	}
	p, err := policy.New(permissions)
	if err != nil {
		return aggregate.Config{}, usage("permissions: %v", err)
	}
	if p.Mode() == policy.ModeAuto {
		e.log.Warn("permissions.mode is auto: dangerous operations run without asking, only deny rules stop them")
	}
	return aggregate.Config{
		LeaseMS: e.cfg.Lease.Milliseconds(), Digest: e.cfg.Rules.Digest(), Policy: p.Keep(own...), Routing: e.cfg.Rules.Routing(),
		QuestionTTL: permissions.QuestionLifetime,
	}, nil
}

// ownFiles is what the engine keeps in its data folder. The folder itself may
// hold other things.
func (e *engine) ownFiles() ([]string, error) {
	if e.cfg.Data == "" {
		return nil, nil
	}
	data, err := filepath.Abs(e.cfg.Data)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	var own []string
	for _, name := range []string{"jetstream", tokenFile, viewsFile, viewsFile + "-wal", viewsFile + "-shm"} {
		own = append(own, filepath.ToSlash(filepath.Join(data, name)))
	}
	return own, nil
}

func (e *engine) startFrontDoor(ctx context.Context) error {
	var err error
	e.service, err = bus.StartService(bus.ServiceOptions{
		Conn: e.nc, Subjects: e.subjects, Handler: e.rules, Version: e.cfg.Version, Logger: e.log,
	})
	if err != nil {
		return err
	}
	e.onStop(e.service.Stop)
	e.later, err = bus.StartLater(ctx, bus.LaterOptions{
		Conn: e.nc, Subjects: e.subjects, Handler: e.rules, Replicas: e.cfg.Replicas, Logger: e.log,
	})
	if err != nil {
		return err
	}
	e.onStop(e.later.Stop)
	return nil
}

// serve says that the engine is ready and works until ctx ends or a part fails.
func (e *engine) serve(ctx context.Context, out io.Writer) error {
	return together(ctx, func(ctx context.Context, g *errgroup.Group) error { return e.begin(ctx, g, out) })
}

// together lets parts work until ctx ends or one of them fails, and returns when
// all have ended, also where begin could not start them all.
func together(ctx context.Context, begin func(context.Context, *errgroup.Group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	err := begin(ctx, g)
	if err == nil {
		<-ctx.Done()
	}
	cancel()
	return errors.Join(err, unlessCanceled(g.Wait()))
}

// begin starts the parts that work by themselves.
func (e *engine) begin(ctx context.Context, g *errgroup.Group, out io.Writer) error {
	serveHTTP, err := e.startHTTP()
	if err != nil {
		return err
	}
	g.Go(func() error { return serveHTTP(ctx) })
	if e.views != nil {
		g.Go(func() error { return e.views.run(ctx) })
	}
	if err := e.startRunner(ctx, g); err != nil {
		return err
	}
	g.Go(func() error { return e.watchSync(ctx) })
	g.Go(func() error { return keepSmall(ctx) })
	g.Go(func() error { return keepPace(ctx) })
	if e.views != nil {
		e.views.awaitFirst(ctx)
	}
	url := bus.Redact(e.cfg.NATS)
	if e.server != nil {
		url = e.server.URL()
	}
	e.ready.Store(true)
	context.AfterFunc(ctx, func() { e.ready.Store(false) })
	if _, err := fmt.Fprintf(out, "nats: %s\nready\n", url); err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	return nil
}

// unlessCanceled takes the end that was asked for as none.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// startRunner starts the built-in runner and what wakes it, or only the sweeps.
func (e *engine) startRunner(ctx context.Context, g *errgroup.Group) error {
	w := &wakeUps{names: make(chan string, 256)}
	if e.cfg.NoRunner {
		g.Go(func() error { return e.sweeps(ctx, nil) })
		return nil
	}
	in, err := openProviders(e.cfg.Rules.Providers, e.cfg.Live)
	if err != nil {
		return err
	}
	rc := e.runnerConfig(in, w)
	e.log.Info("runner", "providers", in.registry.IDs())
	if len(in.elsewhere) > 0 {
		e.log.Warn("this engine has no client for the types of these providers: their sessions wait for a runner elsewhere", "providers", in.elsewhere)
	}
	if err := e.startHandBack(ctx, &rc); err != nil {
		return err
	}
	r, err := runner.New(rc)
	if err != nil {
		return err
	}
	feed := e.feed()
	g.Go(func() error { return r.Run(ctx) })
	g.Go(func() error {
		return feed.Follow(ctx, events.FollowOptions{}, func(rec events.Record) error { return w.event(ctx, rec) })
	})
	g.Go(func() error { return e.sweeps(ctx, w) })
	g.Go(func() error { return e.handBacks.keepOn(ctx, w, r.Resting) })
	return nil
}

// watchSync ends the engine when a sync has failed: nothing more can be
// promised, and a sync is never tried again.
func (e *engine) watchSync(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.failed:
		return errSync
	}
}

var errSync = errors.New("a sync of the data folder failed: the disk can no longer be trusted with what was written; answers stop here. Check the disk, then start the engine again")
