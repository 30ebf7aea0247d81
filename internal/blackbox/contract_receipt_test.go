package blackbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// sent is a command with the answer that it got first.
type sent struct {
	msg   *nats.Msg
	first reply
}

// allKinds sends one command of many kinds, each with an id, and returns them.
func allKinds(c *client, session string) []sent {
	c.t.Helper()
	var out []sent
	send := func(name string, data any) reply {
		c.t.Helper()
		m := message(session, name, data, id(fmt.Sprintf("cmd %d ~", len(out))))
		r := c.request(m)
		if !r.OK || r.Event == nil || r.Duplicate {
			c.t.Fatalf("%s: %s", m.Subject, r.raw)
		}
		out = append(out, sent{m, r})
		return r
	}
	send("session.create", obj{"model": obj{"provider": "test", "model": "m1"}, "metadata": obj{"k": "v"}})
	send("session.configure", obj{"title": "t"})
	send("message.submit", obj{"content": "hello"})
	send("note.append", obj{"kind": "k", "data": obj{"n": 1}})
	id := send("run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 9}}).text("run_id")
	fence := send("run.claim", obj{"run_id": id, "runner": "r1", "providers": []string{"test"}}).Result["fence"]
	held := func(more obj) obj { return merge(obj{"run_id": id, "fence": fence}, more) }
	send("round.start", held(nil))
	send("round.finish", held(obj{"round": 0, "message": obj{"content": "", "tool_calls": []obj{{"id": "", "name": "a", "arguments": "{}"}, {"id": "x", "name": "b", "arguments": "{}"}}}}))
	ids := out[len(out)-1].first.Result["tool_call_ids"].([]any)
	send("tool.start", held(obj{"tool_call_id": ids[0]}))
	send("tool.finish", held(obj{"tool_call_id": ids[0], "success": false, "content": "no", "error": "boom"}))
	send("tool.start", held(obj{"tool_call_id": "x"}))
	send("tool.finish", held(obj{"tool_call_id": "x", "success": true, "content": "yes"}))
	send("round.start", held(nil))
	send("round.finish", held(obj{"round": 1, "message": obj{"content": "one"}, "admit_next": true}))
	send("round.finish", held(obj{"round": 2, "message": obj{"content": "two"}}))
	send("run.finish", held(obj{"outcome": "ok"}))
	return out
}

// repeatAll sends everything again: each answer is the first one, marked.
func repeatAll(c *client, list []sent) {
	c.t.Helper()
	for _, s := range list {
		r := c.request(s.msg)
		if !r.Duplicate || r.first() != s.first.first() {
			c.t.Errorf("%s again:\nfirst %s\nagain %s", s.msg.Subject, s.first.raw, r.raw)
		}
	}
}

// TestReceipts_LastForTheLifeOfTheSession: a repeated command is answered byte
// for byte as the first time: at once, after later events, after a crash, and by
// another engine; nothing is appended.
func TestReceipts_LastForTheLifeOfTheSession(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	a := join(t, server.url)
	s := sessionName(t, "")
	list := allKinds(a.client, s)
	repeatAll(a.client, list)
	b := join(t, server.url)
	repeatAll(b.client, list) // one of the two
	a.kill()
	repeatAll(b.client, list)
	b.kill()
	b.up(t)
	repeatAll(b.client, list)
	if got := len(b.audit(s)); got != len(list) {
		t.Fatalf("%d events for %d commands", got, len(list))
	}
}

// TestReceipts_AnotherCommandUnderTheSameIDIsRefused: other bytes, another
// actor or another name under a known id are no retry.
func TestReceipts_AnotherCommandUnderTheSameIDIsRefused(t *testing.T) {
	c := common(t)
	s := c.create("")
	c.must(s, "message.submit", `{"content":"a"}`, id("X"))
	for what, m := range map[string]*nats.Msg{
		"other content": message(s, "message.submit", `{"content":"b"}`, id("X")),
		"other spacing": message(s, "message.submit", `{"content": "a"}`, id("X")),
		"other actor":   message(s, "message.submit", `{"content":"a"}`, id("X"), as("bob")),
		"other command": message(s, "run.resume", nil, id("X")),
	} {
		if r := c.request(m); r.code() != "command_id_reused" {
			t.Errorf("%s: %s", what, r.raw)
		}
	}
	other := c.create("-other")
	if r := c.must(other, "message.submit", `{"content":"b"}`, id("X")); r.Duplicate {
		t.Errorf("an id of another session: %s", r.raw)
	}
	if n := c.count(s, "message.submitted"); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// TestReceipts_OnlyWhatAppendedIsRemembered: a refusal and an answer without an
// event are judged anew; a refusal that came with a fact is remembered.
func TestReceipts_OnlyWhatAppendedIsRemembered(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	c.refused("session_not_found", s, "message.submit", obj{"content": "a"}, id("A"))
	c.create("")
	if r := c.must(s, "message.submit", obj{"content": "a"}, id("A")); r.Duplicate || r.Sequence != 2 {
		t.Fatalf("after a refusal: %s", r.raw)
	}
	c.refused("no_loop", s, "loop.stop", nil, id("B"))
	r := c.beginLoop(s, 2, 5)
	c.must(s, "loop.stop", nil, id("B"))
	c.nothing(s, "loop.stop", nil, id("C"))
	r.notAdmitted("stopped")
	r.finish("ok")
	c.nothing(s, "loop.stop", nil, id("C"))
	if again := c.must(s, "loop.stop", nil, id("B")); !again.Duplicate || again.event() != "loop.stop_requested" {
		t.Fatalf("a remembered stop: %s", again.raw)
	}
}

// TestReceipts_AreLookedUpBeforeTheExpectedSequence: session, receipt, expected
// sequence, rules, in this order.
func TestReceipts_AreLookedUpBeforeTheExpectedSequence(t *testing.T) {
	c := common(t)
	s := c.create("")
	first := c.must(s, "message.submit", obj{"content": "a"}, id("A"), expect(1))
	c.must(s, "message.submit", obj{"content": "b"}, expect(2))
	if again := c.must(s, "message.submit", obj{"content": "a"}, id("A"), expect(1)); again.first() != first.first() {
		t.Errorf("a retry with the old expectation: %s", again.raw)
	}
	c.refused("command_id_reused", s, "message.submit", obj{"content": "c"}, id("A"), expect(99))
	c.refused("session_not_found", s+"x", "message.submit", obj{"content": "c"}, expect(99))
	r := c.refused("wrong_expected_sequence", s, "loop.stop", nil, expect(2)) // the rules would say no_loop
	if r.Error.Details["actual"] != 3.0 || r.Sequence != 3 {
		t.Errorf("details: %s", r.raw)
	}
	c.refused("no_loop", s, "loop.stop", nil, expect(3))
	c.must(s+"-new", "session.create", obj{}, expect(0))
	c.refused("wrong_expected_sequence", s+"-newer", "session.create", obj{}, expect(1))
}

// TestReceipts_ManyRetriesAtOnceAppendOnce: the same command from many
// connections at the same time is one event, and everybody learns of it.
func TestReceipts_ManyRetriesAtOnceAppendOnce(t *testing.T) {
	c := common(t)
	s := c.create("")
	m := message(s, "message.submit", obj{"content": "once"}, id("once"))
	answers := make(chan reply, 50)
	for range 5 {
		conn := dial(t, c.url)
		for range 10 {
			go func() {
				r, err := conn.repeat(m)
				if err != nil {
					t.Error(err)
				}
				answers <- r
			}()
		}
	}
	originals, texts := 0, map[string]bool{}
	for range 50 {
		r := <-answers
		if !r.Duplicate {
			originals++
		}
		texts[r.first()] = true
	}
	if originals != 1 || len(texts) != 1 || c.sequence(s) != 2 {
		t.Fatalf("%d originals, %d different answers, session at %d: %s", originals, len(texts), c.sequence(s), strings.Join(keys(texts), "\n"))
	}
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
