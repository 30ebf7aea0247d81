package bus

import (
	"context"
	"errors"
	"time"

	"culm/events"
)

// compare looks at the last sequence of every followed session and reads what
// the feed did not bring. The first comparison also decides where sessions
// begin that the caller knows nothing of.
func (r *follower) compare(ctx context.Context) error {
	r.behind = false
	r.rest.Begin(r.taken)
	defer func() { r.rest.End(r.clean()) }()
	infos, err := r.list(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.behind = true
		r.opts.Logger.Warn("sessions to be compared later", "err", err)
		return nil
	}
	first := r.first
	if first {
		r.begin(infos)
	}
	listed := make(map[string]bool, len(infos))
	shorter := map[string]bool{}
	for _, info := range infos {
		listed[info.Session] = true
		switch at := r.at[info.Session]; {
		case at < info.LastSeq:
			if err := r.fill(ctx, info.Session, at, info.LastSeq); err != nil {
				return err
			}
		case at > info.LastSeq && (first || r.shorter[info.Session]):
			r.opts.Logger.Warn("log ends before what is known of it", "session", info.Session, "seq", info.LastSeq, "known", at)
			r.at[info.Session] = info.LastSeq
		case at > info.LastSeq:
			// A new leader may answer before it has caught up, at least that of
			// an older server: once is no proof.
			shorter[info.Session] = true
			r.behind = true
		}
	}
	r.shorter = shorter
	r.forget(listed)
	return r.settle(ctx)
}

// clean says that the comparison left nothing to another one.
func (r *follower) clean() bool { return !r.behind && len(r.shorter)+len(r.absent) == 0 }

// begin sets where sessions start that the caller does not know: with their
// first event, or after what was stored when the live feed began.
func (r *follower) begin(infos []events.Info) {
	r.first = false
	for range len(r.live) {
		r.early = append(r.early, <-r.live)
	}
	if r.follow.All {
		return
	}
	starts := make(map[string]uint64, len(infos))
	for _, info := range infos {
		starts[info.Session] = info.LastSeq
	}
	for _, msg := range r.early {
		if e, ok := r.event(msg); ok {
			starts[e.Session] = min(starts[e.Session], e.Seq-1)
		}
	}
	for session, seq := range starts {
		if _, known := r.at[session]; !known {
			r.at[session] = seq
		}
	}
}

// settle takes the live events that had to wait for the first comparison, and
// says that the backlog is done once it is.
func (r *follower) settle(ctx context.Context) error {
	early := r.early
	r.early = nil
	for _, msg := range early {
		if err := r.take(ctx, msg); err != nil {
			return err
		}
	}
	if !r.caught && !r.behind {
		r.caught = true
		if r.follow.CaughtUp != nil {
			r.follow.CaughtUp()
		}
	}
	return nil
}

// list is what the log holds of the followed sessions, after all that the
// connection has subscribed by then.
func (r *follower) list(ctx context.Context) ([]events.Info, error) {
	flush, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.nc.FlushWithContext(flush); err != nil {
		return nil, err
	}
	if r.follow.Session == "" {
		return r.log.Sessions(ctx)
	}
	last, err := r.log.Last(ctx, r.follow.Session)
	if errors.Is(err, events.ErrNotFound) {
		return nil, nil
	}
	return []events.Info{{Session: r.follow.Session, LastSeq: last}}, err
}

// forget drops sessions that two comparisons in a row did not list, provided
// that no live event of theirs can be left from before: it would look like the
// first of an unknown session. Such a session, made again, starts above.
func (r *follower) forget(listed map[string]bool) {
	absent := map[string]bool{}
	for session := range r.at {
		switch {
		case listed[session]:
		case r.absent[session] && r.emptied:
			delete(r.at, session)
		default:
			absent[session] = true
		}
	}
	r.absent, r.emptied = absent, false
}
