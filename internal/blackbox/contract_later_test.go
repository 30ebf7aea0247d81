package blackbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// later queues a command; it is stored by the queue when it returns.
func (c *client) later(session, name string, data any, opts ...option) {
	c.t.Helper()
	m := message(session, name, data, opts...)
	m.Subject = strings.Replace(m.Subject, "agent.cmd.", "agent.later.", 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.js.PublishMsg(ctx, m)
	must(c.t, err)
}

func laterID(id string) option { return header("Culm-Command-Id", id) }

// TestLater_WaitsForAnEngine: queued while no engine runs, handled in order when
// one does, each once; what is refused is told, and the queue is empty then.
func TestLater_WaitsForAnEngine(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	e := join(t, server.url)
	s := e.create("")
	if status := e.stop(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	refused := e.listen("agent.refused.>")
	for i := range 50 {
		e.later(s, "message.submit", obj{"content": fmt.Sprint(i)}, laterID(fmt.Sprint("later ", i)))
	}
	e.later(s, "message.submit", obj{"content": "7"}, laterID("later 7"))   // once more
	e.later(s, "message.submit", obj{"content": "new"}, laterID("later 7")) // another command
	e.later(s, "loop.stop", nil)
	e.later("nobody", "message.submit", obj{"content": "a"}, as("bob"))
	e.later(s, "session.close", nil)
	e.up(t)
	e.await(s, "session.closed")
	list := e.audit(s)
	if len(list) != 52 {
		t.Errorf("%d events", len(list))
	}
	for i := range 50 {
		if ev := list[i+1]; ev.Data["content"] != fmt.Sprint(i) || ev.Command != fmt.Sprint("later ", i) || ev.Actor != "tester" {
			t.Errorf("event %d: %s", i+2, ev.payload)
		}
	}
	got := map[string]string{}
	for range 3 {
		m := next(t, refused)
		var r reply
		must(t, json.Unmarshal(m.Data, &r))
		got[m.Subject] += r.code()
	}
	want := map[string]string{
		"agent.refused.tester." + s + ".message.submit": "command_id_reused", "agent.refused.tester." + s + ".loop.stop": "no_loop", "agent.refused.bob.nobody.message.submit": "session_not_found",
	}
	for subject, code := range want {
		if got[subject] != code {
			t.Errorf("%s: %q, want %s", subject, got[subject], code)
		}
	}
	e.awaitEmptyQueue()
	if rest := drain(refused); len(rest) > 0 {
		t.Errorf("%s %s", rest[0].Subject, rest[0].Data)
	}
}

func (c *client) awaitEmptyQueue() {
	c.t.Helper()
	eventually(c.t, "the queue is empty", func() bool {
		stream, err := c.js.Stream(context.Background(), "COMMANDS")
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
}

// TestLater_IsTheSameCommandAsARequest: an id sent by request and then queued,
// or the other way, is one command.
func TestLater_IsTheSameCommandAsARequest(t *testing.T) {
	c := common(t)
	s := c.create("")
	feed := c.listen("agent.event." + s + ".>")
	first := c.must(s, "message.submit", obj{"content": "a"}, id("A"))
	c.later(s, "message.submit", obj{"content": "a"}, laterID("A"))
	c.later(s, "message.submit", obj{"content": "b"}, laterID("B"))
	next(t, feed)
	next(t, feed) // B has been handled, so A has
	if x := c.must(s, "message.submit", obj{"content": "b"}, id("B")); !x.Duplicate || x.Sequence != first.Sequence+1 {
		t.Errorf("B by request: %s", x.raw)
	}
	if n := c.count(s, "message.submitted"); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestLater_MalformedIsRefusedAndRemoved: nothing sticks in the queue.
func TestLater_MalformedIsRefusedAndRemoved(t *testing.T) {
	c := common(t)
	s := c.create("")
	refused := c.listen("agent.refused.>")
	for body, want := range map[string]string{`{`: "invalid_json", `{"x":1}`: "invalid_command", `{"content":"a","content":"b"}`: "invalid_json"} {
		c.later(s, "message.submit", body)
		m := next(t, refused)
		if !strings.Contains(string(m.Data), `"`+want+`"`) || m.Header.Get("Nats-Service-Error-Code") != want {
			t.Errorf("%s: %v %s", body, m.Header, m.Data)
		}
	}
	c.later(s, "message.submit", obj{"content": "a"}, id("by the wrong header"))
	if m := next(t, refused); !strings.Contains(string(m.Data), `"invalid_command"`) {
		t.Errorf("the header of a request: %s", m.Data)
	}
	c.later(s, "message.submit", obj{"content": "a"}, laterID("x"), expect(9))
	if m := next(t, refused); !strings.Contains(string(m.Data), `"wrong_expected_sequence"`) {
		t.Errorf("an expected sequence: %s", m.Data)
	}
	c.later("_settings", "message.submit", obj{"content": "a"})
	if m := next(t, refused); !strings.Contains(string(m.Data), `"invalid_token"`) {
		t.Errorf("a reserved session: %s", m.Data)
	}
	c.awaitEmptyQueue()
	if n := c.sequence(s); n != 1 {
		t.Errorf("the session is at %d", n)
	}
}

// TestLater_ReplySubjectsOfTheQueueAreItsOwn: what is queued with a foreign
// reply subject is answered there by the queue's stream at most, as the server
// does, and never by the engine.
func TestLater_ReplySubjectsOfTheQueueAreItsOwn(t *testing.T) {
	c := common(t)
	s := c.create("")
	foreign := c.listen("foreign.later")
	m := message(s, "message.submit", obj{"content": "a"})
	m.Subject, m.Reply = strings.Replace(m.Subject, "agent.cmd.", "agent.later.", 1), "foreign.later"
	must(t, c.nc.PublishMsg(m))
	c.await(s, "message.submitted")
	c.must(s, "note.append", obj{"kind": "k", "data": obj{}})
	for _, m := range drain(foreign) {
		if strings.Contains(string(m.Data), `"ok"`) {
			t.Errorf("the engine answered: %s", m.Data)
		}
	}
}

// TestLater_EachSessionInItsOrder: many sessions at once do not mix.
func TestLater_EachSessionInItsOrder(t *testing.T) {
	c := common(t)
	const sessions, each = 8, 20
	for i := range sessions {
		c.later(sessionName(t, fmt.Sprint("-", i)), "session.create", nil)
	}
	for n := range each {
		for i := range sessions {
			must(t, c.nc.PublishMsg(&nats.Msg{Subject: "agent.later.tester." + sessionName(t, fmt.Sprint("-", i)) + ".message.submit", Data: fmt.Appendf(nil, `{"content":"%d"}`, n)}))
		}
	}
	must(t, c.nc.FlushTimeout(patience))
	for i := range sessions {
		s := sessionName(t, fmt.Sprint("-", i))
		c.later(s, "session.close", nil)
		eventually(t, "the session is there", func() bool { return c.request(readMessage(s, nil)).OK })
		c.await(s, "session.closed")
		for n, e := range c.audit(s)[1 : each+1] {
			if e.Data["content"] != fmt.Sprint(n) {
				t.Errorf("%s, message %d: %s", s, n, e.payload)
			}
		}
	}
}
