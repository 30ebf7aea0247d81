package bus

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
	"culm/internal/natstest"
)

func TestService_RepliesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	rules := &fakeRules{
		handle: func(r aggregate.Request, done func(aggregate.Reply)) {
			out := acceptedReply(r, 5)
			if out.Result = jsontext.Value(`"` + long + `"`); r.Name == "a.refused" {
				out = refusedReply(r, "round_open")
				out.Error.Message, out.Error.Details = "line\r\nNats-Evil: x \xff", map[string]any{"x": long}
			}
			done(out)
		},
		read: func(session string, _ aggregate.ReadQuery, done func(aggregate.ReadReply)) {
			done(aggregate.ReadReply{OK: true, Session: session, Sequence: 3, State: jsontext.Value(`"` + long + `"`)})
		},
	}
	d := openDoor(t, rules)
	r, m := d.request(t, "agent.cmd.a.s.a.accepted", nil, "{}")
	if !r.OK || r.Sequence != 5 || r.Event == nil || string(r.Result) != `{"omitted":"payload_too_large"}` {
		t.Errorf("accepted: %.200s", m.Data)
	}
	r, m = d.request(t, "agent.cmd.a.s.a.refused", nil, "{}")
	if r.OK || codeOf(r.Error) != "round_open" || !strings.HasPrefix(r.Error.Message, "line\r\n") {
		t.Errorf("refused: %.200s", m.Data)
	}
	if got := m.Header.Get(micro.ErrorHeader); got != "line  Nats-Evil: x ?" || m.Header.Get("Nats-Evil") != "" {
		t.Errorf("headers: %v", m.Header)
	}
	r, m = d.request(t, "agent.read.s", nil, "")
	if r.OK || codeOf(r.Error) != aggregate.CodePayloadTooLarge || m.Header.Get(micro.ErrorCodeHeader) != aggregate.CodePayloadTooLarge {
		t.Errorf("read: %.200s", m.Data)
	}
}

func TestHeaderText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a": "a", " a\r\n b\x00\u0085c\u2028 ": "a   b  c", "\xff": "?", strings.Repeat("é", 300): strings.Repeat("é", 256)} {
		if got := headerText(in); got != want {
			t.Errorf("headerText(%.40q) = %.40q, want %.40q", in, got, want)
		}
	}
}

func BenchmarkService(b *testing.B) {
	ns := natstest.Start(b, nil)
	svc, err := StartService(ServiceOptions{Conn: ns.Connect(b), Handler: &fakeRules{}})
	if err != nil {
		b.Fatal(err)
	}
	nc := ns.Connect(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := nc.Request("agent.cmd.a.s.n.v", []byte(`{"content":"hello"}`), testPatience); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	_ = svc.Stop(context.Background())
}

// TestSpellReply: what is spelled by hand is what the library would spell.
func TestSpellReply(t *testing.T) {
	t.Parallel()
	event := &aggregate.EventRef{Sequence: math.MaxUint64, Type: "message.submitted"}
	for _, r := range []aggregate.Reply{
		{OK: true},
		{OK: true, Session: "s", Command: "c", Sequence: 7, Event: event, Result: jsontext.Value(`{"message_id":"m"}`)},
		{OK: true, Session: "s", Command: `a "quoted" \ <id> & ~`, Sequence: 1, Duplicate: true, Event: event, Result: jsontext.Value(`{}`)},
		{OK: true, Session: "s", Sequence: 3, Result: jsontext.Value(`{"text":"‚\u0000"}`)},
		{Session: "s", Sequence: 3, Error: &aggregate.Error{Code: "c", Message: "no", Details: map[string]any{"b": 1, "a": 2}}},
		{OK: true, Error: &aggregate.Error{Code: "c"}},
	} {
		want, err := json.Marshal(&r, replyOptions)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := spellReply(&r); err != nil || string(got) != string(want) {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
	if _, err := spellReply(&aggregate.Reply{OK: true, Session: "\xff"}); err == nil {
		t.Error("what is no text was spelled")
	}
}
