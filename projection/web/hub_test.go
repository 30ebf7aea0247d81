package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"culm/events"
)

// TestFollow_whoIsTooSlowIsCut: a client that takes nothing holds up nobody,
// costs no memory, and hears that it lost the thread.
func TestFollow_whoIsTooSlowIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.WriteTimeout = time.Second })
	w.server.hub.maxEvents = 8
	slow, fast := w.stuck(), w.follow("", "")
	fast.next()
	w.put("a", created("a"))
	for range 24 {
		w.put("a", said(strings.Repeat("x", 400_000)))
		fast.seqs(1) // in step with what is written
	}
	w.server.hub.mu.Lock()
	kept := len(w.server.hub.ring)
	w.server.hub.mu.Unlock()
	if kept > 8 {
		t.Errorf("%d events are kept", kept)
	}
	select {
	case path := <-w.left:
		if path != "/api/v1/events" {
			t.Errorf("%s was asked for", path)
		}
	case <-time.After(patience):
		t.Fatal("the slow client is still there")
	}
	if n := w.server.clients.Load(); n != 1 {
		t.Errorf("%d clients follow", n)
	}
	_ = slow.Close()
}

// stuck is a client that asks to follow, reads that it does, and then nothing.
func (w *world) stuck() net.Conn {
	w.t.Helper()
	address := strings.TrimPrefix(w.http.URL, "http://")
	c, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := fmt.Fprintf(c, "GET /api/v1/events HTTP/1.1\r\nHost: %s\r\n\r\n", address); err != nil {
		w.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for said, b := "", make([]byte, 1); !strings.Contains(said, "event: hello"); said += string(b) {
		if _, err := io.ReadFull(c, b); err != nil {
			w.t.Fatalf("after %q: %v", said, err)
		}
	}
	return c
}

// TestHub_whoFallsBehindIsTold: the place of a client that left the ring is no
// place any more, nor is one of another numbering.
func TestHub_whoFallsBehindIsTold(t *testing.T) {
	t.Parallel()
	mem := events.NewMem()
	h := newHub(mem, nil, time.Unix(1, 0))
	h.maxEvents, h.maxBytes = 3, 1000
	h.subscribed()
	at, err := h.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		h.add(events.Record{Session: "a", Seq: uint64(i + 1), Payload: make([]byte, 10)})
	}
	if batch, _, ok := h.read(at, 2); !ok || len(batch) != 2 || batch[0].Seq != 1 {
		t.Errorf("read %v %v", batch, ok)
	}
	h.add(events.Record{Session: "a", Seq: 4, Payload: make([]byte, 10)})
	if _, _, ok := h.read(at, 2); ok {
		t.Error("an event was passed over in silence")
	}
	at.next++
	if batch, _, ok := h.read(at, 9); !ok || len(batch) != 3 {
		t.Errorf("read %v %v", batch, ok)
	}
	h.add(events.Record{Session: "a", Seq: 5, Payload: make([]byte, 5000)})
	if len(h.ring) != 1 || h.bytes != 5000 {
		t.Errorf("%d events of %d bytes are kept, want the newest alone", len(h.ring), h.bytes)
	}
	end, _ := h.end(t.Context())
	if back, ok := parseCursor(end.String()); !ok || back != end {
		t.Errorf("%v reads as %v", end, back)
	}
	h.reset()
	if h.holds(end) {
		t.Error("a place of the old numbering is one of the new")
	}
}

func TestFollow_heartbeatsAndTooMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.MaxClients = 1 })
	c := w.follow("", "")
	beats := 0
	for beats < 2 && c.lines.Scan() {
		if c.lines.Text() == ": heartbeat" {
			beats++
		}
	}
	if beats < 2 {
		t.Error("a quiet stream says nothing")
	}
	if got := w.ask("GET", "/api/v1/events", ""); got.StatusCode != 503 || got.code() != "too_many" {
		t.Errorf("one too many answers %d %s", got.StatusCode, got.body)
	}
}

func TestServe_endsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, l) }()
	w.http.URL = "http://" + l.Addr().String()
	c := w.follow("", "")
	c.next()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it goes on")
	}
	if url := PageURL(l.Addr(), "tok"); url != "http://"+l.Addr().String()+"/#token=tok" {
		t.Error(url)
	}
	if url := PageURL(l.Addr(), `100%+"#/`); url != "http://"+l.Addr().String()+"/#token=100%25+%22%23%2F" {
		t.Error("a token that needs escapes:", url)
	}
	if url := PageURL(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}, ""); url != "http://localhost:80/" {
		t.Error(url)
	}
}
