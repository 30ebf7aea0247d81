package bus

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
	"culm/internal/natstest"
)

// frontDoor is a service over fake rules, and a client's connection.
type frontDoor struct {
	rules *fakeRules
	svc   *Service
	nc    *nats.Conn
}

func openDoor(t *testing.T, rules *fakeRules, change ...func(*ServiceOptions)) *frontDoor {
	t.Helper()
	ns := natstest.Start(t, nil)
	o := ServiceOptions{Conn: ns.Connect(t), Handler: rules, Version: "1.2.3"}
	for _, c := range change {
		c(&o)
	}
	svc, err := StartService(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = svc.Stop(ctx)
	})
	return &frontDoor{rules: rules, svc: svc, nc: ns.Connect(t)}
}

func (d *frontDoor) request(t *testing.T, subject string, h nats.Header, data string) (aggregate.Reply, *nats.Msg) {
	t.Helper()
	m, err := d.nc.RequestMsg(&nats.Msg{Subject: subject, Header: h, Data: []byte(data)}, testPatience)
	if err != nil {
		t.Fatalf("%.80q: %v", subject, err)
	}
	var r aggregate.Reply
	if err := json.Unmarshal(m.Data, &r); err != nil {
		t.Fatalf("%.80q: %v: %q", subject, err, m.Data)
	}
	return r, m
}

func TestService_AnswersWithTheReplyOfTheRules(t *testing.T) {
	t.Parallel()
	d := openDoor(t, &fakeRules{})
	h := nats.Header{HeaderCommandID: {"c-1"}, HeaderExpected: {"4"}, HeaderTraceparent: {goodTrace}}
	got, m := d.request(t, "agent.cmd.alice.S.message.submit", h, `{"content":"x"}`)
	if m.Header != nil {
		t.Errorf("headers on an accepted command: %v", m.Header)
	}
	want := aggregate.Reply{OK: true, Session: "S", Command: "c-1", Sequence: 1, Event: &aggregate.EventRef{Sequence: 1, Type: "message.submit"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	r := d.rules.requests()[0]
	if r.Actor != "alice" || r.Session != "S" || r.Name != "message.submit" || r.ID != "c-1" || *r.Expected != 4 || r.Traceparent != goodTrace {
		t.Errorf("handed over: %+v", r)
	}
}

func TestService_BadInputIsRefusedAndNothingHandedOver(t *testing.T) {
	t.Parallel()
	d := openDoor(t, &fakeRules{})
	check := func(name, code, subject string, h nats.Header, data string) {
		got, m := d.request(t, subject, h, data)
		if got.OK || codeOf(got.Error) != code || got.Event != nil || got.Error.Message == "" {
			t.Errorf("%s: %s, want %s", name, m.Data, code)
		}
		if m.Header.Get(micro.ErrorCodeHeader) != code || m.Header.Get(micro.ErrorHeader) == "" {
			t.Errorf("%s: headers %v", name, m.Header)
		}
	}
	for _, c := range badCommands() {
		check(c.name, c.code, "agent.cmd."+c.subject, c.header, c.body)
	}
	for name, values := range badIDs() {
		if name == "empty id" || name == "tab in id" {
			continue // the client library does not send these as they are
		}
		check(name, aggregate.CodeInvalidCommand, "agent.cmd.a.s.n.v", nats.Header{HeaderCommandID: values}, `{}`)
	}
	check("read of two sessions", aggregate.CodeInvalidToken, "agent.read.a.b", nil, ``)
	check("read of a reserved session", aggregate.CodeInvalidToken, "agent.read._x", nil, ``)
	check("read no JSON", aggregate.CodeInvalidJSON, "agent.read.s", nil, `x`)
	check("read unknown field", aggregate.CodeInvalidCommand, "agent.read.s", nil, `{"x":1}`)
	if got := d.rules.requests(); len(got) != 0 {
		t.Fatalf("handed over: %+v", got)
	}
	if s := d.svc.Stats(); s.Refused == 0 || s.InFlight != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestService_ForeignReplySubjectNeverGetsAByte(t *testing.T) {
	t.Parallel()
	d := openDoor(t, &fakeRules{})
	all, err := d.nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	replies := []string{"agent.log.victim.run.started", "agent.event.victim.run.started", "foo", "_INBOXx.a", "_inbox.a", "_R_x.a", "x._INBOX.a", "_INBOX", "_R_", "_INBOX.a.>", "_INBOX.*", "$SRV.PING", ""}
	sent := 0
	for _, reply := range replies {
		for _, subject := range []string{"agent.cmd.a.s.n.v", "agent.cmd.a$.s.n.v", "agent.read.s", "agent.read.a.b"} {
			if err := d.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
	}
	// The same endpoints answer these after everything above.
	d.request(t, "agent.cmd.a.s.last.cmd", nil, "{}")
	d.request(t, "agent.read.last", nil, "")
	for range sent + 4 {
		m, err := all.NextMsg(testPatience)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(m.Subject, "agent.cmd.") && !strings.HasPrefix(m.Subject, "agent.read.") && !strings.Contains(string(m.Data), `"last`) && !strings.Contains(string(m.Data), `"ok":true`) {
			t.Fatalf("%s got %q", m.Subject, m.Data)
		}
		for _, reply := range replies {
			if m.Subject == reply {
				t.Fatalf("%s got %q", m.Subject, m.Data)
			}
		}
	}
	if got := d.rules.requests(); len(got) != 1 || got[0].Name != "last.cmd" {
		t.Fatalf("handed over: %+v", got)
	}
	if s := d.svc.Stats(); s.Ignored != uint64(sent) {
		t.Errorf("stats %+v, want %d ignored", s, sent)
	}
}

func TestService_SlowSessionDelaysNoOther(t *testing.T) {
	t.Parallel()
	var held []func(aggregate.Reply)
	rules := &fakeRules{came: make(chan aggregate.Request, 10)}
	rules.handle = func(r aggregate.Request, done func(aggregate.Reply)) {
		if r.Session == "A" {
			held = append(held, done)
			return
		}
		done(acceptedReply(r, 1))
	}
	d := openDoor(t, rules)
	slow := make(chan *nats.Msg, 1)
	go func() {
		m, _ := d.nc.Request("agent.cmd.a.A.n.v", []byte("{}"), testPatience)
		slow <- m
	}()
	awaitValue(t, rules.came)
	for range 5 {
		if r, _ := d.request(t, "agent.cmd.a.B.n.v", nil, "{}"); !r.OK {
			t.Fatalf("B: %+v", r)
		}
	}
	held[0](acceptedReply(aggregate.Request{Session: "A", Name: "n.v"}, 9))
	if m := awaitValue(t, slow); m == nil || !strings.Contains(string(m.Data), `"sequence":9`) {
		t.Fatalf("A: %v", m)
	}
}

func TestService_OverTheBoundIsUnavailable(t *testing.T) {
	t.Parallel()
	held := make(chan func(aggregate.Reply), 10)
	rules := &fakeRules{handle: func(_ aggregate.Request, done func(aggregate.Reply)) { held <- done }}
	d := openDoor(t, rules, func(o *ServiceOptions) { o.MaxInFlight = 2 })
	inbox, err := d.nc.SubscribeSync(d.nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.nc.PublishRequest("agent.cmd.a.s.n.v", inbox.Subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	first := awaitValue(t, held)
	awaitValue(t, held)
	r, _ := d.request(t, "agent.cmd.a.s.n.v", nats.Header{HeaderCommandID: {"c"}}, "{}")
	if codeOf(r.Error) != aggregate.CodeUnavailable || r.Command != "c" || r.Session != "s" {
		t.Fatalf("third request: %+v", r)
	}
	first(aggregate.Reply{OK: true})
	if _, err := inbox.NextMsg(testPatience); err != nil {
		t.Fatal(err)
	}
	go func() { done := <-held; done(aggregate.Reply{OK: true}) }()
	if r, _ := d.request(t, "agent.cmd.a.s.n.v", nil, "{}"); !r.OK {
		t.Fatalf("after one was answered: %+v", r)
	}
}

func TestService_StopAnswersWhatIsInFlight(t *testing.T) {
	t.Parallel()
	held := make(chan func(aggregate.Reply), 100)
	rules := &fakeRules{handle: func(_ aggregate.Request, done func(aggregate.Reply)) { held <- done }}
	d := openDoor(t, rules)
	inbox, err := d.nc.SubscribeSync(d.nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := d.nc.PublishRequest("agent.cmd.a.s.n.v", inbox.Subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.nc.Flush(); err != nil { // the server has them all
		t.Fatal(err)
	}
	first := awaitValue(t, held)
	stopped := make(chan error, 1)
	go func() { stopped <- d.svc.Stop(t.Context()) }()
	for range 49 {
		awaitValue(t, held)(aggregate.Reply{OK: true})
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request in flight: %v", err)
	default:
	}
	first(aggregate.Reply{OK: true})
	if err := awaitValue(t, stopped); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := inbox.NextMsg(testPatience); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	if _, err := d.nc.Request("agent.cmd.a.s.n.v", []byte("{}"), testPatience); !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("after stop: %v", err)
	}
	if err := d.svc.Stop(t.Context()); err != nil {
		t.Fatalf("second stop: %v", err)
	}
}

func TestService_StopIsBounded(t *testing.T) {
	t.Parallel()
	rules := &fakeRules{came: make(chan aggregate.Request, 1), handle: func(aggregate.Request, func(aggregate.Reply)) {}}
	d := openDoor(t, rules)
	if err := d.nc.PublishRequest("agent.cmd.a.s.n.v", d.nc.NewInbox(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	awaitValue(t, rules.came)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.svc.Stop(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 requests unanswered") {
		t.Fatalf("stop: %v", err)
	}
	if d.svc.ctx.Err() == nil {
		t.Error("the request's context goes on")
	}
}

func TestService_IsDiscoverable(t *testing.T) {
	t.Parallel()
	d := openDoor(t, &fakeRules{})
	m, err := d.nc.Request("$SRV.INFO.culm-engine", nil, testPatience)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil {
		t.Fatal(err)
	}
	if info.Name != ServiceName || info.Version != "1.2.3" || len(info.Endpoints) != 2 || info.Endpoints[0].Subject != "agent.cmd.>" || info.Endpoints[1].Subject != "agent.read.>" {
		t.Fatalf("%+v", info)
	}
	if m, err = d.nc.Request("$SRV.STATS.culm-engine", nil, testPatience); err != nil || !strings.Contains(string(m.Data), `"in_flight":0`) {
		t.Fatalf("%v %v", m, err)
	}
}

// TestService_RefusalForWantOfRoomNamesTheCommand: it says to send the same id
// again, so there is one.
func TestService_RefusalForWantOfRoomNamesTheCommand(t *testing.T) {
	t.Parallel()
	s := &Service{}
	s.flight.init(1, 1, 1)
	s.flight.take(1)
	if r, e := s.admit(aggregate.Request{}, nil, 1); codeOf(e) != aggregate.CodeUnavailable || r.ID == "" {
		t.Errorf("%+v %+v", r, e)
	}
	if r, _ := s.admit(aggregate.Request{ID: "mine"}, nil, 1); r.ID != "mine" {
		t.Errorf("%+v", r)
	}
}
