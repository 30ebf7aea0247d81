package main

import (
	"context"
	"iter"

	"culm/aggregate"
	"culm/events"
)

// backend is the outside of this program: engines and the streams they keep.
type backend interface {
	// Do sends a command under an id and returns the engine's answer.
	Do(ctx context.Context, session, name string, data any, opts sendOptions) (aggregate.Reply, error)
	// Read asks an engine for state or events.
	Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error)
	// Query asks a projector for a view and returns its answer as it came;
	// nats.ErrNoResponders where there is none.
	Query(ctx context.Context, view, verb string, request []byte) ([]byte, error)
	// Log reads the streams themselves, without an engine.
	Log() logReader
	// Feed follows events as they are stored.
	Feed() events.Feed
	// Deltas calls handle for what runners stream and nobody stores, of one
	// session or, with "", of all, until ctx ends.
	Deltas(ctx context.Context, session string, handle func(session, run string, delta []byte)) error
	Close()
}

// sendOptions go with a command.
type sendOptions struct {
	ID       string  // command id
	Expected *uint64 // sequence that the session must end with
}

// logReader is the reading half of events.Log.
type logReader interface {
	Last(ctx context.Context, session string) (uint64, error)
	Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error]
	Sessions(ctx context.Context) ([]events.Info, error)
}

// connect reaches the server within the timeout.
func (a *app) connect(ctx context.Context) (backend, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	return a.dial(ctx, a)
}

// read asks for state within the timeout; a refusal is an error.
func (a *app) read(ctx context.Context, b backend, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	r, err := b.Read(ctx, session, q)
	if err != nil {
		return r, err
	}
	if !r.OK {
		return r, refused(session, r.Error)
	}
	return r, nil
}

func refused(session string, e *aggregate.Error) error {
	r := &refusal{session: session}
	if e != nil {
		r.why = *e
	}
	return r
}
