package projection

import (
	"context"
	"iter"
	"testing"
	"time"

	"culm/events"
)

// lostLog has lost the last event of every session.
type lostLog struct{ *events.Mem }

func (l lostLog) Sessions(ctx context.Context) ([]events.Info, error) {
	infos, err := l.Mem.Sessions(ctx)
	for i := range infos {
		infos[i].LastSeq, infos[i].Lost = infos[i].LastSeq+1, 1
	}
	return infos, err
}

func (l lostLog) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		last := after
		for r, err := range l.Mem.Read(ctx, session, after, through) {
			if last = r.Seq; !yield(r, err) {
				return
			}
		}
		if after == 0 && through == 0 {
			yield(events.Record{}, &events.LostError{Session: session, First: last + 1, Last: last + 1})
		}
	}
}

// TestProjector_LostEnd: the views show what is left of a damaged log.
func TestProjector_LostEnd(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 4)
	o := options(t, log)
	o.Log = lostLog{log}
	start(t, o).await(log)
}

// TestCheck_DamagedLogIsNotWaitedFor: what the store has lost is told at once;
// only a session that was deleted or made anew settles.
func TestCheck_DamagedLogIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 4)
	o := options(t, log)
	start(t, o).awaitReady().await(log).stop()
	log.Rewrite("s", func(l []events.Record) []events.Record { return l[:3] })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	report, err := Check(ctx, CheckOptions{File: o.File, Log: lostLog{log}, Settle: time.Hour}, nil)
	if err != nil || report.Differences != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
