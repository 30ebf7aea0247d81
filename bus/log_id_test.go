package bus

import (
	"testing"

	"culm/internal/natstest"
)

func wantID(t *testing.T, l *JetStreamLog, want string) {
	t.Helper()
	if id, err := l.ID(inTime(t)); err != nil || id != want {
		t.Errorf("ID() = %q, %v; want %q", id, err, want)
	}
}

// TestJetStreamLog_ID: one for all who use the log, also after the server has
// started anew; another server has another one.
func TestJetStreamLog_ID(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	reader := newTestLog(t, s, LogOptions{ReadOnly: true})
	wantID(t, reader, "") // nobody has written
	first := newTestLog(t, s, LogOptions{})
	id, err := first.ID(inTime(t))
	if err != nil || id == "" {
		t.Fatalf("ID() = %q, %v", id, err)
	}
	wantID(t, reader, id)
	s.Restart(t)
	wantID(t, newTestLog(t, s, LogOptions{}), id)
	wantID(t, first, id)
	if other, err := newTestLog(t, natstest.Start(t, nil), LogOptions{}).ID(inTime(t)); err != nil || other == id || other == "" {
		t.Errorf("of another server: %q, %v; this one's is %q", other, err, id)
	}
}

// TestJetStreamLog_ID_embedded: it stays that of the data folder.
func TestJetStreamLog_ID_embedded(t *testing.T) {
	t.Parallel()
	dir, id := t.TempDir(), ""
	for range 2 {
		s, err := StartServer(ServerOptions{DataDir: dir, Sync: SyncNone})
		if err != nil {
			t.Fatal(err)
		}
		l := embeddedLog(t, s)
		if id == "" {
			if id, err = l.ID(inTime(t)); err != nil || id == "" {
				t.Fatalf("ID() = %q, %v", id, err)
			}
		}
		wantID(t, l, id)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJetStreamLog_ID_replicated: whichever server leads.
func TestJetStreamLog_ID_replicated(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t)
	var id string
	for i := range 2 {
		l, err := NewJetStreamLog(inTime(t), c.Connect(t), LogOptions{Replicas: 3, RetryFor: testPatience})
		if err != nil {
			t.Fatal(err)
		}
		if id == "" {
			if id, err = l.ID(inTime(t)); err != nil || id == "" {
				t.Fatalf("ID() = %q, %v", id, err)
			}
		}
		wantID(t, l, id)
		if i == 0 {
			down := c.Leader(t, "KV_"+tombstoneBucket)
			down.Stop()
			wantID(t, l, id)
			down.Restart(t)
		}
	}
}
