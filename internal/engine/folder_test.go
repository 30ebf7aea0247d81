package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"culm/internal/natstest"
	"culm/internal/outtest"
	"culm/projection"
)

// running starts an engine and returns once it is ready.
func running(t *testing.T, cfg Config) (url string, log *outtest.Output, stop func()) {
	t.Helper()
	log = outtest.New(patience)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := lines{make(chan string, 1)}, make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, out) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case url = <-out.ready:
	case <-time.After(patience):
		t.Fatalf("it is not ready:\n%s", log)
	}
	return url, log, stop
}

// create makes a session and waits until the views have it.
func create(t *testing.T, url, session string) {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if m, err := nc.Request("agent.cmd.ada."+session+".session.create", []byte("{}"), patience); err != nil || !strings.Contains(string(m.Data), `"ok":true`) {
		t.Fatalf("session %s: %v, %v", session, m, err)
	}
	query := fmt.Sprintf(`{"session":%q,"min_sequence":{%q:1},"wait_ms":60000}`, session, session)
	if m, err := nc.Request("agent.query.sessions.get", []byte(query), patience); err != nil || !strings.HasPrefix(string(m.Data), `{"ok":true`) {
		t.Fatalf("views of %s: %v, %v", session, m, err)
	}
}

// TestRun_InTheFolderOfAnother: an engine that joins a server in the folder of
// another engine leaves that one's views alone, whether it runs or not, and says
// nothing about logs that are not its own.
func TestRun_InTheFolderOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := Config{Data: dir, Sync: "none"}
	url, _, stop := running(t, own)
	create(t, url, "s")
	joined := Config{Data: dir, NATS: natstest.Start(t, nil).ClientURL()}
	for _, words := range []string{"another projector uses this database", "these views are of another server"} {
		_, log, end := running(t, joined)
		text := log.Await(t, words)
		end()
		if strings.Contains(text, "shorter") || !strings.Contains(text, "no views for now") || !strings.Contains(text, "give this engine a --data of its own") {
			t.Errorf("it says:\n%s", text)
		}
		stop()
	}
	heads, err := projection.Heads(t.Context(), filepath.Join(dir, viewsFile))
	if err != nil || heads["s"].Seq != 1 {
		t.Errorf("the views were changed: %v, %v", heads, err)
	}
	_, log, end := running(t, own)
	text := log.Await(t, "views are up to date")
	end()
	if strings.Contains(text, "another") || strings.Contains(text, "shorter") {
		t.Errorf("the folder's own engine says:\n%s", text)
	}
}

// TestRun_AnEmptiedFolder: views that outlived the log of their folder are no
// reason to go without; what is missing is told, and they follow.
func TestRun_AnEmptiedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, _, stop := running(t, Config{Data: dir, Sync: "none"})
	create(t, url, "lost")
	stop()
	if err := os.RemoveAll(filepath.Join(dir, server.JetStreamStoreDir)); err != nil {
		t.Fatal(err)
	}
	url, log, _ := running(t, Config{Data: dir, Sync: "none"})
	if text := log.Await(t, "shorter than its views have seen"); !strings.Contains(text, "session=lost") || !strings.Contains(text, "computed from another log") {
		t.Errorf("it says:\n%s", text)
	}
	create(t, url, "new")
}

// TestRun_WhatIsTaken: an error names the flag that mends it.
func TestRun_WhatIsTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, _, _ := running(t, Config{Data: dir, Sync: "none", NoProjector: true})
	plain := natstest.Start(t, func(o *server.Options) { o.JetStream = false })
	for want, cfg := range map[string]Config{
		"choose another with --data":   {Data: dir},
		"choose another with --listen": {Data: t.TempDir(), Listen: strings.TrimPrefix(url, "nats://")},
		"the server at " + plain.ClientURL() + " has no JetStream: start nats-server with -js": {NATS: plain.ClientURL()},
	} {
		if err := Run(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
