package engine

import "testing"

const mb = 1 << 20

// A resting engine collects until three rounds in turn free nothing, and again
// after the next burst; a busy one and a small one never do.
func TestRest(t *testing.T) {
	var r rest
	due := func(want bool, rounds, heap uint64, what string) {
		t.Helper()
		if got := r.due(rounds, heap); got != want {
			t.Errorf("%s: due is %t", what, got)
		}
	}
	due(false, 5, 400*mb, "the collector ran since the last look")
	due(false, 9, 400*mb, "it ran again")
	due(true, 9, 400*mb, "it rests")
	r.done(10, 300*mb)
	for i := range restRounds {
		due(true, 10+uint64(i), 300*mb, "as long as not shown to be useless")
		r.done(11+uint64(i), 290*mb)
	}
	due(false, 13, 290*mb, "nothing was freed three times")
	due(false, 13, 500*mb, "still no burst")
	due(false, 14, 300*mb, "a burst: the collector ran by itself")
	due(true, 14, 300*mb, "it rests after the burst")
	r.done(15, restHeap-1)
	due(false, 15, restHeap-1, "small enough")
}
