package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/internal/natstest"
)

func newTestHandBacks(t *testing.T, s *natstest.Server) *HandBacks {
	t.Helper()
	h, err := NewHandBacks(t.Context(), s.Connect(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func put(t *testing.T, h *HandBacks, session string, run Held) {
	t.Helper()
	if err := h.Put(t.Context(), session, run); err != nil {
		t.Fatal(err)
	}
}

// given is what h lists, by session.
func given(t *testing.T, h *HandBacks) ([]HandedBack, map[string]Held) {
	t.Helper()
	list, err := h.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Held{}
	for _, one := range list {
		by[one.Session] = one.Held
	}
	return list, by
}

func wantListed(t *testing.T, h *HandBacks, want map[string]Held) []HandedBack {
	t.Helper()
	list, got := given(t, h)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	return list
}

// TestHandBacks: entries are taken one by one, and stay until they are; marks
// of removals, as older engines left them, are none.
func TestHandBacks(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	a, b := newTestHandBacks(t, s), newTestHandBacks(t, s)
	wantListed(t, a, map[string]Held{})
	one, two, newer := Held{"r1", 7, "p"}, Held{"r2", 8, ""}, Held{"r3", 9, "p"}
	put(t, a, "one", one)
	put(t, a, "two", two)
	list := wantListed(t, b, map[string]Held{"one": one, "two": two})
	if ok, err := b.Take(t.Context(), list[0]); !ok || err != nil {
		t.Errorf("Take: %t, %v", ok, err)
	}
	if ok, err := a.Take(t.Context(), list[0]); ok || err != nil {
		t.Errorf("Take again: %t, %v", ok, err)
	}
	put(t, a, "two", newer)
	if ok, err := b.Take(t.Context(), list[1]); ok || err != nil {
		t.Errorf("Take of an older one: %t, %v", ok, err)
	}
	wantListed(t, a, map[string]Held{"two": newer})
	js, err := jetstream.New(s.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), handBackBucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Purge(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	wantListed(t, a, map[string]Held{})
	put(t, a, "two", two)
	wantListed(t, b, map[string]Held{"two": two})
	if err := a.Put(t.Context(), "a b", one); err == nil {
		t.Error("a session that is no token was handed back")
	}
}

// TestHandBacks_OneEngineGetsIt: of many that take at once, on one server and
// in a cluster.
func TestHandBacks_OneEngineGetsIt(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func() (*nats.Conn, int){
		"server":  func() (*nats.Conn, int) { return natstest.Start(t, nil).Connect(t), 1 },
		"cluster": func() (*nats.Conn, int) { return natstest.StartCluster(t).Connect(t), 3 },
	} {
		nc, replicas := start()
		h, err := NewHandBacks(t.Context(), nc, replicas)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			put(t, h, "s", Held{"r", 7, "p"})
			list, _ := given(t, h)
			var all sync.WaitGroup
			var got atomic.Int32
			for range 8 {
				all.Go(func() {
					if ok, err := h.Take(context.Background(), list[0]); ok && err == nil {
						got.Add(1)
					}
				})
			}
			if all.Wait(); got.Load() != 1 {
				t.Fatalf("%s: %d were told that they have it", name, got.Load())
			}
		}
	}
}

// TestHandBacks_Appear tells of each until it is stopped.
func TestHandBacks_Appear(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	a, b := newTestHandBacks(t, s), newTestHandBacks(t, s)
	told := make(chan struct{}, 10)
	stop, err := b.Appear(func() { told <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, a, "s", Held{"r", 7, ""})
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		t.Fatal("not told")
	}
	stop()
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, a, "s", Held{"r", 8, ""})
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(told) != 0 {
		t.Error("told after the stop")
	}
}
