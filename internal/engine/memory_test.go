package engine

import "testing"

const mb = 1 << 20

// A resting engine collects until three rounds in turn free nothing, and again
// after the next burst; a busy one and a small one never do, and the rounds that
// the runtime runs every two minutes are no burst.
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
	r.done(10, 400*mb, 300*mb)
	for i := range uint64(restRounds) {
		due(true, 10+i, 300*mb, "as long as not shown to be useless")
		r.done(11+i, 300*mb, 290*mb)
	}
	due(false, 13, 290*mb, "nothing was freed three times")
	for i := range uint64(5) {
		due(false, 14+i, 291*mb, "the runtime's own round")
		due(false, 14+i, 292*mb, "at rest after it")
	}
	due(false, 30, 600*mb, "a burst, still busy")
	due(true, 30, 500*mb, "it rests after the burst")
	r.done(31, 500*mb, restHeap-1)
	due(false, 31, restHeap-1, "small enough")
}
