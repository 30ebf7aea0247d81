package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/events"
)

// Bounds of a page of raw events.
const (
	defaultEvents = 100
	maxEvents     = 1000
	maxPageBytes  = 4 << 20
)

// readTime bounds the wait for an engine's answer.
const readTime = 20 * time.Second

// sessionOf is the session that the path names.
func sessionOf(r *http.Request) (string, error) {
	session := r.PathValue("session")
	if !events.ValidToken(session) {
		return "", refuse(aggregate.CodeInvalidToken, "session %.80q is no valid token", session)
	}
	return session, nil
}

// numbersOf reads parameters that are numbers; others than those named are
// refused.
func numbersOf(r *http.Request, names ...string) (map[string]uint64, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(aggregate.CodeInvalidCommand, "the query string: %v", err)
	}
	out := map[string]uint64{}
	for name, values := range q {
		if !slices.Contains(names, name) {
			return nil, refuse(aggregate.CodeInvalidCommand, "unknown parameter %.40q", name)
		}
		if out[name], err = strconv.ParseUint(values[0], 10, 63); err != nil || len(values) > 1 {
			return nil, refuse(aggregate.CodeInvalidCommand, "%s is not one number", name)
		}
	}
	return out, nil
}

// state answers the session's state, as it was after event at, or as it is.
func (s *Server) state(w http.ResponseWriter, r *http.Request) error {
	session, err := sessionOf(r)
	if err != nil {
		return err
	}
	n, err := numbersOf(r, "at")
	if err != nil {
		return err
	}
	var q aggregate.ReadQuery
	if at, given := n["at"]; given {
		q.AtSequence = &at
		release, err := s.takeHeavy()
		if err != nil {
			return err
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	reply, err := s.opts.Read.Read(ctx, session, q)
	if err != nil {
		return refuse(aggregate.CodeUnavailable, "no engine answered: %v", err)
	}
	status := http.StatusOK
	if reply.Error != nil {
		status = statusOf(reply.Error.Code)
	}
	writeJSON(w, status, reply)
	return nil
}

// takeHeavy lets few requests at once read whole logs.
func (s *Server) takeHeavy() (release func(), err error) {
	select {
	case s.heavy <- struct{}{}:
		return func() { <-s.heavy }, nil
	case <-time.After(2 * time.Second):
		return nil, refuse(codeTooMany, "other logs are being read; try again")
	}
}

// eventsPage is a page of stored events, byte for byte.
type eventsPage struct {
	OK       bool             `json:"ok"`
	Session  string           `json:"session"`
	Sequence uint64           `json:"sequence"` // of the session's last event
	Events   []jsontext.Value `json:"events"`
	Next     uint64           `json:"next,omitzero"` // give it as after
}

// rawEvents answers stored events after a sequence.
func (s *Server) rawEvents(w http.ResponseWriter, r *http.Request) error {
	session, err := sessionOf(r)
	if err != nil {
		return err
	}
	n, err := numbersOf(r, "after", "limit")
	if err != nil {
		return err
	}
	limit, given := n["limit"]
	if !given {
		limit = defaultEvents
	}
	if limit < 1 || limit > maxEvents {
		return refuse(aggregate.CodeInvalidCommand, "limit is %d, allowed are 1 to %d", limit, maxEvents)
	}
	page := eventsPage{OK: true, Session: session, Events: []jsontext.Value{}}
	if page.Sequence, err = s.opts.Log.Last(r.Context(), session); err != nil {
		return err
	}
	size, at := 0, n["after"]
	if at >= page.Sequence {
		writeJSON(w, http.StatusOK, page)
		return nil
	}
	for record, err := range s.opts.Log.Read(r.Context(), session, at, page.Sequence) {
		if err != nil {
			return err
		}
		size += len(record.Payload)
		if uint64(len(page.Events)) == limit || size > maxPageBytes && len(page.Events) > 0 {
			page.Next = at
			break
		}
		page.Events, at = append(page.Events, shown(record)), record.Seq
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// shown is the stored payload, or for bytes that are no JSON, which only damage
// can leave in a log, what can be said of them.
func shown(r events.Record) jsontext.Value {
	if jsontext.Value(r.Payload).IsValid() {
		return jsontext.Value(r.Payload)
	}
	b, _ := json.Marshal(map[string]any{"seq": r.Seq, "type": r.Type, "subject": r.Session, "damaged": fmt.Sprintf("%q", r.Payload[:min(len(r.Payload), 4096)])})
	return b
}

// export sends the whole log, one stored event a line.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	session, err := sessionOf(r)
	if err != nil {
		return err
	}
	if _, err := s.opts.Log.Last(r.Context(), session); err != nil {
		return err
	}
	release, err := s.takeHeavy()
	if err != nil {
		return err
	}
	defer release()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="`+session+`.jsonl"`)
	ctl, out := http.NewResponseController(w), bufio.NewWriterSize(w, 64<<10)
	for record, err := range s.opts.Log.Read(r.Context(), session, 0, 0) {
		if err != nil { // the connection breaks: half a log must not look like a whole one
			panic(http.ErrAbortHandler)
		}
		_ = ctl.SetWriteDeadline(time.Now().Add(s.opts.WriteTimeout))
		_, _ = out.Write(record.Payload)
		if err := out.WriteByte('\n'); err != nil {
			return nil // the client has gone
		}
	}
	_ = out.Flush()
	return nil
}

// audit checks the session's whole log: chain, decoding, fold, invariants.
func (s *Server) audit(w http.ResponseWriter, r *http.Request) error {
	session, err := sessionOf(r)
	if err != nil {
		return err
	}
	release, err := s.takeHeavy()
	if err != nil {
		return err
	}
	defer release()
	report, err := aggregate.Audit(s.opts.Log.Read(r.Context(), session, 0, 0), aggregate.AuditOptions{Session: session})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		OK       bool                `json:"ok"`
		Session  string              `json:"session"`
		Verified bool                `json:"verified"` // nothing was found
		Sequence uint64              `json:"sequence"` // up to which the chain holds
		Hash     string              `json:"hash"`     // of the event there
		Events   uint64              `json:"events"`
		Findings []aggregate.Finding `json:"findings"`
	}{true, session, report.OK(), report.Head.Seq, report.Head.Hash, report.Events, report.Findings})
	return nil
}
