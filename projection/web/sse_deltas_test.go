package web

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// streams is a source of deltas by hand.
type streams struct {
	mu   sync.Mutex
	who  map[string]func(run string, delta []byte)
	left chan string
}

func newStreams() *streams {
	return &streams{who: map[string]func(string, []byte){}, left: make(chan string, 8)}
}

// Follow implements Deltas.
func (s *streams) Follow(session string, handle func(run string, delta []byte)) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session == "broken" {
		return nil, refuse("unavailable", "no deltas today")
	}
	s.who[session] = handle
	return func() { s.left <- session }, nil
}

func (s *streams) say(session, delta string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who[session]("run-1", []byte(delta))
}

func TestFollow_deltas(t *testing.T) {
	t.Parallel()
	from := newStreams()
	w := newWorld(t, func(o *Options) { o.Deltas = from })
	c := w.follow("brief=1&deltas=a&deltas=b", "")
	hello := c.next()
	from.say("a", `{"round":0,"index":0,"kind":"text","text":"one`+"\\n"+`line"}`)
	if m := c.next(); m.event != "delta" || m.id != "" || m.data != `{"session":"a","run":"run-1","delta":{"round":0,"index":0,"kind":"text","text":"one\nline"}}` {
		t.Errorf("got %+v", m)
	}
	// What is no JSON, and what is too long, is left out.
	for _, bad := range []string{"no json", `{"a":1}{"b":2}`, `"` + strings.Repeat("x", maxDelta) + `"`, ""} {
		from.say("b", bad)
	}
	from.say("b", "{\n\"text\":\n\"spread\"}")
	if m := c.next(); m.data != `{"session":"b","run":"run-1","delta":{"text":"spread"}}` {
		t.Errorf("got %+v", m)
	}
	// A delta moves nobody on: the place is that of the last event.
	w.put("a", created("a"))
	event := c.next()
	if event.event != "" || event.id == hello.id {
		t.Errorf("got %+v after %+v", event, hello)
	}
	c.stop()
	for range 2 {
		<-from.left
	}
	again := w.follow("brief=1&deltas=a", event.id)
	if m := again.next(); m.event != "hello" || m.id != event.id {
		t.Errorf("came back with %+v", m)
	}
	for query, code := range map[string]string{
		"deltas=*": "invalid_token", "deltas=a&deltas=b&deltas=c&deltas=d&deltas=e": "invalid_command", "deltas=broken": "unavailable",
	} {
		if a := w.ask(http.MethodGet, "/api/v1/events?"+query, ""); a.code() != code {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	without := newWorld(t, nil).follow("deltas=a", "")
	if m := without.next(); m.event != "hello" {
		t.Errorf("without deltas: %+v", m)
	}
}

// TestStream_deltasOfASlowClient: who takes nothing has a bounded number waiting,
// and does not hold up who publishes.
func TestStream_deltasOfASlowClient(t *testing.T) {
	t.Parallel()
	from := newStreams()
	s := &stream{following: following{deltas: []string{"a"}}}
	stop, err := s.listen(from)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxWaiting {
		from.say("a", fmt.Sprintf(`{"index":%d}`, i))
	}
	if n := len(s.streamed); n != maxWaiting {
		t.Errorf("%d deltas wait", n)
	}
	if stop(); <-from.left != "a" {
		t.Error("it still listens")
	}
}

func TestFollow_briefSaysWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.follow("brief=1", "")
	c.next()
	w.put("a", created("a"), roundStarted(3), toolFinished("call-7"))
	for _, want := range []string{`"type":"session.created"`, `"round":3`, `"tool_call_id":"call-7"`} {
		if m := c.next(); !strings.Contains(m.data, want) {
			t.Errorf("%s is not in %s", want, m.data)
		}
	}
}

func TestFollow_goneSessions(t *testing.T) {
	t.Parallel()
	gone := make(chan string)
	w := newWorld(t, func(o *Options) { o.Gone = gone })
	w.put("a", created("a"))
	all, named, other := w.follow("brief=1&type=run.*", ""), w.follow("session=a", ""), w.follow("session=b", "")
	for _, c := range []*client{all, named, other} {
		c.next()
	}
	gone <- "a"
	place := all.next()
	w.put("b", created("b"))
	if place.event != "gone" || place.data != `{"session":"a"}` {
		t.Errorf("got %+v", place)
	}
	if m := named.next(); m.event != "gone" || m.data != `{"session":"a"}` {
		t.Errorf("got %+v", m)
	}
	if got := other.seqs(1); got[0] != "b@1" {
		t.Errorf("got %v", got)
	}
	// Whoever was away learns it as well.
	gone <- "b"
	again := w.follow("", place.id)
	again.next()
	again.seqs(1)
	if m := again.next(); m.event != "gone" || m.data != `{"session":"b"}` {
		t.Errorf("got %+v", m)
	}
}
