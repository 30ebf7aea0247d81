package bus

import (
	"testing"

	"culm/events"
)

func TestSyncfsBarrier(t *testing.T) {
	t.Parallel()
	b, err := NewSyncfsBarrier(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waiterOf(b, b.Mark()); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestGroupSync(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{Sync: SyncGroup})
	b, err := NewSyncfsBarrier(s.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	serveBarrier(t, connectTo(t, s), b)
	remote, err := DialBarrier(t.Context(), connectTo(t, s), Subjects{})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.(*RemoteBarrier).Close()
	l := embeddedLog(t, s)
	for seq := range uint64(5) {
		fillLog(t, l, "s", seq+1)
		for _, barrier := range []events.Barrier{b, remote} {
			if err := <-waiterOf(barrier, barrier.Mark()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, mode := range []SyncMode{SyncAlways, SyncNone} {
		other := startServer(t, ServerOptions{Sync: mode})
		if b, err := DialBarrier(t.Context(), connectTo(t, other), Subjects{}); err != nil || b != (NopBarrier{}) {
			t.Errorf("sync %s: DialBarrier = %T, %v", mode, b, err)
		}
	}
}
