package bus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"culm/events"
)

// tearLast cuts into the last record of a session's stream, as a write that never
// came to its end leaves it, while the server's index knows of it.
func tearLast(t *testing.T, storeDir, session string) {
	t.Helper()
	block := filepath.Join(storeDir, server.DEFAULT_GLOBAL_ACCOUNT, "streams", streamPrefix+session, "msgs", "1.blk")
	info, err := os.Stat(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(block, info.Size()-10); err != nil {
		t.Fatal(err)
	}
}

// A stream that counts more events than it can give has lost them: reading all
// says so, and an append does, instead of a conflict that nobody caused.
func TestJetStreamLog_lost_end(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		events, given int
	}{{"of many", 30, 29}, {"of two", 2, 1}, {"the only one", 1, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
			l := embeddedLog(t, s)
			if _, err := l.Create(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			for n := range c.events {
				if err := l.Append(t.Context(), "s", uint64(n), "note.appended", []byte("payload")); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			tearLast(t, s.StoreDir(), "s")
			l = embeddedLog(t, startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone}))
			given, end := 0, error(nil)
			for _, err := range l.Read(t.Context(), "s", 0, 0) {
				if end = err; err == nil {
					given++
				}
			}
			wantLost(t, end, c.events)
			if given != c.given {
				t.Errorf("%d events, want %d", given, c.given)
			}
			wantLost(t, l.Append(t.Context(), "s", uint64(c.given), "note.appended", []byte("other")), c.events)
			infos, err := l.Sessions(t.Context())
			if err != nil || c.given > 0 && (len(infos) != 1 || infos[0].Lost != 1) {
				t.Errorf("Sessions: %+v, %v", infos, err)
			}
		})
	}
}

func wantLost(t *testing.T, err error, at int) {
	t.Helper()
	lost, ok := errors.AsType[*events.LostError](err)
	if !ok || lost.First != uint64(at) || lost.Last != uint64(at) {
		t.Errorf("%v, want event %d lost", err, at)
	}
}
