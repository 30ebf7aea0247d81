package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

// FeedOptions configure a Feed.
type FeedOptions struct {
	Subjects Subjects
	// Compare is the time between comparisons with the log, which find events
	// that were lost at the end of what the feed brought; 0 is thirty seconds.
	Compare time.Duration
	// Server, if the log is kept by an embedded one, lets comparisons be left
	// out while it stores nothing: see Rest.
	Server *Server
	// Buffer is how many live events may wait for the handler before they are
	// dropped and read from the log later; 0 is 65536.
	Buffer int
	Logger *slog.Logger
}

// Feed follows sessions by what the server republishes after the store, and
// fills from the log what that loses. The live feed is at most once: a slow
// follower, a lost connection and a new leader lose events. A gap in the
// middle shows in the next event's sequence; a lost end shows in the
// comparison made at the start, after each reconnect, soon after the
// client dropped something, and at intervals in which the server stored.
type Feed struct {
	nc   *nats.Conn
	log  events.Log
	opts FeedOptions
}

var _ events.Feed = (*Feed)(nil)

// NewFeed follows the sessions of log over nc, which stays the caller's.
func NewFeed(nc *nats.Conn, log events.Log, opts FeedOptions) *Feed {
	if opts.Compare == 0 {
		opts.Compare = 30 * time.Second
	}
	if opts.Buffer == 0 {
		opts.Buffer = 1 << 16
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Feed{nc: nc, log: log, opts: opts}
}

// dropCheck is the time between looks at how many live events were dropped,
// while some come, and before a fill that failed is tried again.
const dropCheck = 500 * time.Millisecond

// Follow implements events.Feed. handle is called from one goroutine; its
// error ends Follow and is returned. A log found to end before what is known
// of it (restored from a backup) is followed from where it ends now: the
// follower sees a sequence again and judges by the hash chain.
func (f *Feed) Follow(ctx context.Context, opts events.FollowOptions, handle func(events.Record) error) error {
	subject := f.opts.Subjects.EventsAll()
	if opts.Session != "" {
		if !ValidToken(opts.Session) {
			return fmt.Errorf("follow %q: %w", opts.Session, events.ErrNotFound)
		}
		subject = f.opts.Subjects.SessionEvents(opts.Session)
	}
	live := make(chan *nats.Msg, f.opts.Buffer)
	sub, err := f.nc.ChanSubscribe(subject, live)
	if err != nil {
		return fmt.Errorf("follow: %w: %w", events.ErrUnavailable, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only without connection
	state := f.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer f.nc.RemoveStatusListener(state)
	r := &follower{Feed: f, follow: opts, handle: handle, live: live, at: map[string]uint64{}, first: true, rest: NewRest(f.opts.Server)}
	for session, seq := range opts.From {
		if opts.Session == "" || session == opts.Session {
			r.at[session] = seq
		}
	}
	return r.run(ctx, sub, state)
}

// follower is one call of Follow.
type follower struct {
	*Feed
	follow events.FollowOptions
	handle func(events.Record) error
	live   chan *nats.Msg
	at     map[string]uint64 // session -> sequence of the last event handed over
	first  bool              // no comparison has succeeded yet
	caught bool              // CaughtUp has been called
	behind bool              // a comparison is owed before the interval is over
	// early are live events from before the first comparison.
	early   []*nats.Msg
	dropped int
	rest    *Rest
	taken   uint64 // live events so far
	// absent are sessions that the last comparison did not list, shorter those
	// whose log it found to end before at; emptied says that no live event
	// from before it is left.
	absent, shorter map[string]bool
	emptied         bool
}

func (r *follower) run(ctx context.Context, sub *nats.Subscription, state <-chan nats.Status) error {
	if err := r.compare(ctx); err != nil {
		return err
	}
	interval := time.NewTicker(r.opts.Compare)
	defer interval.Stop()
	// At rest nothing is dropped, and nobody looks.
	soon, looking := time.NewTimer(dropCheck), true
	defer soon.Stop()
	for {
		var err error
		took := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case msg := <-r.live:
			r.emptied = r.emptied || len(r.live) == 0
			took, err = true, r.take(ctx, msg)
		case s := <-state:
			if s == nats.CLOSED {
				return fmt.Errorf("follow: %w: %w", events.ErrUnavailable, nats.ErrConnectionClosed)
			}
			err = r.compare(ctx)
		case <-soon.C:
			looking = false
			r.emptied = r.emptied || len(r.live) == 0
			if n, _ := sub.Dropped(); n != r.dropped || r.behind {
				r.dropped = n
				err = r.compare(ctx)
			}
		case <-interval.C:
			if r.rest.Due(r.taken) {
				err = r.compare(ctx)
			}
		}
		if err != nil {
			return err
		}
		if !looking && (took || r.behind || !r.emptied) {
			soon.Reset(dropCheck)
			looking = true
		}
	}
}

// take hands a live event over, after what is missing before it.
func (r *follower) take(ctx context.Context, msg *nats.Msg) error {
	r.taken++
	e, ok := r.event(msg)
	if !ok {
		r.opts.Logger.Warn("no event of a session's stream", "subject", msg.Subject)
		return nil
	}
	if r.first {
		r.early = append(r.early, msg)
		return nil
	}
	at := r.at[e.Session]
	if e.Seq <= at {
		return nil
	}
	if e.Seq > at+1 {
		if err := r.fill(ctx, e.Session, at, e.Seq-1); err != nil {
			return err
		}
		if r.at[e.Session] < e.Seq-1 {
			return nil // it is read later, with what comes before it
		}
	}
	return r.give(e)
}

// event is the record that a message of the live feed carries.
func (r *follower) event(msg *nats.Msg) (events.Record, bool) {
	session, eventType, ok := r.opts.Subjects.ParseEvent(msg.Subject)
	seq, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
	if !ok || err != nil || seq == 0 || msg.Header.Get("Nats-Stream") != streamPrefix+session {
		return events.Record{}, false
	}
	return events.Record{Session: session, Seq: seq, Type: eventType, Payload: msg.Data}, true
}

// give hands one event over.
func (r *follower) give(e events.Record) error {
	r.at[e.Session] = e.Seq
	return r.handle(e)
}

// fill hands over the events after at, up to through, from the log. What is
// not there (an earlier life of the session) is passed over. If the log can
// not be read now, it is owed: another session must not wait for this one.
func (r *follower) fill(ctx context.Context, session string, at, through uint64) error {
	for e, err := range r.log.Read(ctx, session, at, through) {
		switch {
		case err == nil:
			if err := r.give(e); err != nil {
				return err
			}
		case errors.Is(err, events.ErrNotFound):
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			r.behind = true
			r.opts.Logger.Warn("events to be read later", "session", session, "seq", r.at[session]+1, "err", err)
			return nil
		}
	}
	r.at[session] = max(r.at[session], through)
	return nil
}
