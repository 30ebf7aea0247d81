package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"culm/bus"
	"culm/events"
	"culm/projection"
	"culm/projection/web"
)

// viewsFile is the database of the views in the data folder.
const viewsFile = "views.db"

const (
	viewsPause = 10 * time.Second // between attempts to have views at all
	viewsFirst = 2 * time.Second  // that the engine waits with its "ready" for the first
)

// views keeps the projector of an engine. The engine does its work without:
// where the database is in use elsewhere, or the disk refuses it, the views are
// missing, the log says so, and they are tried again.
type views struct {
	e       *engine
	current atomic.Pointer[projection.Projector]
	gone    web.Gone
	tried   chan struct{} // closed when queries are answered, or the first attempt at that failed
	first   func()        // closes tried, once
	logID   string        // "" until it was asked for
	opened  bool          // the database was, at least once
}

func newViews(e *engine) *views {
	tried := make(chan struct{})
	return &views{e: e, gone: web.NewGone(), tried: tried, first: sync.OnceFunc(func() { close(tried) })}
}

// awaitFirst lets who was told that the engine is ready find its queries
// answered, unless the database takes its time.
func (v *views) awaitFirst(ctx context.Context) {
	late := time.NewTimer(viewsFirst)
	defer late.Stop()
	select {
	case <-v.tried:
	case <-late.C:
	case <-ctx.Done():
	}
}

// run has views until ctx ends.
func (v *views) run(ctx context.Context) error {
	for {
		err := v.keepUp(ctx)
		v.first()
		if ctx.Err() != nil {
			return nil
		}
		v.e.log.Error("no views for now: queries and the page wait", "err", err, "do", v.advice(err))
		select {
		case <-time.After(viewsPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// Result codes of SQLite for a file that is damaged, or none of its own.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// advice is what heals the error.
func (v *views) advice(err error) string {
	if errors.Is(err, projection.ErrOtherLog) {
		return "give this engine a --data of its own; if the server was made anew and nobody else uses " + v.file() + ", remove it with its -wal and -shm"
	}
	again := "it is tried again every " + viewsPause.String()
	if errors.Is(err, projection.ErrLocked) {
		return "give this engine a --data of its own; " + again
	}
	var coded interface {
		error
		Code() int
	}
	if errors.As(err, &coded) && (coded.Code()&0xff == sqliteCorrupt || coded.Code()&0xff == sqliteNotADB) {
		return "the file is damaged and holds nothing that the log does not: stop the engine, remove " + v.file() + " with its -wal and -shm, and start it; or run projector rebuild"
	}
	return again
}

func (v *views) file() string { return filepath.Join(v.e.cfg.Data, viewsFile) }

// open opens the database. In the folder of the engine's own server the views
// follow whatever log is there; elsewhere the folder may be another engine's.
func (v *views) open(ctx context.Context) (*projection.Projector, error) {
	e := v.e
	if v.logID == "" {
		var err error
		if v.logID, err = e.sessions.ID(ctx); err != nil {
			return nil, err
		}
	}
	return projection.Open(ctx, projection.Options{
		File: v.file(), Log: e.sessions, Feed: e.feed(), Rest: bus.NewRest(e.server), LogID: v.logID, TakeOver: e.server != nil,
		MaxReply: int(e.nc.MaxPayload()) - bus.ReplyMargin, Gone: v.gone.Tell, Logger: e.log,
	})
}

// keepUp opens the views and keeps them up to date.
func (v *views) keepUp(ctx context.Context) error {
	e := v.e
	p, err := v.open(ctx)
	if err != nil {
		return err
	}
	service, err := bus.StartQueries(bus.QueriesOptions{
		Conn: e.nc, Subjects: e.subjects, Answer: p.Answer, Names: projection.Queries(), Version: e.cfg.Version, Logger: e.log,
	})
	if err != nil {
		return errors.Join(err, p.Close())
	}
	v.current.Store(p)
	v.first()
	if !v.opened {
		v.opened = true
		e.tellShorter(ctx)
	}
	err = p.Run(ctx)
	v.current.Store(nil)
	drain, cancel := context.WithTimeout(context.Background(), drainTime/3)
	defer cancel()
	return errors.Join(err, service.Stop(drain), p.Close())
}

func (e *engine) feed() events.Feed {
	return bus.NewFeed(e.nc, e.sessions, bus.FeedOptions{Subjects: e.subjects, Server: e.server, Logger: e.log})
}

// noViews answers while there is no projector.
const noViews = `{"ok":false,"error":{"code":"unavailable","message":"there are no views at the moment"}}`

// Query implements web.Querier.
func (v *views) Query(ctx context.Context, view, verb string, request []byte) []byte {
	p := v.current.Load()
	if p == nil {
		return []byte(noViews)
	}
	return p.Query(ctx, view, verb, request)
}

func (v *views) stats(ctx context.Context) (projection.Stats, error) {
	p := v.current.Load()
	if p == nil {
		return projection.Stats{}, errors.New("there are no views at the moment")
	}
	return p.Stats(ctx)
}

// status is what the page shows of the views.
func (v *views) status(ctx context.Context) web.Status {
	st, err := v.stats(ctx)
	return web.StatusOf(st, err, v.e.cfg.Version)
}

// gauges are the figures of the views for the metrics.
func (v *views) gauges(ctx context.Context) (web.Gauges, error) {
	st, err := v.stats(ctx)
	if err != nil {
		return web.Gauges{}, err
	}
	return web.GaugesOf(st), nil
}
