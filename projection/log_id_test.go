package projection

import (
	"errors"
	"testing"

	"culm/events"
)

// TestOpen_ViewsOfAnotherLog: a database belongs to one log. Another one does
// not touch it, unless it is to take it over; who does not know its log's name
// compares nothing.
func TestOpen_ViewsOfAnotherLog(t *testing.T) {
	t.Parallel()
	mine, other := events.NewMem(), events.NewMem()
	fill(t, mine, "s", 3)
	fill(t, other, "x", 2)
	o := options(t, mine)
	start(t, o).awaitReady().stop() // by a program that knew of no names
	o.LogID = "mine"
	start(t, o).awaitReady().stop()
	theirs := o
	theirs.Log, theirs.Feed, theirs.LogID = other, other, "other"
	for range 2 {
		if p, err := Open(t.Context(), theirs); !errors.Is(err, ErrOtherLog) {
			t.Fatalf("Open: %v, %v", p, err)
		}
	}
	o.LogID = ""
	r := start(t, o).awaitReady()
	if n := r.stats.applied.Load(); n != 0 {
		t.Errorf("%d events were applied to views that were up to date", n)
	}
	r.stop()
	theirs.TakeOver = true
	start(t, theirs).awaitReady().stop()
	check(t, o.File, other)
	o.LogID = "mine"
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrOtherLog) {
		t.Errorf("Open of what was taken over: %v", err)
	}
	if err := Rebuild(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	start(t, o).awaitReady().stop()
	check(t, o.File, mine)
}
