package blackbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// obj is a JSON object.
type obj = map[string]any

// reply is an engine's answer to a command or a read.
type reply struct {
	OK        bool   `json:"ok"`
	Session   string `json:"session"`
	Command   string `json:"command"`
	Sequence  uint64 `json:"sequence"`
	Duplicate bool   `json:"duplicate"`
	Event     *struct {
		Sequence uint64 `json:"sequence"`
		Type     string `json:"type"`
	} `json:"event"`
	Result obj `json:"result"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details obj    `json:"details"`
	} `json:"error"`
	Birth    string            `json:"birth"`
	HeadHash string            `json:"head_hash"`
	State    obj               `json:"state"`
	Events   []json.RawMessage `json:"events"`
	Next     any               `json:"next"`

	raw    string
	header nats.Header
}

func (r reply) code() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

func (r reply) event() string {
	if r.Event == nil {
		return ""
	}
	return r.Event.Type
}

func (r reply) text(field string) string {
	s, _ := r.Result[field].(string)
	return s
}

// first is the reply without the mark of a duplicate: what a retry must repeat.
func (r reply) first() string {
	s := strings.Replace(r.raw, `"duplicate":true,`, "", 1)
	return strings.Replace(s, `,"duplicate":true`, "", 1)
}

// option changes a message before it is sent.
type option func(*nats.Msg)

func id(id string) option { return header("Nats-Msg-Id", id) }

func expect(seq uint64) option { return header("Culm-Expected-Sequence", fmt.Sprint(seq)) }

func header(name, value string) option { return func(m *nats.Msg) { m.Header[name] = []string{value} } }

// as speaks as another actor than tester.
func as(actor string) option {
	return func(m *nats.Msg) { m.Subject = strings.Replace(m.Subject, ".tester.", "."+actor+".", 1) }
}

// message builds a command; data may be a string of raw bytes.
func message(session, name string, data any, opts ...option) *nats.Msg {
	m := &nats.Msg{Subject: "agent.cmd.tester." + session + "." + name, Header: nats.Header{}, Data: []byte("{}")}
	switch d := data.(type) {
	case nil:
	case string:
		m.Data = []byte(d)
	default:
		if o, is := data.(obj); !is || o != nil {
			m.Data = []byte(jsonText(d))
		}
	}
	for _, o := range opts {
		o(m)
	}
	return m
}

// try sends a request once; an error says that no answer came in time.
func (c *client) try(m *nats.Msg, wait time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return c.tryWith(ctx, m)
}

func (c *client) tryWith(ctx context.Context, m *nats.Msg) (reply, error) {
	answer, err := c.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return reply{}, err
	}
	r := reply{raw: string(answer.Data), header: answer.Header}
	if err := json.Unmarshal(answer.Data, &r); err != nil {
		return r, fmt.Errorf("the answer is no JSON: %w: %s", err, answer.Data)
	}
	return r, nil
}

// repeat sends a request until the answer is not unavailable, as clients are
// told to: a command under its id, or under the one that the refusal names. What
// has no id yet and gets no answer at all is not sent again: it may be stored.
func (c *client) repeat(m *nats.Msg) (reply, error) {
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		isRead, wait := strings.Contains(m.Subject, ".read."), patience/4
		known := isRead || m.Header["Nats-Msg-Id"] != nil
		if !known {
			wait = patience
		}
		r, err := c.try(m, wait)
		nobody := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrReconnectBufExceeded)
		switch {
		case err == nil && r.code() != "unavailable", time.Now().After(end):
			return r, err
		case err != nil && (r.raw != "" || !known && !nobody):
			return r, err
		case err == nil && !known && r.Command != "":
			m.Header["Nats-Msg-Id"] = []string{r.Command}
		}
	}
}

// request is answered in time, and not with unavailable unless for all of it.
func (c *client) request(m *nats.Msg) reply {
	c.t.Helper()
	r, err := c.repeat(m)
	if err != nil {
		c.t.Fatalf("%s: %v", m.Subject, err)
	}
	return r
}

// do sends a command and returns whatever the engine answers.
func (c *client) do(session, name string, data any, opts ...option) reply {
	c.t.Helper()
	return c.request(message(session, name, data, opts...))
}

// must sends a command that has to be accepted.
func (c *client) must(session, name string, data any, opts ...option) reply {
	c.t.Helper()
	r := c.do(session, name, data, opts...)
	if !r.OK {
		c.t.Fatalf("%s %s was refused: %s", session, name, r.raw)
	}
	return r
}

// refused sends a command that has to be refused with the code.
func (c *client) refused(code, session, name string, data any, opts ...option) reply {
	c.t.Helper()
	r := c.do(session, name, data, opts...)
	if r.OK || r.code() != code {
		c.t.Fatalf("%s %s: want %s, got %s", session, name, code, r.raw)
	}
	return r
}

// nothing sends a command that has to be accepted without an event.
func (c *client) nothing(session, name string, data any, opts ...option) reply {
	c.t.Helper()
	r := c.must(session, name, data, opts...)
	if r.Event != nil {
		c.t.Fatalf("%s %s appended %s", session, name, r.raw)
	}
	return r
}

// read asks for a session's state with its transcript.
func (c *client) read(session string) reply {
	c.t.Helper()
	return c.readWith(session, obj{"transcript": true})
}

// readWith is a read that has to be answered.
func (c *client) readWith(session string, query any) reply {
	c.t.Helper()
	r := c.request(readMessage(session, query))
	if !r.OK {
		c.t.Fatalf("read %s %v: %s", session, query, r.raw)
	}
	return r
}

func readMessage(session string, query any) *nats.Msg {
	m := message(session, "", query)
	m.Subject = "agent.read." + session
	return m
}

// sequence is where the session ends.
func (c *client) sequence(session string) uint64 {
	c.t.Helper()
	return c.readWith(session, nil).Sequence
}

// part is an object of the newest state, nil if it is null.
func (c *client) part(session, name string) obj {
	c.t.Helper()
	o, _ := c.readWith(session, nil).State[name].(obj)
	return o
}

// pending are the items that wait for a person.
func (c *client) pending(session string) []obj {
	c.t.Helper()
	return objects(c.readWith(session, nil).State["pending"])
}

func objects(v any) []obj {
	list, _ := v.([]any)
	out := make([]obj, 0, len(list))
	for _, x := range list {
		o, _ := x.(obj)
		out = append(out, o)
	}
	return out
}

// wantLoop checks status and the counters started/completed/rounds.
func (c *client) wantLoop(session, status, counts string) obj {
	c.t.Helper()
	l := c.part(session, "loop")
	got := fmt.Sprintf("%v %v/%v/%v", l["status"], l["iterations_started"], l["iterations_completed"], l["rounds_started"])
	if got != status+" "+counts {
		c.t.Fatalf("loop of %s: %s, want %s %s", session, got, status, counts)
	}
	return l
}

// create makes a session with a model and returns its name, which follows from
// the test's.
func (c *client) create(suffix string, more ...obj) string {
	c.t.Helper()
	name := sessionName(c.t, suffix)
	c.must(name, "session.create", merge(obj{"model": obj{"provider": "test", "model": "m1"}}, more...))
	return name
}

func sessionName(t testing.TB, suffix string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.TrimPrefix(t.Name(), "Test")) + suffix
	return tail(s, 64)
}

func merge(base obj, more ...obj) obj {
	out := obj{}
	for _, m := range append([]obj{base}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// jsonText spells a value; equal values have equal texts.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
