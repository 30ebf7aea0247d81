package engine

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The server keeps a write buffer of 256 KiB for each stream it wrote to in the
// last ten seconds, and gives it to a pool after that, which the collector
// empties in its second round. Rounds come with allocations, so an engine that
// rests after a burst would hold the buffers of every session for minutes. It
// runs the missing rounds itself, for as long as they free something.
const (
	restPause  = 10 * time.Second
	restHeap   = 64 << 20 // bytes; under it there is nothing to win
	restRounds = 3        // after a burst, and as many again after one that freed something
)

// rest decides when a process that rests should collect.
type rest struct {
	rounds uint64 // of the collector, so far
	level  uint64 // bytes of heap that the last round of ours left; more by half is a burst
	left   int    // rounds to go
}

// due is whether to collect now: there was a burst, the collector has not run
// since the last look, and the heap is worth it.
func (r *rest) due(rounds, heap uint64) bool {
	if heap > r.level+r.level/2 {
		r.left, r.level = restRounds, heap
	}
	busy := rounds != r.rounds
	r.rounds = rounds
	return !busy && r.left > 0 && heap >= restHeap
}

// done notes what a round of ours left of heap bytes.
func (r *rest) done(rounds, heap, left uint64) {
	r.left--
	if left < heap-heap/10 {
		r.left = restRounds
	}
	r.rounds, r.level = rounds, left
}

// keepSmall collects while the engine rests, until ctx ends.
func keepSmall(ctx context.Context) error {
	if collectorIsSet() {
		return nil
	}
	now := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"}}
	look := func() (rounds, heap uint64) {
		metrics.Read(now)
		return now[0].Value.Uint64(), now[1].Value.Uint64()
	}
	tick := time.NewTicker(restPause)
	defer tick.Stop()
	for r := (rest{}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if rounds, heap := look(); r.due(rounds, heap) {
			debug.FreeOSMemory()
			rounds, left := look()
			r.done(rounds, heap, left)
		}
	}
}
