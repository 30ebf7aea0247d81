package projection

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/events"
	"culm/internal/natstest"
)

func connectTest(url string) (*nats.Conn, error) {
	return nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
}

// serve runs a projector over log and answers on a server of its own.
func serve(t *testing.T, log *events.Mem) (*nats.Conn, *running) {
	t.Helper()
	nc := natstest.Start(t, nil).Connect(t)
	r := start(t, options(t, log)).awaitReady()
	s, err := r.Serve(ServiceOptions{Conn: nc, Version: "v1.2.3-4-gabc+dirty"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return nc, r
}

func TestService_Answers(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 4)
	nc, _ := serve(t, log)
	m, err := nc.Request("agent.query.sessions.list", nil, patience)
	if err != nil || !strings.HasPrefix(string(m.Data), `{"ok":true,"as_of":{},"items":[{"session":"s",`) {
		t.Errorf("%s, %v", m.Data, err)
	}
	m, err = nc.Request("agent.query.timeline.get", []byte(`{"session":"s","after":2,"limit":1}`), patience)
	var page struct {
		AsOf  AsOf `json:"as_of"`
		Items []TimelineItem
		Next  string
	}
	if err == nil {
		err = json.Unmarshal(m.Data, &page)
	}
	if err != nil || page.AsOf != (AsOf{"s", 4}) || len(page.Items) != 1 || page.Items[0].Sequence != 3 || page.Next == "" {
		t.Errorf("%s, %v", m.Data, err)
	}
	for subject, code := range map[string]string{
		"agent.query.sessions.get":       CodeInvalidToken,
		"agent.query.sessions":           CodeUnknownCommand,
		"agent.query.sessions.list.more": CodeUnknownCommand,
	} {
		m, err := nc.Request(subject, []byte(`{}`), patience)
		if err != nil || m.Header.Get(micro.ErrorCodeHeader) != code || !strings.HasPrefix(string(m.Data), `{"ok":false`) {
			t.Errorf("%s: %s %v, %v", subject, m.Data, m.Header, err)
		}
	}
}

// TestService_RepliesToInboxesOnly: an answer never goes where a log may listen.
func TestService_RepliesToInboxesOnly(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 2)
	nc, _ := serve(t, log)
	all, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"agent.log.s.session.closed", "agent.cmd.a.s.session.close", "_INBOXES.x", "_INBOX", "_R_"} {
		if err := nc.PublishRequest("agent.query.sessions.list", reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("agent.query.sessions.list", nil, patience); err != nil { // answered after all others
		t.Fatal(err)
	}
	for {
		m, err := all.NextMsg(100 * time.Millisecond)
		if err != nil {
			return
		}
		if !strings.HasPrefix(m.Subject, "agent.query.") && !strings.HasPrefix(m.Subject, "_INBOX.") {
			t.Errorf("published on %s", m.Subject)
		}
	}
}

func TestService_WaitsForWrites(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 2)
	nc, _ := serve(t, log)
	m, err := nc.Request("agent.query.sessions.get", []byte(`{"session":"s","min_sequence":{"s":3},"wait_ms":1}`), patience)
	if err != nil || m.Header.Get(micro.ErrorCodeHeader) != CodeNotYet {
		t.Errorf("%s, %v", m.Data, err)
	}
}
