package projection

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"culm/events"
)

// listedLog counts the lists that were asked of it.
type listedLog struct {
	*events.Mem

	lists atomic.Int64
}

func (l *listedLog) Sessions(ctx context.Context) ([]events.Info, error) {
	l.lists.Add(1)
	return l.Mem.Sessions(ctx)
}

// fakeRest says what due says, and tells that it was asked.
type fakeRest struct {
	due    atomic.Bool
	asked  chan uint64
	looks  atomic.Int64
	failed atomic.Int64
}

func (r *fakeRest) Due(moved uint64) bool {
	select {
	case r.asked <- moved:
	default:
	}
	return r.due.Load()
}
func (r *fakeRest) Begin(uint64) { r.looks.Add(1) }
func (r *fakeRest) End(clean bool) {
	if !clean {
		r.failed.Add(1)
	}
}

// TestProjector_Rests: the log is compared at the start, and not again until a
// comparison is due; then what no feed brought is found.
func TestProjector_Rests(t *testing.T) {
	t.Parallel()
	mem := events.NewMem()
	fill(t, mem, "a", 3)
	log, rest := &listedLog{Mem: mem}, &fakeRest{asked: make(chan uint64)}
	o := options(t, mem)
	o.Log, o.Feed, o.Rest, o.Sweep = log, idleFeed{}, rest, time.Millisecond
	r := start(t, o).awaitReady()
	fill(t, mem, "b", 2)
	<-rest.asked // with what was there before the views were ready, perhaps
	for range 10 {
		if moved := <-rest.asked; moved != 3 {
			t.Errorf("the views moved by %d events, want 3", moved)
		}
	}
	if n := log.lists.Load(); n != 1 {
		t.Errorf("%d lists, and only the first was due", n)
	}
	rest.due.Store(true)
	r.await(mem)
	if n, looks := log.lists.Load(), rest.looks.Load(); n < 2 || looks < 2 || rest.failed.Load() != 0 {
		t.Errorf("%d lists, %d looks, %d failed", n, looks, rest.failed.Load())
	}
}
