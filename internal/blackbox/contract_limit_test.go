package blackbox

import (
	"sort"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

const maxPayload = 1 << 20

// size is what the server counts of a message.
func size(h nats.Header, payload []byte) int {
	n := len("NATS/1.0\r\n\r\n") + len(payload)
	for k, v := range h {
		n += len(k) + len(": ") + len(v[0]) + len("\r\n")
	}
	return n
}

// timeDigits is how much shorter an event's time may be spelled: trailing zeros
// of its fraction are left out.
const timeDigits = len(".123456789")

// TestLimit_EventsUpToTheLastByte: the greatest content that is accepted makes
// an event of max_payload, but for the digits of its time; more is refused, and
// nothing is stored.
func TestLimit_EventsUpToTheLastByte(t *testing.T) {
	c := common(t)
	s := c.create("")
	submit := func(n int) reply {
		r := c.do(s, "message.submit", `{"content":"`+strings.Repeat("x", n)+`"}`)
		if !r.OK && r.code() != "payload_too_large" {
			t.Fatalf("%d bytes: %.300s", n, r.raw)
		}
		return r
	}
	low := maxPayload - 2000 // what the envelope takes is less
	over := low + sort.Search(2000-200, func(i int) bool { return !submit(low + i).OK })
	at := c.sequence(s)
	for n := over + timeDigits; n < over+timeDigits+3; n++ {
		if r := submit(n); r.OK {
			t.Errorf("%d bytes were accepted, %d not", n, over)
		}
	}
	if now := c.sequence(s); now != at {
		t.Errorf("refusals moved the session from %d to %d", at, now)
	}
	// The sequence has as many digits again, so the sizes are those of before.
	if r := submit(over - timeDigits); !r.OK {
		t.Fatalf("%d bytes were refused: %.300s", over-timeDigits, r.raw)
	}
	e := c.last(s, "message.submitted")
	if got := size(e.header, e.payload); got < maxPayload-2-2*timeDigits || got > maxPayload {
		t.Errorf("the greatest event has %d bytes with headers, the limit is %d", got, maxPayload)
	}
	c.audit(s)
}

// TestLimit_GreatEventsCanBeRead: each way to read says that a page does not
// hold them, or holds them; none is silent.
func TestLimit_GreatEventsCanBeRead(t *testing.T) {
	c := common(t)
	s := c.create("")
	c.must(s, "message.submit", obj{"content": strings.Repeat("x", maxPayload-1200)})
	for _, q := range []obj{{"transcript": true}, {"events": obj{"after": 1, "limit": 1}}} {
		if r := c.request(readMessage(s, q)); !r.OK && r.code() != "payload_too_large" {
			t.Errorf("%v: %.300s", q, r.raw)
		}
	}
	if r := c.readWith(s, nil); r.Sequence != 2 {
		t.Errorf("plain read: %.300s", r.raw)
	}
	retry := c.must(s, "message.submit", obj{"content": "b"}, id("b"))
	if again := c.must(s, "message.submit", obj{"content": "b"}, id("b")); again.first() != retry.first() {
		t.Errorf("a receipt behind a great event: %.300s", again.raw)
	}
}

// TestLimit_ARequestOfTheGreatestSizeIsAnswered: whatever is in it.
func TestLimit_ARequestOfTheGreatestSizeIsAnswered(t *testing.T) {
	c := common(t)
	s := c.create("")
	at := c.sequence(s)
	for _, name := range []string{"message.submit", "note.append", "session.configure", "run.request", "loop.stop", "no.such"} {
		for _, fill := range []string{"x", `\`, "\x00", "["} {
			m := message(s, name, "")
			m.Data = []byte(`{"content":"` + strings.Repeat(fill, maxPayload-100))[:maxPayload-size(m.Header, nil)]
			if r := c.request(m); r.OK || r.code() == "" {
				t.Errorf("%s of %q: %.300s", name, fill, r.raw)
			}
		}
	}
	if now := c.sequence(s); now != at {
		t.Errorf("the session moved to %d", now)
	}
	if err := c.nc.PublishMsg(&nats.Msg{Subject: "agent.cmd.tester." + s + ".message.submit", Reply: c.nc.NewInbox(), Data: make([]byte, maxPayload+1)}); err == nil {
		t.Error("the client library let more than max_payload through")
	}
}

// TestLimit_SmallServersWork: the limit is the server's, not a constant.
func TestLimit_SmallServersWork(t *testing.T) {
	t.Parallel()
	server := startNATS(t, "-max-payload", "65536")
	e := join(t, server.url)
	s := e.create("")
	e.must(s, "message.submit", obj{"content": strings.Repeat("x", 40<<10)})
	e.refused("payload_too_large", s, "message.submit", obj{"content": strings.Repeat("x", 65300)})
	for range 5 {
		e.must(s, "message.submit", obj{"content": strings.Repeat("y", 30<<10)})
	}
	query, n := obj{"transcript": true}, 0
	for {
		x := e.readWith(s, query)
		n += len(objects(x.State["messages"]))
		if x.Next == nil {
			break
		}
		query["after_message"] = x.Next
	}
	if n != 6 {
		t.Errorf("%d messages read", n)
	}
	e.audit(s)
}
