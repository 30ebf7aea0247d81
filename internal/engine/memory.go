package engine

import (
	"context"
	"os"
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
	restRounds = 3        // that freed nothing, and it waits for the next burst
)

// rest decides when a process that rests should collect.
type rest struct {
	rounds  uint64 // of the collector, so far
	heap    uint64 // bytes, when it was last looked at
	useless int    // rounds of ours that freed less than a tenth
}

// due is whether to collect now: the collector has not run since the last look,
// and the heap is worth it.
func (r *rest) due(rounds, heap uint64) bool {
	busy := rounds != r.rounds
	if busy {
		r.useless = 0
	}
	r.rounds, r.heap = rounds, heap
	return !busy && heap >= restHeap && r.useless < restRounds
}

// done notes what a round of ours left.
func (r *rest) done(rounds, heap uint64) {
	if heap > r.heap-r.heap/10 {
		r.useless++
	} else {
		r.useless = 0
	}
	r.rounds, r.heap = rounds, heap
}

// keepSmall collects while the engine rests, until ctx ends. Who turned the
// collector off, or sets its pace, decides alone.
func keepSmall(ctx context.Context) error {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
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
		if r.due(look()) {
			debug.FreeOSMemory()
			r.done(look())
		}
	}
}
