package bus

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
	"culm/internal/natstest"
)

// asked answers as a projector might.
func asked(ctx context.Context, name string, body []byte) ([]byte, *aggregate.Error) {
	switch name {
	case "echo.get":
		return fmt.Appendf(nil, `{"ok":true,"items":[%q]}`, body), nil
	case "huge.get":
		return []byte(strings.Repeat("x", 1<<20)), nil
	case "slow.get":
		<-ctx.Done()
		return []byte(`{"ok":false}`), &aggregate.Error{Code: "unavailable", Message: "given up"}
	}
	return []byte(`{"ok":false,"error":{}}`), &aggregate.Error{Code: "unknown_command", Message: "no\nsuch " + name}
}

func serveQueries(t *testing.T) (*nats.Conn, *Queries) {
	t.Helper()
	nc := natstest.Start(t, nil).Connect(t)
	subjects, err := NewSubjects("agent")
	if err != nil {
		t.Fatal(err)
	}
	s, err := StartQueries(QueriesOptions{Conn: nc, Subjects: subjects, Answer: asked, Names: []string{"echo.get", "huge.get"}, Version: "v1.2.3-4-gabc+dirty"})
	if err != nil {
		t.Fatal(err)
	}
	return nc, s
}

func TestQueries_Answers(t *testing.T) {
	t.Parallel()
	nc, s := serveQueries(t)
	for subject, want := range map[string]struct{ body, code, message string }{
		"agent.query.echo.get":      {`{"ok":true,"items":["{}"]}`, "", ""},
		"agent.query.echo.get.more": {`{"ok":false,"error":{}}`, "unknown_command", "no such echo.get.more"},
		"agent.query.echo":          {`{"ok":false,"error":{}}`, "unknown_command", "no such echo"},
		"agent.query.huge.get": {
			`{"ok":false,"error":{"code":"invalid_command","message":"the answer takes 1049600 bytes and the server allows 1048576: ask for a smaller limit"}}`,
			"invalid_command", "the answer takes 1049600 bytes and the server allows 1048576: ask for a smaller limit",
		},
	} {
		m, err := nc.Request(subject, []byte(`{}`), testPatience)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Data); got != want.body || m.Header.Get(micro.ErrorCodeHeader) != want.code || m.Header.Get(micro.ErrorHeader) != want.message {
			t.Errorf("%s: %s %v", subject, got, m.Header)
		}
	}
	m, err := nc.Request("$SRV.INFO.culm-projector", nil, testPatience)
	if err != nil || !strings.Contains(string(m.Data), `"queries":"echo.get huge.get"`) || !strings.Contains(string(m.Data), `"version":"1.2.3-4-gabc+dirty"`) {
		t.Errorf("%s, %v", m.Data, err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestQueries_RepliesToInboxesOnly: an answer never goes where a log may listen.
func TestQueries_RepliesToInboxesOnly(t *testing.T) {
	t.Parallel()
	nc, s := serveQueries(t)
	all, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"agent.log.s.session.closed", "agent.cmd.a.s.session.close", "_INBOXES.x", "_INBOX", "_R_"} {
		if err := nc.PublishRequest("agent.query.echo.get", reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("agent.query.echo.get", []byte("last"), testPatience); err != nil { // comes after all others
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil { // all are answered
		t.Error(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for n, _, _ := all.Pending(); n > 0; n-- {
		m, err := all.NextMsg(testPatience)
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(m.Subject, "_INBOX."):
			answers++
		case !strings.HasPrefix(m.Subject, "agent.query."):
			t.Errorf("published on %s", m.Subject)
		}
	}
	if answers != 1 {
		t.Errorf("%d answers to inboxes", answers)
	}
}

// TestQueries_TooManyAndStop: what comes on top is refused, and the end waits
// for no query longer than it is told to.
func TestQueries_TooManyAndStop(t *testing.T) {
	t.Parallel()
	nc, s := serveQueries(t)
	answers := make(chan *nats.Msg, maxQueries+1)
	inbox := nc.NewInbox()
	if _, err := nc.ChanSubscribe(inbox, answers); err != nil {
		t.Fatal(err)
	}
	for range maxQueries + 1 {
		if err := nc.PublishRequest("agent.query.slow.get", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	if m := awaitValue(t, answers); m.Header.Get(micro.ErrorCodeHeader) != "unavailable" || m.Header.Get(micro.ErrorHeader) != "too many queries at once" {
		t.Errorf("%s %v", m.Data, m.Header)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Stop(ended); err != nil {
		t.Error(err)
	}
	for range maxQueries {
		if m := awaitValue(t, answers); m.Header.Get(micro.ErrorHeader) != "given up" {
			t.Errorf("%s %v", m.Data, m.Header)
		}
	}
}
