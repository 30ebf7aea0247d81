package projection

import (
	"context"
	"errors"
	"time"

	"culm/events"
)

// job reads one session from the log: it makes sure that the log still holds
// the event that the views end with, and hands over what comes after it.
type job struct {
	session string
	id      uint64
	head    events.Head // what the views end with
	through uint64      // sequence to read to; 0 for all there is
	// reset goes with the next answer: whether the log has another history of
	// the session or none is known only then.
	reset string
}

// answer is what a job tells the applier; the last one is done.
type answer struct {
	session string
	job     uint64
	events  []decoded
	// reset says why the views of the session must be computed anew: events
	// that follow begin with the first.
	reset string
	gone  bool // the log has no such session
	done  bool
}

// Bounds of one answer's events.
const (
	chunkEvents = 256
	chunkBytes  = 1 << 20
)

// run works the job off, trying again while the log is unavailable. It ends
// early only with ctx.
func (j job) run(ctx context.Context, log events.Log, tell func(answer) bool, warn func(error)) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := j.read(ctx, log, tell)
		if err == nil {
			tell(answer{session: j.session, job: j.id, done: true})
			return
		}
		if ctx.Err() != nil {
			return
		}
		warn(err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// errOther: the log does not hold the event that the views end with.
var errOther = errors.New("other history")

// read reads once, moving j.head along with what was handed over.
func (j *job) read(ctx context.Context, log events.Log, tell func(answer) bool) error {
	err := j.readOn(ctx, log, tell)
	if errors.Is(err, errOther) {
		j.head, j.through, j.reset = events.Head{}, 0, "the log does not hold the event that the views end with"
		err = j.readOn(ctx, log, tell)
	}
	if errors.Is(err, events.ErrNotFound) {
		tell(answer{session: j.session, job: j.id, gone: true})
		return nil
	}
	return err
}

func (j *job) readOn(ctx context.Context, log events.Log, tell func(answer) bool) error {
	out := answer{session: j.session, job: j.id, reset: j.reset}
	after, known := j.head.Seq, j.head.Seq > 0
	if known {
		after--
	}
	size := 0
	for r, err := range log.Read(ctx, j.session, after, j.through) {
		if errors.Is(err, events.ErrNotFound) && known && after > 0 {
			return errOther // or gone: reading from the start will tell
		}
		if events.IsLost(err) {
			break // the views show what is left
		}
		if err != nil {
			return err
		}
		d := decode(r)
		if known {
			if r.Seq != j.head.Seq || d.hash != j.head.Hash {
				return errOther
			}
			known = false
			continue
		}
		out.events, size = append(out.events, d), size+len(r.Payload)
		if len(out.events) == chunkEvents || size >= chunkBytes {
			if !tell(out) {
				return ctx.Err()
			}
			j.head, j.reset = d.head(), ""
			out.events, out.reset, size = nil, "", 0
		}
	}
	if known {
		return errOther
	}
	if (len(out.events) > 0 || out.reset != "") && !tell(out) {
		return ctx.Err()
	}
	return nil
}

// finished ends a session's job and applies what came from the feed meanwhile.
func (a *applier) finished(ctx context.Context, t *tracked) error {
	a.running--
	t.job = 0
	delete(a.first, t)
	a.dispatch(ctx)
	early := t.early
	t.early = nil
	if err := a.unpark(t); err != nil {
		return err
	}
	for _, d := range early {
		if err := a.fromFeed(ctx, d); err != nil {
			return err
		}
	}
	if t.job == 0 && t.stuck == nil && len(early) == maxEarly && t.seen > t.head.Seq {
		a.start(ctx, t, t.seen)
	}
	if t.gone && t.job == 0 && t.head.Seq == 0 && t.stuck == nil {
		delete(a.all, t.session)
	}
	return nil
}

// start reads the session from the log, unless that happens already.
func (a *applier) start(ctx context.Context, t *tracked, through uint64) {
	if t.job != 0 {
		return
	}
	a.lastJob++
	t.job = a.lastJob
	a.queue = append(a.queue, job{session: t.session, id: t.job, head: t.head, through: max(through, t.head.Seq)})
	a.dispatch(ctx)
}

// dispatch starts queued jobs while readers are free.
func (a *applier) dispatch(ctx context.Context) {
	for a.running < a.p.opts.Readers && len(a.queue) > 0 {
		j := a.queue[0]
		a.queue = a.queue[1:]
		a.running++
		a.readers.Go(func() {
			j.run(ctx, a.p.opts.Log, func(n answer) bool {
				select {
				case a.answers <- n:
					return true
				case <-ctx.Done():
					return false
				}
			}, func(err error) {
				a.p.opts.Logger.Warn("a session could not be read, to be tried again", "session", j.session, "err", err)
			})
		})
	}
	a.p.stats.reading.Store(int64(a.running + len(a.queue)))
}
