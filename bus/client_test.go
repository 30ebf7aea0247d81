package bus

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/internal/natstest"
)

func newTestClient(t *testing.T, nc *nats.Conn) *Client {
	t.Helper()
	c, err := NewClient(nc, Subjects{}, "alice")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient_DoSendsWhatTheOptionsSay(t *testing.T) {
	t.Parallel()
	d := openDoor(t, &fakeRules{})
	c := newTestClient(t, d.nc)
	for _, data := range []any{nil, []byte(`{ }`), jsontext.Value(`{"a":1}`), map[string]int{"b": 1, "a": 2}, struct {
		N int `json:"n"`
	}{3}} {
		r, err := c.Do(t.Context(), "S", "message.submit", data, CommandID("c 1"), ExpectedSequence(0), Traceparent(goodTrace))
		if err != nil || !r.OK || r.Command != "c 1" {
			t.Fatalf("%v: %+v %v", data, r, err)
		}
	}
	want := []string{`{}`, `{ }`, `{"a":1}`, `{"a":2,"b":1}`, `{"n":3}`}
	for i, r := range d.rules.requests() {
		if string(r.Body) != want[i] || r.Actor != "alice" || *r.Expected != 0 || r.Traceparent != goodTrace {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	r, err := c.Do(t.Context(), "S", "message.submit", nil)
	if err != nil || len(r.Command) < 20 {
		t.Errorf("no id minted: %+v %v", r, err)
	}
}

func TestClient_RetriesWithTheSameID(t *testing.T) {
	t.Parallel()
	rules := &fakeRules{}
	calls := 0
	rules.handle = func(r aggregate.Request, done func(aggregate.Reply)) {
		switch calls++; calls {
		case 1, 2:
			done(refusedReply(r, aggregate.CodeUnavailable))
		case 3: // the answer is lost
		default:
			done(acceptedReply(r, 7))
		}
	}
	d := openDoor(t, rules)
	r, err := newTestClient(t, d.nc).Do(t.Context(), "S", "n.v", nil, AttemptTimeout(50*time.Millisecond))
	if err != nil || !r.OK || r.Sequence != 7 {
		t.Fatalf("%+v %v", r, err)
	}
	got := rules.requests()
	if len(got) < 4 {
		t.Fatalf("%d attempts", len(got))
	}
	for _, q := range got {
		if q.ID == "" || q.ID != r.Command || q.Digest != got[0].Digest {
			t.Errorf("attempt with id %q, answered %q", q.ID, r.Command)
		}
	}
}

func TestClient_WaitsForAnEngine(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, nil)
	c := newTestClient(t, ns.Connect(t))
	_, err := c.Do(t.Context(), "S", "n.v", nil, NoRetry())
	var failed *ReplyError
	if !errors.As(err, &failed) || !errors.Is(err, nats.ErrNoResponders) || failed.Attempts != 1 || failed.Command == "" {
		t.Fatalf("without an engine: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), "S", "n.v", nil)
		got <- err
	}()
	svc, err := StartService(ServiceOptions{Conn: ns.Connect(t), Handler: &fakeRules{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = svc.Stop(context.Background()) }()
	if err := awaitValue(t, got); err != nil {
		t.Fatal(err)
	}
}

func TestClient_EndOfContextIsAnErrorWithTheLastRefusal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	rules := &fakeRules{}
	rules.handle = func(r aggregate.Request, done func(aggregate.Reply)) {
		if len(rules.requests()) == 3 {
			defer cancel(enough)
		}
		done(refusedReply(r, aggregate.CodeUnavailable))
	}
	d := openDoor(t, rules)
	_, err := newTestClient(t, d.nc).Do(ctx, "S", "n.v", nil)
	var failed *ReplyError
	if !errors.As(err, &failed) || failed.Attempts < 3 {
		t.Fatalf("%v", err)
	}
	r, err := newTestClient(t, d.nc).Do(t.Context(), "S", "n.v", nil, NoRetry())
	if err != nil || codeOf(r.Error) != aggregate.CodeUnavailable {
		t.Fatalf("unavailable without retry: %+v %v", r, err)
	}
}

func TestClient_RefusalsAreAnswers(t *testing.T) {
	t.Parallel()
	rules := &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) { done(refusedReply(r, aggregate.CodeRoundOpen)) }}
	d := openDoor(t, rules)
	c := newTestClient(t, d.nc)
	r, err := c.Do(t.Context(), "S", "n.v", nil)
	if err != nil || codeOf(r.Error) != aggregate.CodeRoundOpen || len(rules.requests()) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	r, err = c.Do(t.Context(), "S", "n.v", map[string]string{"x": strings.Repeat("x", 1<<20)})
	if err != nil || codeOf(r.Error) != aggregate.CodePayloadTooLarge {
		t.Fatalf("too large: %v %v", codeOf(r.Error), err)
	}
}

func TestClient_RefusesWhatCannotBeASubject(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, nil)
	nc := ns.Connect(t)
	for _, actor := range []string{"", "a.b", "_engine", "*"} {
		if _, err := NewClient(nc, Subjects{}, actor); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("actor %q: %v", actor, err)
		}
	}
	if _, err := NewClient(ns.Connect(t, nats.CustomInboxPrefix("_INBOX_alice")), Subjects{}, "alice"); !errors.Is(err, ErrInvalidInbox) {
		t.Errorf("inbox: %v", err)
	}
	if _, err := NewClient(ns.Connect(t, nats.CustomInboxPrefix("_INBOX.alice")), Subjects{}, "alice"); err != nil {
		t.Errorf("inbox below: %v", err)
	}
	c := newTestClient(t, nc)
	for _, bad := range []string{"", "a.b", "a b", ">", "*"} {
		_, do := c.Do(t.Context(), bad, "n.v", nil)
		_, name := c.Do(t.Context(), "S", "n."+bad+".v", nil)
		_, later := c.Later(t.Context(), bad, "n.v", nil)
		_, read := c.Read(t.Context(), bad, aggregate.ReadQuery{})
		for what, err := range map[string]error{"do": do, "name": name, "later": later, "read": read, "delta": c.Delta(bad, "r", Delta{})} {
			if !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s %q: %v", what, bad, err)
			}
		}
	}
	if _, err := c.Do(t.Context(), "S", "n.v", func() {}); err == nil {
		t.Error("a function was marshalled")
	}
}

func TestClient_ForeignAnswerIsAnError(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, nil)
	nc := ns.Connect(t)
	if _, err := nc.Subscribe("agent.cmd.>", func(m *nats.Msg) { _ = m.Respond([]byte("hello")) }); err != nil {
		t.Fatal(err)
	}
	if _, err := newTestClient(t, nc).Do(t.Context(), "S", "n.v", nil); !errors.Is(err, errNoReply) {
		t.Fatalf("%v", err)
	}
}

func TestClient_Read(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	rules := &fakeRules{read: func(session string, q aggregate.ReadQuery, done func(aggregate.ReadReply)) {
		if calls.Add(1) == 1 {
			done(aggregate.ReadReply{Session: session, Error: &aggregate.Error{Code: aggregate.CodeUnavailable}})
			return
		}
		done(aggregate.ReadReply{OK: true, Session: session, Sequence: *q.AtSequence, State: jsontext.Value(`{"x":1}`)})
	}}
	d := openDoor(t, rules)
	at := uint64(4)
	r, err := newTestClient(t, d.nc).Read(t.Context(), "S", aggregate.ReadQuery{AtSequence: &at})
	if err != nil || !r.OK || r.Sequence != 4 || string(r.State) != `{"x":1}` || calls.Load() != 2 {
		t.Fatalf("%+v %v", r, err)
	}
}

func TestClient_Delta(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, nil)
	nc := ns.Connect(t)
	sub, err := nc.SubscribeSync(Subjects{}.SessionDeltas("S"))
	if err != nil {
		t.Fatal(err)
	}
	if err := newTestClient(t, nc).Delta("S", "R", Delta{Round: 2, Index: 5, Kind: "text", Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(testPatience)
	if err != nil || m.Subject != "agent.delta.S.R" || string(m.Data) != `{"round":2,"index":5,"kind":"text","text":"hi"}` {
		t.Fatalf("%v %v", m, err)
	}
	if err := newTestClient(t, nc).Delta("S", "R", Delta{Round: 2, Index: 6, Kind: "text", Text: "ho", Attempt: 2}); err != nil {
		t.Fatal(err)
	}
	m, err = sub.NextMsg(testPatience)
	if err != nil || string(m.Data) != `{"round":2,"index":6,"kind":"text","text":"ho","attempt":2}` {
		t.Fatalf("%v %v", m, err)
	}
}
