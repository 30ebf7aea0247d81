package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/events"
)

// status answers GET /api/v1/status: who is asked, who asks, how far behind.
func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	st := Status{Ready: true}
	if s.opts.Status != nil {
		st = s.opts.Status(r.Context())
	}
	if st.Rebuilding == nil {
		st.Rebuilding = []string{}
	}
	writeJSON(w, http.StatusOK, struct {
		OK    bool   `json:"ok"`
		Actor string `json:"actor"` // whom the token names, "" for nobody
		Acts  bool   `json:"acts"`  // commands would be taken from the actor
		Status
	}{true, actorOf(r.Context()), actorOf(r.Context()) != "" && s.opts.Commands != nil, st})
	return nil
}

// queryGet answers a query whose request stands in the query string.
func (s *Server) queryGet(w http.ResponseWriter, r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(aggregate.CodeInvalidCommand, "the query string: %v", err)
	}
	body, err := requestOf(q)
	if err != nil {
		return err
	}
	return s.query(w, r, body)
}

// queryPost answers a query whose request is the body.
func (s *Server) queryPost(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	return s.query(w, r, body)
}

func (s *Server) query(w http.ResponseWriter, r *http.Request, body []byte) error {
	view, verb := r.PathValue("view"), r.PathValue("verb")
	if !events.ValidToken(view) || !events.ValidToken(verb) {
		return refuse(codeNotFound, "there is no such query")
	}
	reply := s.opts.Query.Query(r.Context(), view, verb, body)
	status := http.StatusOK
	if !bytes.HasPrefix(reply, []byte(`{"ok":true`)) {
		status = statusOf(codeOf(reply))
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeBody(w, status, reply)
	return nil
}

// codeOf is the error code of a reply, "" of one that went well.
func codeOf(reply []byte) string {
	var v struct {
		OK    bool `json:"ok"`
		Error *struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(reply, &v); {
	case err != nil:
		return codeInternal
	case v.Error != nil:
		return v.Error.Code
	case !v.OK:
		return codeInternal
	}
	return ""
}

// numbers are the fields of queries that are numbers, flags those that are
// true or false; the others are strings.
var (
	numbers = []string{"limit", "after", "wait_ms", "at_sequence", "before"}
	flags   = []string{"transcript"}
)

// requestOf makes the JSON of a query out of a query string; min_sequence is
// given as session@sequence, and may be there several times.
func requestOf(q url.Values) ([]byte, error) {
	out := map[string]any{}
	for name, values := range q {
		if name == "min_sequence" {
			places := map[string]uint64{}
			for _, v := range values {
				session, digits, _ := strings.Cut(v, "@")
				n, err := strconv.ParseUint(digits, 10, 64)
				if err != nil {
					return nil, refuse(aggregate.CodeInvalidCommand, "min_sequence is given as session@sequence")
				}
				places[session] = n
			}
			out[name] = places
			continue
		}
		if len(values) != 1 {
			return nil, refuse(aggregate.CodeInvalidCommand, "%.40q is given %d times", name, len(values))
		}
		v, err := parameter(name, values[0])
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	body, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return nil, refuse(aggregate.CodeInvalidCommand, "the query string: %v", err)
	}
	return body, nil
}

func parameter(name, value string) (any, error) {
	switch {
	case slices.Contains(flags, name):
		return value == "1" || value == "true", nil
	case slices.Contains(numbers, name):
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return nil, refuse(aggregate.CodeInvalidCommand, "%s is no number", name)
		}
		return n, nil
	}
	return value, nil
}

// readBody takes a JSON body; none is an empty object.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil, refuse(codeMediaType, "the body must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(aggregate.CodePayloadTooLarge, "the body has more than %d bytes", MaxBody)
	case err != nil:
		return nil, refuse(aggregate.CodeUnavailable, "the body did not arrive")
	case len(bytes.TrimSpace(body)) == 0:
		return []byte("{}"), nil
	}
	if err := checkObject(body); err != nil {
		return nil, refuse(aggregate.CodeInvalidJSON, "the body is not one JSON object: %v", err)
	}
	return body, nil
}

// checkObject holds for exactly one well-formed object, by the rules of events:
// no equal keys, valid UTF-8, bounded depth.
func checkObject(body []byte) error {
	if err := events.UnmarshalStrict(body, new(syntaxOnly)); err != nil {
		return err
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return errors.New("it is something else")
	}
	return nil
}

// syntaxOnly takes any JSON value and keeps nothing.
type syntaxOnly struct{}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (*syntaxOnly) UnmarshalJSONFrom(d *jsontext.Decoder) error { return d.SkipValue() }
