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
		if !tell(answer{session: j.session, job: j.id, reset: "the log does not hold the event that the views end with"}) {
			return ctx.Err()
		}
		j.head, j.through = events.Head{}, 0
		err = j.readOn(ctx, log, tell)
	}
	if errors.Is(err, events.ErrNotFound) {
		tell(answer{session: j.session, job: j.id, gone: true})
		return nil
	}
	return err
}

func (j *job) readOn(ctx context.Context, log events.Log, tell func(answer) bool) error {
	out := answer{session: j.session, job: j.id}
	after, known := j.head.Seq, j.head.Seq > 0
	if known {
		after--
	}
	size := 0
	for r, err := range log.Read(ctx, j.session, after, j.through) {
		if errors.Is(err, events.ErrNotFound) && known && after > 0 {
			return errOther // or gone: reading from the start will tell
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
			j.head = d.head()
			out.events, size = nil, 0
		}
	}
	if known {
		return errOther
	}
	if len(out.events) > 0 && !tell(out) {
		return ctx.Err()
	}
	return nil
}
