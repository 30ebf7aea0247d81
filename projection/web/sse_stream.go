package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"culm/events"
)

// stream is one client of the event stream.
type stream struct {
	following

	w         http.ResponseWriter
	ctl       *http.ResponseController
	heartbeat time.Duration
	timeout   time.Duration
	buf       bytes.Buffer
	id        func() string // position after what was sent
	streamed  chan streamed // deltas to be sent; nil without
}

// flush sends what is buffered; false when the client is gone or takes nothing.
func (t *stream) flush() bool {
	_ = t.ctl.SetWriteDeadline(time.Now().Add(t.timeout))
	_, err := t.w.Write(t.buf.Bytes())
	if err == nil {
		err = t.ctl.Flush()
	}
	t.buf.Reset()
	return err == nil
}

// say buffers one message; name "" is an event.
func (t *stream) say(name string, data []byte) {
	t.message(t.id(), name, data)
}

// message buffers one message; an empty id leaves the client's place as it is.
func (t *stream) message(id, name string, data []byte) {
	if id != "" {
		fmt.Fprintf(&t.buf, "id: %s\n", id)
	}
	if name != "" {
		fmt.Fprintf(&t.buf, "event: %s\n", name)
	}
	for line := range bytes.FieldsFuncSeq(data, func(r rune) bool { return r == '\n' || r == '\r' }) {
		t.buf.WriteString("data: ")
		t.buf.Write(line)
		t.buf.WriteByte('\n')
	}
	t.buf.WriteByte('\n')
}

func (t *stream) tell(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	t.say(name, data)
}

// reasonOf is the data of gap and cut.
type reasonOf struct {
	Reason string `json:"reason"`
}

// event buffers an event that the client asked for, or that a session is gone.
func (t *stream) event(r *events.Record) {
	switch {
	case !t.wants(r):
	case r.Type == goneType:
		t.tell("gone", struct {
			Session string `json:"session"`
		}{r.Session})
	case t.brief:
		t.tell("", briefOf(r))
	default:
		t.say("", r.Payload)
	}
}

// all follows every session from where the client was, if the hub still holds
// that, else from now on after a gap.
func (t *stream) all(ctx context.Context, h *hub, end cursor) {
	at := end
	t.id = func() string { return at.String() }
	last, ok := parseCursor(t.lastID)
	if ok = ok && h.holds(last); ok {
		at = last
	}
	t.tell("hello", struct{}{}) // with the place that was kept: it must not move the client on
	if t.lastID != "" && !ok {
		t.tell("gap", reasonOf{"too_old"})
	}
	t.pump(ctx, h, &at, func(r *events.Record) bool { t.event(r); return true })
}

// pump hands over what the hub has from the cursor on, until the client or the
// hub gives up.
func (t *stream) pump(ctx context.Context, h *hub, at *cursor, take func(*events.Record) bool) {
	tick := time.NewTicker(t.heartbeat)
	defer tick.Stop()
	for {
		batch, grown, ok := h.read(*at, streamBatch)
		if !ok {
			t.tell("cut", reasonOf{"slow"})
			t.flush()
			return
		}
		for i := range batch {
			at.next++
			if !take(&batch[i]) {
				t.flush()
				return
			}
		}
		if t.buf.Len() > 0 && !t.flush() {
			return
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-grown:
		case d := <-t.streamed:
			t.delta(d)
		case <-tick.C:
			fmt.Fprintf(&t.buf, "id: %s\n: heartbeat\n\n", t.id())
		case <-ctx.Done():
			return
		}
	}
}
