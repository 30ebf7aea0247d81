package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
)

// Bounds of one client of the event stream.
const (
	maxFollowed  = 32 // sessions by name
	maxTypes     = 64
	streamBatch  = 256
	writeTimeout = 15 * time.Second // of one write to a client
)

// following is what a client of the event stream asked for.
type following struct {
	sessions []string // empty for all
	types    []string // empty for all; "run." stands for all that begin so
	brief    bool
	lastID   string
}

func parseFollowing(r *http.Request) (following, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return following{}, refuse(aggregate.CodeInvalidCommand, "the query string: %v", err)
	}
	f := following{sessions: q["session"], brief: q.Get("brief") == "1", lastID: r.Header.Get("Last-Event-ID")}
	if f.lastID == "" {
		f.lastID = q.Get("last_event_id")
	}
	for _, t := range q["type"] {
		f.types = append(f.types, strings.TrimSuffix(t, "*"))
	}
	for name := range q {
		if !slices.Contains([]string{"session", "type", "brief", "last_event_id"}, name) {
			return f, refuse(aggregate.CodeInvalidCommand, "unknown parameter %.40q", name)
		}
	}
	if len(f.sessions) > maxFollowed || len(f.types) > maxTypes {
		return f, refuse(aggregate.CodeInvalidCommand, "at most %d sessions and %d types; leave them out for all", maxFollowed, maxTypes)
	}
	for _, s := range f.sessions {
		if !events.ValidToken(s) {
			return f, refuse(aggregate.CodeInvalidToken, "session %.80q is no valid token", s)
		}
	}
	return f, nil
}

// wants says whether the client asked for events like this one.
func (f *following) wants(r *events.Record) bool {
	if len(f.sessions) > 0 && !slices.Contains(f.sessions, r.Session) {
		return false
	}
	if len(f.types) == 0 {
		return true
	}
	return slices.ContainsFunc(f.types, func(t string) bool {
		return r.Type == t || strings.HasSuffix(t, ".") && strings.HasPrefix(r.Type, t)
	})
}

// follow answers GET /api/v1/events: server-sent events, until the client goes.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFollowing(r)
	if err != nil {
		return err
	}
	if s.clients.Add(1) > int64(s.opts.MaxClients) {
		s.clients.Add(-1)
		return refuse(codeTooMany, "%d clients follow already", s.opts.MaxClients)
	}
	defer s.clients.Add(-1)
	wait, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	at, err := s.hub.end(wait)
	cancel()
	if err != nil {
		return err
	}
	t := &stream{w: w, ctl: http.NewResponseController(w), following: f, heartbeat: s.opts.Heartbeat, timeout: s.opts.WriteTimeout}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if len(f.sessions) > 0 {
		t.exact(r.Context(), s.hub, s.opts.Log, at)
	} else {
		t.all(r.Context(), s.hub, at)
	}
	return nil
}

// stream is one client of the event stream.
type stream struct {
	following

	w         http.ResponseWriter
	ctl       *http.ResponseController
	heartbeat time.Duration
	timeout   time.Duration
	buf       bytes.Buffer
	id        func() string // position after what was sent
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
	if id := t.id(); id != "" {
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

// brief is an event without its content.
type brief struct {
	Session string    `json:"session"`
	Seq     uint64    `json:"seq"`
	Type    string    `json:"type"`
	Time    time.Time `json:"time,omitzero"`
	Actor   string    `json:"actor,omitzero"`
	Run     string    `json:"run,omitzero"`
}

func (t *stream) event(r *events.Record) {
	if !t.wants(r) {
		return
	}
	if !t.brief {
		t.say("", r.Payload)
		return
	}
	e, _ := events.Decode(r.Payload) // attributes are there even where the type is not known
	t.tell("", brief{r.Session, r.Seq, r.Type, e.Time, e.Actor, e.Run})
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
		case <-tick.C:
			fmt.Fprintf(&t.buf, "id: %s\n: heartbeat\n\n", t.id())
		case <-ctx.Done():
			return
		}
	}
}

// exact follows named sessions without a gap: what the hub no longer has is
// read from the log.
func (t *stream) exact(ctx context.Context, h *hub, log Log, at cursor) {
	p, err := t.places(ctx, log)
	t.id = p.String
	if err != nil {
		t.tell("cut", reasonOf{asFault(err).Code})
		t.flush()
		return
	}
	t.tell("hello", struct{}{})
	if p.lost {
		t.tell("gap", reasonOf{"not_there"})
	}
	for _, session := range p.names {
		if !t.backlog(ctx, log, p, session, 0) {
			return
		}
	}
	t.pump(ctx, h, &at, func(r *events.Record) bool {
		if !slices.Contains(p.names, r.Session) || r.Seq <= p.at[r.Session] {
			return true
		}
		if r.Seq > p.at[r.Session]+1 && !t.backlog(ctx, log, p, r.Session, r.Seq-1) {
			return false
		}
		p.at[r.Session] = r.Seq
		t.event(r)
		return true
	})
}

// backlog sends what the log holds of a session after its place.
func (t *stream) backlog(ctx context.Context, log Log, p *places, session string, through uint64) bool {
	last, err := log.Last(ctx, session)
	if err != nil || last <= p.at[session] {
		return err == nil || asFault(err).Code == aggregate.CodeSessionNotFound || t.broken(err)
	}
	for r, err := range log.Read(ctx, session, p.at[session], through) {
		if err != nil {
			return t.broken(err)
		}
		p.at[session] = r.Seq
		t.event(&r)
		if t.buf.Len() > 64<<10 && !t.flush() {
			return false
		}
	}
	return t.buf.Len() == 0 || t.flush()
}

func (t *stream) broken(err error) bool {
	t.tell("cut", reasonOf{asFault(err).Code})
	t.flush()
	return false
}

// places are positions in named sessions, spelled "a@12,b@7".
type places struct {
	names []string
	at    map[string]uint64
	lost  bool // a place that was asked for lies behind the end of its session
}

func (p *places) String() string {
	var b strings.Builder
	for i, s := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s + "@" + strconv.FormatUint(p.at[s], 10))
	}
	return b.String()
}

// places begin where Last-Event-ID says, or with what is new.
func (t *stream) places(ctx context.Context, log Log) (*places, error) {
	p := &places{at: map[string]uint64{}}
	for part := range strings.SplitSeq(t.lastID, ",") {
		session, digits, _ := strings.Cut(part, "@")
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil && slices.Contains(t.sessions, session) {
			p.at[session] = n
		}
	}
	for _, s := range t.sessions {
		if slices.Contains(p.names, s) {
			continue
		}
		p.names = append(p.names, s)
		last, err := log.Last(ctx, s)
		if err != nil && asFault(err).Code != aggregate.CodeSessionNotFound {
			return p, err
		}
		at, known := p.at[s]
		p.lost = p.lost || at > last
		if !known || at > last {
			p.at[s] = last
		}
	}
	return p, nil
}
