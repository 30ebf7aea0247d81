package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"culm/events"
)

// client is one that follows, and takes messages when asked.
type client struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  context.CancelFunc
	resp  *http.Response
}

func (w *world) follow(query, last string) *client {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+"/api/v1/events?"+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { stop(); _ = resp.Body.Close() })
	c := &client{t: w.t, lines: bufio.NewScanner(resp.Body), stop: stop, resp: resp}
	c.lines.Buffer(nil, 4<<20)
	return c
}

type message struct{ id, event, data string }

// next is the next message that is more than a heartbeat; the zero one at the end.
func (c *client) next() message {
	var m message
	for c.lines.Scan() {
		field, value, _ := strings.Cut(c.lines.Text(), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "":
			if m.data != "" {
				return m
			}
			m = message{}
		}
	}
	return message{}
}

// seqs takes n events and returns session@seq of each.
func (c *client) seqs(n int) []string {
	c.t.Helper()
	var out []string
	for len(out) < n {
		m := c.next()
		switch {
		case m == (message{}):
			c.t.Fatalf("the stream ended after %v", out)
		case m.event == "":
			e, err := events.Decode([]byte(m.data))
			if err != nil {
				c.t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s@%d", e.Session, e.Seq))
		}
	}
	return out
}

func TestFollow_allSessionsAndBackAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("old", created("before"))
	c := w.follow("", "")
	if m := c.next(); m.event != "hello" || m.id == "" {
		t.Fatalf("first came %+v", m)
	}
	w.put("a", created("a"), said("one"))
	w.put("b", created("b"))
	if got := c.seqs(2); !slices.Equal(got, []string{"a@1", "a@2"}) {
		t.Fatalf("got %v", got)
	}
	m := c.next()
	c.stop()
	w.put("a", said("two"))
	again := w.follow("", m.id)
	if hello := again.next(); hello.id != m.id {
		t.Errorf("hello moves the client from %s on to %s", m.id, hello.id)
	}
	if got := again.seqs(1); got[0] != "a@3" {
		t.Errorf("after %s came %v", m.id, got)
	}
	for _, id := range []string{"other-1.3", "nonsense", strings.Replace(m.id, ".", ".9999", 1)} {
		lost := w.follow("", id)
		lost.next() // hello
		if m := lost.next(); m.event != "gap" {
			t.Errorf("from %q came %+v, want a gap", id, m)
		}
		lost.stop()
	}
}

func TestFollow_namedSessionsWithoutAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("a", created("a"), said("one"), said("two"))
	w.put("b", created("b"))
	c := w.follow("session=a&session=b&session=a", "a@1")
	c.next() // hello
	if got := c.seqs(2); !slices.Equal(got, []string{"a@2", "a@3"}) {
		t.Errorf("the backlog is %v", got)
	}
	w.put("c", created("c"))
	w.put("b", said("new"))
	w.put("a", said("newer"))
	if got := c.seqs(1); got[0] != "b@2" {
		t.Errorf("then came %v", got)
	}
	m := c.next()
	if m.id != "a@4,b@2" {
		t.Errorf("the position is %q", m.id)
	}
	c.stop()
	w.put("b", said("while away"))
	again := w.follow("session=a&session=b", m.id)
	again.next()
	if got := again.seqs(1); got[0] != "b@3" {
		t.Errorf("after the break came %v", got)
	}
	later := w.follow("session=not-yet", "")
	later.next()
	w.put("not-yet", created("x"))
	if got := later.seqs(1); got[0] != "not-yet@1" {
		t.Errorf("of a session that was not there came %v", got)
	}
}

// A place that a session does not reach, because its log was restored or made
// anew, must not keep quiet what is stored from now on.
func TestFollow_namedSessionThatEndsBeforeThePlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("a", created("a"), said("one"))
	c := w.follow("session=a&session=gone", "a@7,gone@3")
	c.next() // hello
	if m := c.next(); m.event != "gap" || m.id != "a@2,gone@0" {
		t.Errorf("told %+v, want a gap and the place that there is", m)
	}
	w.put("a", said("two"))
	w.put("gone", created("gone"))
	if got := c.seqs(2); !slices.Equal(got, []string{"a@3", "gone@1"}) {
		t.Errorf("then came %v", got)
	}
}

// An id that says no place is refused, and one of another session is a gap: going
// on with what is new would lose what lies between, unnoticed.
func TestFollow_namedSessionWithAnIDThatIsNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("a", created("a"), said("one"))
	for _, id := range []string{"a@-1", "a@18446744073709551616", "a@", "a", "@1", "a@1,", "a@+1", "epoch.3"} {
		c := w.follow("session=a", id)
		if c.resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", id, c.resp.StatusCode)
		}
		c.stop()
		if got := w.ask("GET", "/api/v1/events?session=a&last_event_id="+url.QueryEscape(id), ""); got.StatusCode != http.StatusBadRequest || got.code() != "invalid_command" {
			t.Errorf("parameter %s: %d %s", id, got.StatusCode, got.body)
		}
	}
	for _, id := range []string{"a@18446744073709551615", "b@3"} {
		c := w.follow("session=a", id)
		c.next() // hello
		if m := c.next(); m.event != "gap" || m.id != "a@2" {
			t.Errorf("%s: told %+v, want a gap", id, m)
		}
		c.stop()
	}
}

func TestFollow_filtersAndBrief(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.follow("type=message.*&type=session.closed&brief=1", "")
	c.next()
	w.put("a", created("a"), said("one"), events.SessionPlanExited{Posture: events.Posture{AuditRevision: 2, RequestedMode: "default", EffectiveMode: "default"}}, events.SessionClosed{})
	for _, want := range []string{
		`{"session":"a","seq":2,"type":"message.submitted","time":"2026-11-30T12:00:01Z","actor":"ada"}`,
		`{"session":"a","seq":4,"type":"session.closed","time":"2026-11-30T12:00:03Z","actor":"ada"}`,
	} {
		if m := c.next(); m.data != want {
			t.Errorf("got %s, want %s", m.data, want)
		}
	}
	many := strings.Repeat("session=s&", maxFollowed+1)
	for _, query := range []string{"session=a.b", many, "typo=1", "session=%zz"} {
		if got := w.ask("GET", "/api/v1/events?"+query, ""); got.StatusCode != 400 {
			t.Errorf("%.40s answers %d", query, got.StatusCode)
		}
	}
}
