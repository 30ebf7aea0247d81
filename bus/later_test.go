package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
	"culm/internal/natstest"
)

// workQueue is a server with the queue's stream, and a client's connection.
type workQueue struct {
	ns *natstest.Server
	nc *nats.Conn
	js jetstream.JetStream
}

func openQueue(t *testing.T) *workQueue {
	t.Helper()
	q := &workQueue{ns: natstest.Start(t, nil)}
	q.nc = q.ns.Connect(t)
	var err error
	if q.js, err = jetstream.New(q.nc, jetstream.WithDefaultTimeout(testPatience)); err != nil {
		t.Fatal(err)
	}
	if err := EnsureLaterStream(t.Context(), q.js, Subjects{}, 1); err != nil {
		t.Fatal(err)
	}
	return q
}

// engine starts a Later over the rules, with a connection of its own.
func (q *workQueue) engine(t *testing.T, rules *fakeRules, change ...func(*LaterOptions)) *Later {
	t.Helper()
	o := LaterOptions{Conn: q.ns.Connect(t), Handler: rules, Takeover: 2 * time.Second, RedeliverAfter: 500 * time.Millisecond, Workers: 8}
	for _, c := range change {
		c(&o)
	}
	l, err := StartLater(inTime(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.Stop(ctx)
	})
	return l
}

// put stores one command, as any NATS client may.
func (q *workQueue) put(t *testing.T, rest string, h nats.Header, data []byte) {
	t.Helper()
	if _, err := q.js.PublishMsg(t.Context(), &nats.Msg{Subject: "agent.later." + rest, Header: h, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// stopEmpty stops the engine and checks that nothing is left in the queue.
func (q *workQueue) stopEmpty(t *testing.T, l *Later) {
	t.Helper()
	if err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := q.left(t); n != 0 {
		t.Errorf("%d messages left", n)
	}
}

func (q *workQueue) left(t *testing.T) uint64 {
	t.Helper()
	s, err := q.js.Stream(t.Context(), LaterStream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func (q *workQueue) refusals(t *testing.T) *nats.Subscription {
	t.Helper()
	sub, err := q.nc.SubscribeSync(Subjects{}.join(kindRefused, ">"))
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func TestLater_HandlesInOrderWhatCameWhileNoEngineRan(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	c := newTestClient(t, q.nc)
	const sessions, each = 5, 40
	ids := map[string][]string{}
	for n := range each {
		for s := range sessions {
			session := fmt.Sprintf("S%d", s)
			id, err := c.Later(t.Context(), session, "n.v", map[string]int{"n": n})
			if err != nil {
				t.Fatal(err)
			}
			ids[session] = append(ids[session], id)
		}
	}
	rules := &fakeRules{came: make(chan aggregate.Request, sessions*each)}
	l := q.engine(t, rules)
	got := map[string]int{}
	for range sessions * each {
		r := awaitValue(t, rules.came)
		n := got[r.Session]
		if string(r.Body) != string(bodyOf(n)) || r.ID != ids[r.Session][n] || r.Actor != "alice" {
			t.Fatalf("%s: command %d is %+v", r.Session, n, r)
		}
		got[r.Session]++
		checkHandedOver(t, r)
	}
	q.put(t, "alice.S0.n.v", nil, bodyOf(0)) // and what comes while one runs
	if r := awaitValue(t, rules.came); !strings.HasPrefix(r.ID, "later-") {
		t.Errorf("minted id %q", r.ID)
	}
	q.stopEmpty(t, l)
}

func TestLater_RefusalsAreToldAndRemoved(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	sub := q.refusals(t)
	rules := &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) {
		out := refusedReply(r, aggregate.CodeRoundOpen)
		out.Sequence = 12
		done(out)
	}}
	l := q.engine(t, rules)
	check := func(name, rest, code string) {
		m, err := sub.NextMsg(testPatience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var r aggregate.Reply
		if err := json.Unmarshal(m.Data, &r); err != nil {
			t.Fatal(err)
		}
		if r.OK || codeOf(r.Error) != code || m.Subject != "agent.refused."+strings.ToValidUTF8(rest, "\ufffd") || m.Header.Get(micro.ErrorCodeHeader) != code {
			t.Errorf("%s: %s %s %v", name, m.Subject, m.Data, m.Header)
		}
	}
	q.put(t, "alice.S.n.v", nats.Header{HeaderLaterID: {"c-1"}}, bodyOf(1))
	check("by the rules", "alice.S.n.v", aggregate.CodeRoundOpen)
	if len(rules.requests()) != 1 {
		t.Fatalf("%+v", rules.requests())
	}
	for _, c := range badCommands() {
		q.put(t, c.subject, c.header, []byte(c.body))
		check(c.name, c.subject, c.code)
	}
	q.put(t, "alice.S.n.v", nats.Header{HeaderCommandID: {"c-2"}}, bodyOf(1))
	check("id of the wrong kind", "alice.S.n.v", aggregate.CodeInvalidCommand)
	if len(rules.requests()) != 1 {
		t.Fatalf("handed over: %+v", rules.requests())
	}
	q.stopEmpty(t, l)
}

func TestLater_UnavailableIsHandledAgainAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	sub := q.refusals(t)
	rules := &fakeRules{came: make(chan aggregate.Request, 100)}
	failures := make(chan struct{}, 3)
	rules.handle = func(r aggregate.Request, done func(aggregate.Reply)) {
		if r.Session == "A" && string(r.Body) == string(bodyOf(0)) {
			select {
			case failures <- struct{}{}:
				done(refusedReply(r, aggregate.CodeUnavailable))
				return
			default:
			}
		}
		done(acceptedReply(r, 1))
	}
	for n := range 3 {
		q.put(t, "alice.A.n.v", nil, bodyOf(n))
		q.put(t, "alice.B.n.v", nil, bodyOf(n))
	}
	l := q.engine(t, rules)
	var a, b []string
	ids := map[string]bool{}
	for range 9 {
		r := awaitValue(t, rules.came)
		if r.Session == "B" {
			b = append(b, string(r.Body))
			continue
		}
		a = append(a, string(r.Body))
		ids[r.ID] = true
	}
	if got := strings.Join(a, ""); got != `{"n":0}{"n":0}{"n":0}{"n":0}{"n":1}{"n":2}` || len(ids) != 3 {
		t.Errorf("A: %s, ids %v", got, ids)
	}
	if got := strings.Join(b, ""); got != `{"n":0}{"n":1}{"n":2}` {
		t.Errorf("B: %s", got)
	}
	q.stopEmpty(t, l)
	if n, _, err := sub.Pending(); err != nil || n != 0 {
		t.Errorf("%d refusals, %v", n, err)
	}
}

func TestLater_StuckSessionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	rules := &fakeRules{came: make(chan aggregate.Request, 2000)}
	rules.handle = func(r aggregate.Request, done func(aggregate.Reply)) {
		if r.Session != "A" {
			done(acceptedReply(r, 1))
		}
	}
	for range 1100 { // more than a consumer's usual allowance of messages that nobody acknowledged
		if err := q.nc.Publish("agent.later.alice.A.n.v", bodyOf(0)); err != nil {
			t.Fatal(err)
		}
	}
	q.put(t, "alice.B.n.v", nil, bodyOf(1))
	l := q.engine(t, rules)
	seen := map[string]int{}
	for range 2 {
		seen[awaitValue(t, rules.came).Session]++
	}
	if seen["A"] != 1 || seen["B"] != 1 {
		t.Fatalf("handed over: %v", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop: %v", err)
	}
	if n := q.left(t); n < 1100 { // B's may not have been removed yet
		t.Errorf("%d left, want 1100", n)
	}
}

func TestLater_RefusesTheQueueOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	other, err := NewSubjects("other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := StartLater(t.Context(), LaterOptions{Conn: q.nc, Subjects: other, Handler: &fakeRules{}}); !errors.Is(err, ErrForeignStream) {
		t.Fatalf("%v", err)
	}
}

func TestLater_MalformedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	l := &Later{}
	r := l.judge(&queued{Subject: "agent.later.alice.S.n.v", Seq: 1, Header: []byte("NATS/1.0\r\nno colon\r\n\r\n"), Data: []byte("{}")})
	if codeOf(r.Error) != aggregate.CodeInvalidCommand || r.Session != "S" {
		t.Fatalf("%+v", r)
	}
}

// noRemoval is a connection on which the first removal of a message is refused.
type noRemoval struct {
	requester
	left int
}

func (r *noRemoval) RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.DELETE.") && r.left > 0 {
		r.left--
		return &nats.Msg{Data: []byte(`{"error":{"code":400,"err_code":10057,"description":"not now"}}`)}, nil
	}
	return r.requester.RequestMsgWithContext(ctx, m)
}

// TestLater_WhatWasRefusedIsNotJudgedAgain: where the removal fails after the
// refusal was told, only the removal is tried again.
func TestLater_WhatWasRefusedIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	q := openQueue(t)
	sub := q.refusals(t)
	rules := &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) { done(refusedReply(r, aggregate.CodeRoundOpen)) }}
	l := &Later{
		o: LaterOptions{Conn: q.nc, Handler: rules}, log: slog.New(slog.DiscardHandler), ctx: t.Context(),
		api: jsAPI{req: &noRemoval{q.nc, 1}, wait: testPatience}, queue: newLaterQueue(),
	}
	q.put(t, "alice.S.n.v", nil, bodyOf(1))
	q.put(t, "alice.S.n.v", nil, bodyOf(2))
	l.queue.wake("S")
	l.queue.next()
	if v := l.turn("S"); v != laterAgain {
		t.Errorf("first turn: %v", v)
	}
	if v := l.turn("S"); v != laterIdle {
		t.Errorf("second turn: %v", v)
	}
	if got := rules.requests(); len(got) != 2 || string(got[0].Body) == string(got[1].Body) {
		t.Errorf("judged: %+v", got)
	}
	for range 2 {
		if _, err := sub.NextMsg(testPatience); err != nil {
			t.Error(err)
		}
	}
	if n, _, err := sub.Pending(); err != nil || n != 0 || q.left(t) != 0 {
		t.Errorf("%d more refusals (%v), %d messages left", n, err, q.left(t))
	}
}
