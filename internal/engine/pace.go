package engine

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The runtime lets garbage grow to the size of what is alive before it collects.
// What is alive in an engine is mostly the server's write buffers: 256 KiB a
// stream, without pointers, and hardly any of it ever touched. Garbage would grow
// to their nominal size, and that is real memory. What a collection costs is
// looking through what can hold pointers; so garbage may grow to the size of that,
// or to leastGarbage if that is more, which spares a small engine most collections.
const leastGarbage = 80 << 20 // bytes

// percent is the GOGC for live bytes of heap after a collection, of which scanned
// can hold pointers.
func percent(live, scanned uint64) int {
	return int(min(max(leastGarbage, scanned)*100/max(live, 1<<20), 1000))
}

// keepPace sets how far garbage may grow after each collection, until ctx ends.
func keepPace(ctx context.Context) error {
	if collectorIsSet() {
		return nil
	}
	collected := make(chan struct{}, 1)
	afterCollection(ctx, collected)
	now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}, {Name: "/gc/gogc:percent"}}
	defer debug.SetGCPercent(100)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-collected:
		}
		metrics.Read(now)
		want, is := percent(now[0].Value.Uint64(), now[1].Value.Uint64()), int(now[2].Value.Uint64())
		if d := want - is; d > is/10 || -d > is/10 { // setting it stops the world for a moment
			debug.SetGCPercent(want)
		}
	}
}

// afterCollection wakes after each collection until ctx ends: an object that
// nobody holds is found dead by the next one, and leaves another.
func afterCollection(ctx context.Context, wake chan<- struct{}) {
	runtime.AddCleanup(&sentinel{}, func(struct{}) {
		select {
		case wake <- struct{}{}:
		default:
		}
		if ctx.Err() == nil {
			afterCollection(ctx, wake)
		}
	}, struct{}{})
}

// sentinel holds a pointer, so that it gets a place in memory of its own.
type sentinel struct{ _ *byte }

// collectorIsSet is whether whoever started the process turned the collector off
// or set its pace, and decides alone.
func collectorIsSet() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }
