package projection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"culm/events"
)

// refresh computes the views anew whose version in the database is not the
// program's. It reads each session up to its checkpoint; a process that dies
// meanwhile begins again.
func (p *Projector) refresh(ctx context.Context) error {
	stale, unknown, err := staleViews(ctx, p.db.write, p.opts.views)
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	w := newWriter(context.WithoutCancel(ctx), p.db, stale)
	defer w.close()
	for _, name := range unknown {
		// Nobody keeps it up to date now: whoever knows it again begins anew.
		if err := w.put("DELETE FROM views WHERE name = ?", []any{name}); err != nil {
			return err
		}
	}
	if len(stale) == 0 {
		return nil
	}
	for i := range stale {
		p.stats.rebuilding.Store(stale[i].name, true)
		defer p.stats.rebuilding.Delete(stale[i].name)
		p.opts.Logger.Info("view is computed anew", "view", stale[i].name, "version", stale[i].version)
	}
	if err := w.renew(); err != nil {
		return err
	}
	if err := p.replayAll(ctx, w); err != nil {
		return fmt.Errorf("compute views anew: %w", err)
	}
	return w.finish()
}

func (p *Projector) replayAll(ctx context.Context, w *writer) error {
	rows, err := scanAll(ctx, p.db.write, checkpointsTable, "true ORDER BY session")
	if err != nil {
		return err
	}
	told, events := time.Now(), 0
	for i, c := range rows {
		n, err := p.replay(ctx, w, c)
		if err != nil {
			return err
		}
		if events += n; time.Since(told) >= 2*time.Second {
			told = time.Now()
			p.opts.Logger.Info("computing views anew", "sessions_left", len(rows)-i-1, "sessions", len(rows), "events", events)
		}
	}
	return nil
}

// replay writes one session's rows of the writer's views, as of its checkpoint.
// A session whose events cannot be replayed is forgotten in all views: it is
// read from its beginning afterwards, and parked there if it must be.
func (p *Projector) replay(ctx context.Context, w *writer, c *checkpointRow) (events int, err error) {
	for {
		events, err = p.replayOnce(ctx, w, c)
		if err == nil || !isUnavailable(err) {
			break
		}
		p.opts.Logger.Warn("a session could not be read, to be tried again", "session", c.Session, "err", err)
		if err := w.transact(func() error { return w.remove(c.Session) }); err != nil {
			return 0, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if !errors.Is(err, errReplay) {
		return events, err
	}
	p.opts.Logger.Warn("a session is read from its beginning", "session", c.Session, "err", err)
	all := newWriter(w.ctx, p.db, p.opts.views)
	defer all.close()
	p.pos.set(c.Session, position{})
	return events, all.transact(func() error {
		if err := all.remove(c.Session); err != nil {
			return err
		}
		return all.put("DELETE FROM checkpoints WHERE session = ?", []any{c.Session})
	})
}

// errReplay: the events up to the checkpoint do not lead to it.
var errReplay = errors.New("the events do not lead to the checkpoint")

func isUnavailable(err error) bool { return errors.Is(err, events.ErrUnavailable) }

func (p *Projector) replayOnce(ctx context.Context, w *writer, c *checkpointRow) (n int, err error) {
	l, head := newLive(c.Session), events.Head{}
	write := func() error {
		err := w.transact(func() error { return w.write(l) })
		l.out = changes{}
		return err
	}
	if c.Seq > 0 {
		for r, err := range p.opts.Log.Read(ctx, c.Session, 0, uint64(c.Seq)) { //nolint:gosec // was a sequence
			if isUnavailable(err) || ctx.Err() != nil {
				return n, errors.Join(err, ctx.Err())
			}
			var d decoded
			if err == nil {
				d = decode(r)
				err = d.err
			}
			if err == nil {
				err = head.Check(&d.ev, r.Seq)
			}
			if err == nil {
				err = safely(l, &d)
			}
			if err != nil {
				return n, fmt.Errorf("%w: %w", errReplay, err)
			}
			head = d.head()
			if n++; n%p.opts.BatchEvents == 0 {
				if err := write(); err != nil {
					return n, err
				}
			}
		}
	}
	if head.Hash != c.Hash {
		return n, errReplay
	}
	l.row.StuckSeq, l.row.StuckReason = c.StuckSeq, c.StuckReason
	l.row.Status = l.status()
	return n, write()
}

// Names of the files of a rebuild, beside the database.
const (
	buildingSuffix = ".new"   // being built
	builtSuffix    = ".ready" // complete, to take the database's place
)

// Rebuild computes all views anew in a file beside the database and then
// switches to it. A projector that runs on the database meanwhile goes on, and
// takes the new one over by itself. Feed is not used.
func Rebuild(ctx context.Context, o Options) error {
	o.fill()
	target, building := o.File, o.File+buildingSuffix
	built := target + builtSuffix
	lock, err := lockFile(building + ".lock")
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := errors.Join(lock.release(), removeDatabase(building)); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	o.File, o.Feed = building, idleFeed{}
	if err := build(ctx, o); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := os.Rename(building, built); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	_ = os.Remove(building + ".lock") // of no more use
	if lock, err = lockFile(target + ".lock"); err == nil {
		return errors.Join(adopt(target, o.Logger), lock.release())
	}
	if !errors.Is(err, ErrLocked) {
		return err
	}
	return awaitAdopted(ctx, built)
}

// build runs a projector until it has caught up.
func build(ctx context.Context, o Options) error {
	p, err := Open(ctx, o)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()
	select {
	case <-p.Ready():
		stop()
		err = <-ended
	case err = <-ended:
		if err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, p.Close())
}

// adoptionTime is how long a running projector may take to switch.
const adoptionTime = 60 * time.Second

func awaitAdopted(ctx context.Context, built string) error {
	ctx, cancel := context.WithTimeout(ctx, adoptionTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(built); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is complete; the running projector has not taken it over and will when it starts anew: %w", built, ctx.Err())
		}
	}
}

// idleFeed brings nothing: whoever uses it reads the log and is done.
type idleFeed struct{}

func (idleFeed) Follow(ctx context.Context, o events.FollowOptions, _ func(events.Record) error) error {
	if o.CaughtUp != nil {
		o.CaughtUp()
	}
	<-ctx.Done()
	return ctx.Err()
}

// adopt puts a complete rebuilt database in the place of the file. The caller
// holds the lock, or is about to take it; a process that dies in between
// leaves it to the next.
func adopt(file string, log *slog.Logger) error {
	built := file + builtSuffix
	if _, err := os.Stat(built); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := removeDatabase(file); err != nil {
		return fmt.Errorf("switch to %s: %w", built, err)
	}
	if err := os.Rename(built, file); err != nil {
		return fmt.Errorf("switch to %s: %w", built, err)
	}
	log.Info("switched to the rebuilt database", "file", file)
	return nil
}

// removeDatabase removes a database file and what SQLite keeps beside it.
func removeDatabase(file string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// errSwitch ends following: a rebuilt database is there.
var errSwitch = errors.New("switch to the rebuilt database")

// awaitSwitch returns errSwitch within five seconds of a complete rebuilt database.
func (p *Projector) awaitSwitch(ctx context.Context) error {
	tick := time.NewTicker(min(p.opts.Sweep, 5*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := os.Stat(p.opts.File + builtSuffix); err == nil {
				return errSwitch
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// switchOver takes the rebuilt database; queries wait that long.
func (p *Projector) switchOver(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.db.closeFiles(); err != nil {
		return err
	}
	if err := adopt(p.opts.File, p.opts.Logger); err != nil {
		return err
	}
	if err := p.db.open(ctx); err != nil {
		return err
	}
	return p.loadPositions(ctx)
}
