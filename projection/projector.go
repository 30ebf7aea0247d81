package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"culm/events"
)

// Options are what a Projector works with. File, Log and Feed are needed; the
// rest has defaults.
type Options struct {
	// File of the database; FILE-wal, FILE-shm and FILE.lock stand beside it.
	File string
	Log  events.Log
	Feed events.Feed
	// LogID tells the log from others: the same at each start and for all
	// processes of one installation. "" is not known, and compared with nothing.
	LogID string
	// TakeOver follows Log also where the views are those of another log, as
	// after its folder was emptied; without it they are refused (ErrOtherLog).
	TakeOver bool
	// BatchEvents and BatchDelay bound a transaction that more events wait for;
	// when none wait it is committed at once. 2000 and 20 ms.
	BatchEvents int
	BatchDelay  time.Duration
	// Sweep is the time between comparisons with the log, 10 s; longer where
	// the comparison itself takes long, and while Rest says that none is due.
	Sweep time.Duration
	// Rest knows when a comparison can find nothing; nil knows nothing.
	Rest Rest
	// Readers is how many sessions are read from the log at once, 4.
	Readers int
	// Sessions is how many sessions are kept in memory, 4096.
	Sessions int
	// MaxReply bounds the JSON of one answer in bytes, 1 MiB less 4 KiB.
	MaxReply int
	// Gone is told the name of each session that the views have dropped because
	// the log has it no more; it must not block. nil is told nothing.
	Gone   func(session string)
	Now    func() time.Time
	Logger *slog.Logger

	views []view // replaced by tests
}

func (o *Options) fill() {
	o.BatchEvents = orDefault(o.BatchEvents, 2000)
	o.BatchDelay = orDefault(o.BatchDelay, 20*time.Millisecond)
	o.Sweep = orDefault(o.Sweep, 10*time.Second)
	o.Readers = orDefault(o.Readers, 4)
	o.Sessions = orDefault(o.Sessions, 4096)
	o.MaxReply = orDefault(o.MaxReply, 1<<20-4096)
	if o.Rest == nil {
		o.Rest = noRest{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.views == nil {
		o.views = views
	}
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Projector keeps the views of one database and answers queries about them.
// Queries may run at any time, concurrently; Run once.
type Projector struct {
	opts  Options
	pos   positions
	ready chan struct{} // closed when Run has caught up for the first time
	stats counters

	readyOnce sync.Once
	mu        sync.RWMutex // held by queries for reading, for a switch of databases for writing
	db        *database
}

// counters are what Stats tells; the applier sets them.
type counters struct {
	applied, batches, resets atomic.Uint64
	behind                   atomic.Int64 // events known and not applied
	behindSince              atomic.Int64 // Unix nanoseconds, 0 if none are
	reading                  atomic.Int64 // sessions being read, or waiting for that
	rebuilding               sync.Map     // names of views
}

// Open opens the database, and makes it if it is not there. It returns
// ErrLocked if another projector has it, ErrNewer if a newer program made it,
// ErrOtherLog if its views are of another log than o.LogID.
func Open(ctx context.Context, o Options) (*Projector, error) {
	o.fill()
	db, err := openDatabase(ctx, &o)
	if err != nil {
		return nil, err
	}
	p := &Projector{opts: o, db: db, ready: make(chan struct{})}
	p.pos.init()
	if err := p.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.File, err), db.close())
	}
	return p, nil
}

// create makes the tables of views that are not there at all, so that queries
// find them; what they lack, Run adds.
func (p *Projector) create(ctx context.Context) error {
	var tables int
	if err := p.db.write.QueryRowContext(ctx, "SELECT count(*) FROM views").Scan(&tables); err != nil {
		return err
	}
	w := newWriter(context.WithoutCancel(ctx), p.db, p.opts.views)
	defer w.close()
	if tables == 0 {
		if err := w.renew(); err != nil {
			return err
		}
		if err := w.finish(); err != nil {
			return err
		}
	}
	return p.loadPositions(ctx)
}

// loadPositions lets waits for a sequence know what the database holds: at the
// start, and after a switch to one that may hold less.
func (p *Projector) loadPositions(ctx context.Context) error {
	rows, err := scanAll(ctx, p.db.write, checkpointsTable, "true")
	if err != nil {
		return err
	}
	at := make(map[string]position, len(rows))
	for _, c := range rows {
		at[c.Session] = position{uint64(c.Seq), c.StuckReason} //nolint:gosec // was a sequence
	}
	p.pos.replace(at)
	return nil
}

// Close ends queries and closes the database. Run must have returned.
func (p *Projector) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return nil
	}
	err := p.db.close()
	p.db = nil
	return err
}

// Ready is closed when Run has caught up with the log for the first time.
func (p *Projector) Ready() <-chan struct{} { return p.ready }

// Run brings the views up to date and keeps them so until ctx ends, then
// commits what it has and returns nil. It returns ErrTaken if another process
// took the database over, what the feed ended with, or what SQLite says.
func (p *Projector) Run(ctx context.Context) error {
	for {
		err := p.refresh(ctx)
		if err == nil {
			err = p.follow(ctx)
		}
		if errors.Is(err, errSwitch) {
			err = p.switchOver(ctx)
		}
		if err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

// follow applies events until ctx ends or a rebuilt database is there.
func (p *Projector) follow(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	a, err := newApplier(ctx, p)
	if err != nil {
		return err
	}
	defer a.w.close()
	subscribed := make(chan struct{})
	g.Go(func() error { return p.listen(ctx, a, subscribed) })
	g.Go(func() error { return p.survey(ctx, a, subscribed) })
	g.Go(func() error { return p.awaitSwitch(ctx) })
	var applied error
	g.Go(func() error { applied = a.run(ctx); return applied })
	err = g.Wait()
	if applied != nil && !errors.Is(applied, context.Canceled) {
		return applied // also where the others ended first
	}
	return err
}

// ignoreEnd is nil for an error that only says that ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// listen hands the live events to the applier. It begins with what is new:
// what is old, the applier reads from the log itself, several sessions at once.
func (p *Projector) listen(ctx context.Context, a *applier, subscribed chan struct{}) error {
	var once sync.Once
	err := p.opts.Feed.Follow(ctx, events.FollowOptions{CaughtUp: func() { once.Do(func() { close(subscribed) }) }}, func(r events.Record) error {
		select {
		case a.live <- decode(r):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err == nil {
		err = errors.New("the feed has ended")
	}
	return err
}

// decoded is one stored event, decoded away from the goroutine that writes.
type decoded struct {
	rec  events.Record
	ev   events.Event
	hash string
	err  error
}

func decode(r events.Record) decoded {
	e, err := events.Decode(r.Payload)
	if err == nil && e.Session != r.Session {
		err = fmt.Errorf("%w: of session %s", events.ErrBirth, e.Session)
	}
	return decoded{rec: r, ev: e, hash: events.Hash(r.Payload), err: err}
}

// head is the log's head after the event.
func (d *decoded) head() events.Head {
	return events.Head{Seq: d.rec.Seq, Hash: d.hash, ID: d.ev.ID, Birth: d.ev.Birth, Session: d.rec.Session}
}

// look runs f in a read transaction: everything it reads is of one moment.
func (p *Projector) look(ctx context.Context, f func(tx *sql.Tx) error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.db == nil || p.db.read == nil { // stopped, or a rebuilt database could not be taken
		return fmt.Errorf("%w: the projector is closed", events.ErrUnavailable)
	}
	tx, err := p.db.read.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	return f(tx)
}
