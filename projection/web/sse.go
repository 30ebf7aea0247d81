package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"culm/aggregate"
	"culm/events"
)

// Bounds of one client of the event stream.
const (
	maxFollowed  = 32 // sessions by name
	maxTypes     = 64
	maxStreamed  = 4 // sessions whose deltas come, too
	streamBatch  = 256
	writeTimeout = 15 * time.Second // of one write to a client
)

// following is what a client of the event stream asked for.
type following struct {
	sessions []string // empty for all
	types    []string // empty for all; "run." stands for all that begin so
	brief    bool
	deltas   []string // sessions whose deltas come, too
	lastID   string
	places   map[string]uint64 // what lastID says, where sessions are named
}

func parseFollowing(r *http.Request) (following, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return following{}, refuse(aggregate.CodeInvalidCommand, "the query string: %v", err)
	}
	f := following{sessions: q["session"], deltas: q["deltas"], brief: q.Get("brief") == "1", lastID: r.Header.Get("Last-Event-ID")}
	if f.lastID == "" {
		f.lastID = q.Get("last_event_id")
	}
	for _, t := range q["type"] {
		f.types = append(f.types, strings.TrimSuffix(t, "*"))
	}
	for name := range q {
		if !slices.Contains([]string{"session", "type", "brief", "deltas", "last_event_id"}, name) {
			return f, refuse(aggregate.CodeInvalidCommand, "unknown parameter %.40q", name)
		}
	}
	if len(f.sessions) > maxFollowed || len(f.types) > maxTypes || len(f.deltas) > maxStreamed {
		return f, refuse(aggregate.CodeInvalidCommand, "at most %d sessions, %d types and the deltas of %d sessions; leave the first two out for all", maxFollowed, maxTypes, maxStreamed)
	}
	for _, s := range slices.Concat(f.sessions, f.deltas) {
		if !events.ValidToken(s) {
			return f, refuse(aggregate.CodeInvalidToken, "session %.80q is no valid token", s)
		}
	}
	if len(f.sessions) > 0 && f.lastID != "" {
		f.places, err = parsePlaces(f.lastID)
	}
	return f, err
}

// parsePlaces reads an id of named sessions, "a@12,b@7".
func parsePlaces(id string) (map[string]uint64, error) {
	at := map[string]uint64{}
	for part := range strings.SplitSeq(id, ",") {
		session, digits, _ := strings.Cut(part, "@")
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || !events.ValidToken(session) {
			return nil, refuse(aggregate.CodeInvalidCommand, "the last event id: %.80q is no session@sequence, as the ids of named sessions are", part)
		}
		at[session] = n
	}
	return at, nil
}

// wants says whether the client asked for events like this one.
func (f *following) wants(r *events.Record) bool {
	if len(f.sessions) > 0 && !slices.Contains(f.sessions, r.Session) {
		return false
	}
	if len(f.types) == 0 || r.Type == goneType {
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
	stop, err := t.listen(s.opts.Deltas)
	if err != nil {
		return err
	}
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if len(f.sessions) > 0 {
		t.exact(r.Context(), s.hub, s.opts.Log, at)
	} else {
		t.all(r.Context(), s.hub, at)
	}
	return nil
}
