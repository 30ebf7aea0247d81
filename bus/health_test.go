package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestHealthWatch_spent: a single long look counts for little, long ones in a
// row for what they take.
func TestHealthWatch_spent(t *testing.T) {
	t.Parallel()
	w := healthWatch{took: 200 * time.Microsecond}
	w.spent(200 * time.Millisecond)
	if w.took > 2*time.Millisecond {
		t.Errorf("took %s after one long look", w.took)
	}
	for range 10 {
		w.spent(50 * time.Millisecond)
	}
	if w.took != 50*time.Millisecond {
		t.Errorf("took %s, want that of the looks", w.took)
	}
	w.spent(time.Millisecond)
	if w.took != time.Millisecond {
		t.Errorf("took %s after a short look", w.took)
	}
}

// TestHealthWatch_unused: the server is looked at twice after a message, and
// now and then without one, and whenever JetStream is not there.
func TestHealthWatch_unused(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{HealthInterval: time.Hour})
	ns, nc := s.ns.Load(), connectTo(t, s)
	var w healthWatch
	want := func(looks int, after string) {
		t.Helper()
		for n := range looks {
			if w.unused(ns) {
				t.Errorf("after %s: unused at look %d of %d", after, n+1, looks)
			}
			w.looked = time.Now()
		}
		if !w.unused(ns) {
			t.Errorf("after %s: still used after %d looks", after, looks)
		}
	}
	want(1, "the start")
	if err := nc.Publish("anything", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	want(looksAfter, "a message")
	w.looked = time.Now().Add(-maxHealthInterval)
	want(1, "a while")
	w.judge(&server.HealthStatus{Errors: []server.HealthzError{{Type: server.HealthzErrorStream, Stream: "SESSION_a", Error: "could not be recovered"}}}, s.log)
	if w.unused(ns) {
		t.Error("unused, with a stream that is missing")
	}
	w.judge(&server.HealthStatus{}, s.log)
	want(looksAfter-1, "it was found")
	if err := ns.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	for range 2 * looksAfter {
		if w.unused(ns) {
			t.Error("unused, without JetStream")
		}
	}
}

// TestPatiently: a server that was not quick enough to show that it listens is
// asked again; one that never listens is told.
func TestPatiently(t *testing.T) {
	t.Parallel()
	busy := &server.HealthStatus{Errors: []server.HealthzError{{Type: server.HealthzErrorConn, Error: "failed to be ready for connections after 1ms: "}}}
	frozen := &server.HealthStatus{Errors: []server.HealthzError{{Type: server.HealthzErrorStream, Stream: "SESSION_a", Error: "no space left on device"}}}
	for what, c := range map[string]struct {
		answers []*server.HealthStatus // the last one for ever
		want    *server.HealthStatus
		asked   int
	}{
		"quick":         {[]*server.HealthStatus{{}}, &server.HealthStatus{}, 1},
		"busy at first": {[]*server.HealthStatus{busy, busy, {}}, &server.HealthStatus{}, 3},
		"cannot store":  {[]*server.HealthStatus{busy, frozen}, frozen, 2},
		"never listens": {[]*server.HealthStatus{busy}, busy, 10},
	} {
		asked := 0
		got := patiently(func() *server.HealthStatus {
			asked++
			return c.answers[min(asked, len(c.answers))-1]
		})
		if len(got.Errors) != len(c.want.Errors) || len(got.Errors) > 0 && got.Errors[0] != c.want.Errors[0] || asked != c.asked {
			t.Errorf("%s: %+v after %d questions", what, got, asked)
		}
	}
}
