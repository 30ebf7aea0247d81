package projection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"culm/events"
)

// applier is the one goroutine that owns the heads of all sessions and the
// writing connection. Events come to it from the feed and from jobs.
type applier struct {
	p       *Projector
	w       *writer
	live    chan decoded
	answers chan answer
	surveys chan survey
	all     map[string]*tracked
	batch   batch
	cached  []*tracked // that may have their rows in memory, oldest first
	kept    int        // bytes of those rows, about
	queue   []job      // jobs that wait for a reader
	running int
	lastJob uint64
	readers sync.WaitGroup
	first   map[*tracked]bool // sessions to be read before the views are ready
	ready   bool
	told    time.Time // last line about progress
}

// tracked is one session as the applier knows it.
type tracked struct {
	session string
	head    events.Head // after the events applied, the open batch included
	at      int64       // time of the event at the head
	mark    uint64      // number of events applied when this session last moved
	seen    uint64      // highest sequence known to be in the log
	job     uint64      // running or queued, 0 for none
	early   []decoded   // live events that came while a job ran
	stuck   *stuck
	retried bool  // was stuck when the database was opened
	gone    bool  // the log has no such session
	live    *live // nil if not in memory
	cached  bool  // in applier.cached
	kept    int   // of applier.kept
	batched bool  // in the open batch
	applied []decoded
}

// stuck is why a session is parked.
type stuck struct {
	seq          uint64
	code, reason string
}

// maxEarly bounds the live events that wait for one session's job.
const maxEarly = 1024

func newApplier(ctx context.Context, p *Projector) (*applier, error) {
	a := &applier{
		p: p, w: newWriter(context.WithoutCancel(ctx), p.db, p.opts.views), all: map[string]*tracked{},
		live: make(chan decoded, 256), answers: make(chan answer, 8), surveys: make(chan survey, 1), told: time.Now(),
	}
	// What an applier of another database was behind by, and read, is no more.
	p.stats.behind.Store(0)
	p.stats.behindSince.Store(0)
	p.stats.reading.Store(0)
	rows, err := scanAll(ctx, p.db.write, checkpointsTable, "true")
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	for _, c := range rows {
		seq := uint64(c.Seq) //nolint:gosec // was a sequence
		t := &tracked{session: c.Session, at: c.At, seen: seq, retried: c.StuckSeq > 0}
		if seq > 0 {
			t.head = events.Head{Seq: seq, Hash: c.Hash, ID: c.EventID, Birth: c.Birth, Session: c.Session}
		}
		a.all[c.Session] = t
	}
	return a, nil
}

// run applies what comes until ctx ends; then it commits what it has.
func (a *applier) run(ctx context.Context) error {
	defer a.readers.Wait()
	for {
		err := a.next(ctx)
		if err == nil && a.full() {
			err = a.flush()
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			if err := a.flush(); err != nil {
				return err
			}
			return ctx.Err()
		}
		a.progress()
	}
}

// next takes one thing that has come; when nothing has, it commits and waits.
// Nobody else takes anything from the channels.
func (a *applier) next(ctx context.Context) error {
	var soon <-chan time.Time
	switch {
	case len(a.live)+len(a.answers)+len(a.surveys) > 0:
	case a.running > 0 && a.batch.events > 0:
		// A reader is about to bring more for this transaction.
		timer := time.NewTimer(a.delay() - time.Since(a.batch.since))
		defer timer.Stop()
		soon = timer.C
	default:
		if err := a.flush(); err != nil {
			return err
		}
		a.settled()
	}
	select {
	case d := <-a.live:
		return a.fromFeed(ctx, d)
	case n := <-a.answers:
		return a.fromJob(ctx, n)
	case s := <-a.surveys:
		return a.compare(ctx, s)
	case <-soon:
		return a.flush()
	case <-ctx.Done():
		return nil
	}
}

// settled says once that all that was there at the start has been applied.
func (a *applier) settled() {
	if !a.ready && a.first != nil && len(a.first) == 0 {
		a.ready = true
		a.p.opts.Logger.Info("views are up to date", "sessions", len(a.all), "events", a.p.stats.applied.Load())
		a.p.readyOnce.Do(func() { close(a.p.ready) })
	}
}

// progress says now and then how far the catch-up is.
func (a *applier) progress() {
	if a.ready || len(a.first) == 0 || time.Since(a.told) < 2*time.Second {
		return
	}
	a.told = time.Now()
	a.p.opts.Logger.Info("catching up", "sessions_left", len(a.first), "sessions", len(a.all), "events", a.p.stats.applied.Load())
}

func (a *applier) track(session string) *tracked {
	t := a.all[session]
	if t == nil {
		t = &tracked{session: session}
		a.all[session] = t
	}
	return t
}

// fromFeed applies a live event that fits; anything else is a reason to read
// the log, which alone can be trusted.
func (a *applier) fromFeed(ctx context.Context, d decoded) error {
	t := a.track(d.rec.Session)
	a.see(t, d.rec.Seq)
	switch {
	case t.stuck != nil:
		return nil
	case t.job != 0:
		if len(t.early) < maxEarly {
			t.early = append(t.early, d)
		}
		return nil
	case d.rec.Seq < t.head.Seq, d.rec.Seq == t.head.Seq && d.hash == t.head.Hash:
		return nil // delivered again
	}
	if d.err != nil || t.head.Check(&d.ev, d.rec.Seq) != nil {
		a.start(ctx, t, d.rec.Seq)
		return nil
	}
	return a.apply(t, d)
}

// fromJob applies what was read from the log.
func (a *applier) fromJob(ctx context.Context, n answer) error {
	t := a.all[n.session]
	if t == nil || t.job != n.job {
		return nil
	}
	if n.reset != "" || n.gone {
		if err := a.reset(t, n); err != nil {
			return err
		}
	}
	for _, d := range n.events {
		a.see(t, d.rec.Seq)
		if t.stuck != nil || d.rec.Seq <= t.head.Seq {
			continue
		}
		err := d.err
		if err == nil {
			err = t.head.Check(&d.ev, d.rec.Seq)
		}
		if err == nil {
			err = a.apply(t, d)
		} else {
			err = a.park(t, d.rec.Seq, err)
		}
		if err != nil {
			return err
		}
		if a.full() {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	if n.done {
		return a.finished(ctx, t)
	}
	return nil
}
