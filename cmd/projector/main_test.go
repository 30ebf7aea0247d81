package main

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/events"
	"culm/internal/natstest"
	"culm/internal/outtest"
)

const patience = 2 * time.Minute

// invocation is one run of the program.
type invocation struct {
	stop   context.CancelFunc
	status chan int
	out    *outtest.Output
	errOut *outtest.Output
}

func invoke(t *testing.T, args ...string) *invocation {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	i := &invocation{stop: stop, status: make(chan int, 1), out: outtest.New(patience), errOut: outtest.New(patience)}
	go func() { i.status <- run(ctx, args, i.out, i.errOut) }()
	t.Cleanup(stop)
	return i
}

func (i *invocation) want(t *testing.T, status int, words string) {
	t.Helper()
	select {
	case got := <-i.status:
		out := i.out.String()
		err := i.errOut.String()
		if got != status || !strings.Contains(out+err, words) {
			t.Errorf("status %d, want %d with %q:\n%s%s", got, status, words, out, err)
		}
	case <-time.After(patience):
		t.Error("the program does not end")
	}
}

// append adds a session of n messages.
func appendSession(t *testing.T, log events.Log, session string, n int) {
	t.Helper()
	expected, err := log.Create(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	head := events.Head{Seq: expected}
	for i := range n + 1 {
		var data events.Data = events.SessionCreated{Kind: "root", Mode: "default"}
		if i > 0 {
			data = events.MessageSubmitted{UserMessage: events.UserMessage{MessageID: "m", Content: "hello"}, Role: "user"}
		}
		id, err := events.NextID(head.ID, time.Now(), [10]byte{})
		if err != nil {
			t.Fatal(err)
		}
		birth := head.Birth
		if birth == "" {
			birth = id
		}
		stored, err := events.Encode(events.Event{
			ID: id, Session: session, Time: time.Now().UTC(), Seq: head.Seq + 1, Birth: birth, Actor: "alice", Prevhash: head.Hash, Data: data,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), session, head.Seq, data.EventType(), stored); err != nil {
			t.Fatal(err)
		}
		e, err := events.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		head = head.Next(&e, stored)
	}
}

// TestProjector runs the program against a server: it catches up, answers,
// refuses company on its file, is checked and rebuilt while it runs, and stops.
func TestProjector(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, nil)
	nc := server.Connect(t)
	log, err := bus.NewJetStreamLog(t.Context(), nc, bus.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	appendSession(t, log, "one", 3)
	file := filepath.Join(t.TempDir(), "views.db")
	common := []string{"--nats", server.ClientURL(), "--db", file}
	p := invoke(t, append(common, "--http", "127.0.0.1:0")...)
	p.out.Await(t, "ready\n")
	told := p.errOut.String()
	if _, err := os.Stat(file + ".page-token"); err != nil || !strings.Contains(told, "/healthz") {
		t.Errorf("ready before the page answers: %v, %s", err, told)
	}
	_, address, _ := strings.Cut(p.errOut.Await(t, "/healthz"), "url=")
	address, _, _ = strings.Cut(address, "\n")
	for _, path := range []string{"/healthz", "/readyz"} {
		web := http.Client{Timeout: patience}
		reply, err := web.Get(strings.Replace(address, "/healthz", path, 1))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(reply.Body)
		if reply.Body.Close(); reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, reply.StatusCode, body)
		}
	}
	appendSession(t, log, "two", 2)
	wantSession(t, nc, "two", 3)
	invoke(t, append([]string{"run", "--http", "off"}, common...)...).want(t, exitFailed, "another projector uses this database")
	invoke(t, append([]string{"check"}, common...)...).want(t, exitOK, "2 sessions, 7 events, ")
	invoke(t, append([]string{"rebuild"}, common...)...).want(t, exitOK, "rebuilt")
	invoke(t, "check", "--nats", server.ClientURL(), "--db", file+".none").want(t, exitFailed, "there is no database "+file+".none; projector run makes it; an engine keeps its own in its data folder: --db data/views.db")
	other := natstest.Start(t, nil)
	if _, err := bus.NewJetStreamLog(t.Context(), other.Connect(t), bus.LogOptions{}); err != nil {
		t.Fatal(err)
	}
	appendSession(t, log, "three", 2)
	wantSession(t, nc, "three", 3)
	p.stop()
	p.want(t, exitOK, "switched to the rebuilt database")
	invoke(t, "--nats", other.ClientURL(), "--db", file, "--http", "off").want(t, exitFailed, "these views are of another server; choose another database with --db")

	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE messages SET content = 'hullo' WHERE session = 'one' AND n = 2"); err != nil {
		t.Fatal(err)
	}
	invoke(t, append([]string{"check"}, common...)...).want(t, exitFailed, "column content: is \\\"hullo\\\", must be \\\"hello\\\"")
}

func wantSession(t *testing.T, nc *nats.Conn, session string, seq int) {
	t.Helper()
	body := `{"session":"` + session + `","min_sequence":{"` + session + `":3},"wait_ms":60000}`
	m, err := nc.Request("agent.query.sessions.get", []byte(body), patience)
	if err != nil || !strings.HasPrefix(string(m.Data), `{"ok":true,"as_of":{"session":"`+session+`","sequence":3}`) {
		t.Errorf("%s at %d: %s, %v", session, seq, m.Data, err)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"bogus"}, {"--no-such"}, {"check", "--limit", "x"}, {"--prefix", "a.*"}, {"--prefix", "_INBOX"}, {"--prefix", ""},
		{"--http", "x"}, {"--http", "127.0.0.1:99999"}, {"--http", ":"}, {"--http", ""}, {"--http-actor", "_x"}, {"--db", ""}, {"rebuild", "--db", ""}, {"--nats", ""}, {"--nats", "http://h"}, {"check", "--limit", "-1"},
	} {
		invoke(t, args...).want(t, exitUsage, "try --help")
	}
	server := natstest.Start(t, nil)
	invoke(t, "--nats", server.ClientURL(), "--db", filepath.Join(t.TempDir(), "v.db"), "--http", "127.0.0.1:0", "--http-tokens", "/nowhere").
		want(t, exitUsage, "--http-tokens")
	invoke(t, "--help").want(t, exitOK, "Usage: projector")
	invoke(t, "--version").want(t, exitOK, "projector 0.")
	invoke(t, "check", "--nats", "nats://u:secret@127.0.0.1:1", "--db", "x").want(t, exitFailed, "connect to nats://xxxxx@127.0.0.1:1: nobody answers there")
}
