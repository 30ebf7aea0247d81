package bus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"culm/events"
	"culm/internal/natstest"
)

// halfMade leaves of a stream what a kill leaves between the writing of its
// description and of the checksum.
func halfMade(t *testing.T, storeDir, stream string) (folder string) {
	t.Helper()
	folder = filepath.Join(storeDir, server.DEFAULT_GLOBAL_ACCOUNT, "streams", stream)
	if err := os.Remove(filepath.Join(folder, server.JetStreamMetaFileSum)); err != nil {
		t.Fatal(err)
	}
	return folder
}

func createAndAppend(t *testing.T, l events.Log, payload string) {
	t.Helper()
	begins, err := l.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), "s", begins, "note.appended", []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

// stopped is the data of a server that held the event "a" in session s, and the
// folder of its account.
func stopped(t *testing.T) (dir, account string) {
	t.Helper()
	dir = t.TempDir()
	s := startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
	createAndAppend(t, embeddedLog(t, s), "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(s.StoreDir(), server.DEFAULT_GLOBAL_ACCOUNT)
}

func payloads(t *testing.T, l events.Log) (all []string) {
	t.Helper()
	for r, err := range l.Read(t.Context(), "s", 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(r.Payload))
	}
	return all
}

// A kill while a session's stream was made loses nothing of what is acknowledged
// afterwards, whatever the server finds of the stream.
func TestServer_FinishesAStreamThatAKillCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
	if _, err := embeddedLog(t, s).Create(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{"a", "b"} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		halfMade(t, s.StoreDir(), "SESSION_s")
		s = startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
		l := embeddedLog(t, s)
		if payload == "a" {
			createAndAppend(t, l, payload)
		} else if err := l.Append(t.Context(), "s", 1, "note.appended", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
	if got := payloads(t, embeddedLog(t, s)); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("after the kills: %q", got)
	}
}

// The same on a server that is not ours.
func TestJetStreamLog_DescribesAStreamThatAKillCutOff(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, nil)
	if _, err := newTestLog(t, ns, LogOptions{}).Create(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	dir := ns.StoreDir()
	ns.Stop()
	halfMade(t, dir, "SESSION_s")
	ns.Restart(t)
	createAndAppend(t, newTestLog(t, ns, LogOptions{}), "a")
	ns.Restart(t)
	if got := payloads(t, newTestLog(t, ns, LogOptions{})); len(got) != 1 || got[0] != "a" {
		t.Errorf("after the kill: %q", got)
	}
}

// What no kill explains ends the start, and nothing is changed.
func TestServer_DoesNotBuildOnADamagedStream(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(folder, meta, sum string) error{
		"decayed": func(_, meta, _ string) error {
			b, err := os.ReadFile(meta)
			old := time.Now().Add(-time.Hour)
			b[len(b)/2] ^= 1
			return errors.Join(err, os.WriteFile(meta, b, 0o600), os.Chtimes(meta, old, old))
		},
		"not JSON":       func(_, meta, _ string) error { return os.WriteFile(meta, []byte("{"), 0o600) },
		"another stream": func(folder, _, sum string) error { return errors.Join(os.Remove(sum), os.Rename(folder, folder+"x")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, account := stopped(t)
			folder := filepath.Join(account, "streams", "SESSION_s")
			if err := damage(folder, filepath.Join(folder, server.JetStreamMetaFile), filepath.Join(folder, server.JetStreamMetaFileSum)); err != nil {
				t.Fatal(err)
			}
			if _, err := StartServer(ServerOptions{DataDir: dir, Sync: SyncNone}); !errors.Is(err, ErrStreamDamaged) {
				t.Errorf("start: %v", err)
			}
		})
	}
}

// A power cut before the first sync may leave files without content. The stream
// is finished, or what nobody was answered for is set aside; the name is free.
func TestServer_StartsAfterAPowerCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(meta, sum string) error
		kept   bool
	}{
		"empty checksum":    {func(_, sum string) error { return os.Truncate(sum, 0) }, true},
		"empty description": {func(meta, _ string) error { return os.Truncate(meta, 0) }, false},
		"no description":    {func(meta, _ string) error { return os.Remove(meta) }, false},
		"neither":           {func(meta, sum string) error { return errors.Join(os.Remove(meta), os.Remove(sum)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, account := stopped(t)
			folder := filepath.Join(account, "streams", "SESSION_s")
			if err := c.damage(filepath.Join(folder, server.JetStreamMetaFile), filepath.Join(folder, server.JetStreamMetaFileSum)); err != nil {
				t.Fatal(err)
			}
			l := embeddedLog(t, startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone}))
			if !c.kept {
				createAndAppend(t, l, "b")
			}
			want, aside := "a", 0
			if !c.kept {
				want, aside = "b", 1
			}
			if got := payloads(t, l); len(got) != 1 || got[0] != want {
				t.Errorf("the session holds %q", got)
			}
			if blocks, _ := filepath.Glob(filepath.Join(account, setAside, "SESSION_s-*", "msgs", "*.blk")); len(blocks) != aside {
				t.Errorf("set aside: %q", blocks)
			}
		})
	}
}

// A description that was written anew, before its checksum was: a deletion that
// was cut off while it sealed the stream.
func TestServer_FinishesADescriptionWrittenAnew(t *testing.T) {
	t.Parallel()
	dir, account := stopped(t)
	folder := filepath.Join(account, "streams", "SESSION_s")
	meta := filepath.Join(folder, server.JetStreamMetaFile)
	b, err := os.ReadFile(meta)
	later := time.Now().Add(time.Second)
	if err := errors.Join(err, os.WriteFile(meta, append(b, '\n'), 0o600), os.Chtimes(meta, later, later)); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone})
	if got := payloads(t, embeddedLog(t, s)); len(got) != 1 || got[0] != "a" {
		t.Errorf("after the kill: %q", got)
	}
}

// A folder that was made just before a kill is no damage.
func TestServer_TakesAnEmptyFolderOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, server.JetStreamStoreDir, server.DEFAULT_GLOBAL_ACCOUNT, "streams", "SESSION_s", "msgs"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := embeddedLog(t, startServer(t, ServerOptions{DataDir: dir, Sync: SyncNone}))
	createAndAppend(t, l, "a")
	if got := payloads(t, l); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
