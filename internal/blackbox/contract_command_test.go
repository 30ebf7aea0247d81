package blackbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// TestCommand_ReplyShape: members that the contract names are there, spelled so.
func TestCommand_ReplyShape(t *testing.T) {
	c := common(t)
	s := c.create("")
	ok := c.must(s, "message.submit", obj{"content": "a"})
	if ok.Session != s || ok.Sequence != 2 || ok.Event.Sequence != 2 || ok.Result == nil || ok.header.Get("Nats-Service-Error-Code") != "" {
		t.Errorf("accepted: %s %v", ok.raw, ok.header)
	}
	if !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(ok.Command) {
		t.Errorf("a minted id is a ULID: %s", ok.raw)
	}
	if e := c.last(s, "message.submitted"); e.Command != ok.Command || e.Actor != "tester" || e.Seq != ok.Sequence {
		t.Errorf("event of the command: %s", e.payload)
	}
	c.must(s, "run.resume", nil)
	none := c.do(s, "run.resume", nil)
	if !none.OK || !strings.Contains(none.raw, `"event":null`) || none.Result["outcome"] != "already_running" {
		t.Errorf("nothing to append: %s", none.raw)
	}
	no := c.refused("no_loop", s, "loop.stop", nil)
	if no.header.Get("Nats-Service-Error-Code") != "no_loop" || no.header.Get("Nats-Service-Error") == "" || no.Error.Message == "" || no.Sequence != 3 {
		t.Errorf("refused: %s %v", no.raw, no.header)
	}
}

// TestCommand_IsFoundAsMicroService: ping, info and stats name the service and
// its endpoints.
func TestCommand_IsFoundAsMicroService(t *testing.T) {
	c := common(t)
	c.create("")
	var info micro.Info
	answer, err := c.nc.Request("$SRV.INFO.culm-engine", nil, patience)
	must(t, err)
	must(t, json.Unmarshal(answer.Data, &info))
	var subjects []string
	for _, e := range info.Endpoints {
		subjects = append(subjects, e.Subject)
	}
	if info.Name != "culm-engine" || !slices.ContainsFunc(subjects, func(s string) bool { return strings.HasPrefix(s, "agent.cmd.") }) ||
		!slices.ContainsFunc(subjects, func(s string) bool { return strings.HasPrefix(s, "agent.read.") }) {
		t.Errorf("info: %s", answer.Data)
	}
	for _, verb := range []string{"PING", "STATS"} {
		if _, err := c.nc.Request("$SRV."+verb+".culm-engine", nil, patience); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// TestCommand_TraceContextIsCarried: into the event, if it is well formed.
func TestCommand_TraceContextIsCarried(t *testing.T) {
	c := common(t)
	s := c.create("")
	good := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c.must(s, "message.submit", obj{"content": "a"}, header("traceparent", good))
	if e := c.last(s, "message.submitted"); e.Traceparent != good {
		t.Errorf("traceparent: %s", e.payload)
	}
	for _, bad := range []string{"", "x", strings.ToUpper(good), strings.Replace(good, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1), good + "x"} {
		c.must(s, "message.submit", obj{"content": "a"}, header("traceparent", bad))
		if e := c.last(s, "message.submitted"); e.Traceparent != "" {
			t.Errorf("%q was carried: %s", bad, e.payload)
		}
	}
}

// TestCommand_HeadersAreChecked: ids and sequences that are none are refused.
func TestCommand_HeadersAreChecked(t *testing.T) {
	c := common(t)
	s := c.create("")
	for _, bad := range []string{"", strings.Repeat("x", 129), "é", "a\tb", "\x7f"} {
		c.refused("invalid_command", s, "message.submit", obj{"content": "a"}, id(bad))
	}
	c.refused("invalid_command", s, "message.submit", obj{"content": "a"}, func(m *nats.Msg) { m.Header["Nats-Msg-Id"] = []string{"a", "b"} })
	for _, bad := range []string{"", "x", "-1", "+1", "1.0", "1e0", "18446744073709551616"} {
		c.refused("invalid_command", s, "message.submit", obj{"content": "a"}, header("Culm-Expected-Sequence", bad))
	}
	c.must(s, "message.submit", obj{"content": "a"}, id(strings.Repeat("~", 128)), expect(1))
}

// TestCommand_BodiesAreStrict: nothing but one well-formed object with known
// fields of the right kinds; nothing of the rest is stored.
func TestCommand_BodiesAreStrict(t *testing.T) {
	c := common(t)
	s := c.create("")
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for body, want := range map[string]string{
		"": "invalid_json", "null": "invalid_json", "[]": "invalid_json", `"a"`: "invalid_json", "{": "invalid_json",
		`{"content":"a"} x`: "invalid_json", `{"content":"a"}{}`: "invalid_json", "{\"content\":\"\xc3\"}": "invalid_json",
		`{"content":"a","content":"a"}`: "invalid_json", `{"content":"\ud800"}`: "invalid_json", `{"content":"\udc00\ud800"}`: "invalid_json",
		`{"content":"a","x":` + deep + `}`: "invalid_json", `{"content":'a'}`: "invalid_json", `{"content":"a",}`: "invalid_json",
		"\ufeff{\"content\":\"a\"}": "invalid_json", "{\"content\":\"a\nb\"}": "invalid_json",
		`{}`: "invalid_command", `{"content":null}`: "invalid_command", `{"content":""}`: "invalid_command", `{"content":1}`: "invalid_command",
		`{"content":["a"]}`: "invalid_command", `{"Content":"a"}`: "invalid_command", `{"content":"a","role":"system"}`: "invalid_command",
	} {
		if r := c.do(s, "message.submit", body); r.code() != want {
			t.Errorf("%.60q: want %s, got %s", body, want, r.raw)
		}
	}
	for _, body := range []string{`{"max":1}`, `{"prompt":1}`, `{"loop":{}}`, `{"prompt":"p","loop":{"max_iterations":1.5,"max_total_rounds":5}}`, `{"prompt":"p","loop":{"max_iterations":-1,"max_total_rounds":5}}`,
		`{"prompt":"p","budget":{"max_rounds":"5"}}`, `{"prompt":"p","loop":{"max_iterations":1,"max_total_rounds":5,"on_park":"maybe"}}`} {
		if r := c.do(s, "run.request", body); r.OK {
			t.Errorf("%s: %s", body, r.raw)
		}
	}
	if n := c.sequence(s); n != 1 {
		t.Errorf("bad input moved the session to %d", n)
	}
	c.must(s, "message.submit", " \t\r\n{ \"content\" : \"\\u0000\\ud83d\\ude00 é\u2028\" }\n")
	if got := objects(c.read(s).State["messages"])[0]["content"]; got != "\x00😀 é\u2028" {
		t.Errorf("content came back as %q", got)
	}
}

// TestCommand_HostileTokens: sessions and actors that are no tokens, or
// reserved, are refused, and no stream is made for them.
func TestCommand_HostileTokens(t *testing.T) {
	c := common(t)
	for _, bad := range []string{"*", ">", "_settings", "_x", "ä", "a$b", "a/b", "a\\b", "%00", "a\x00b", "a\u202eb", strings.Repeat("x", 65), strings.Repeat("x", 300), "a:b", "a=b"} {
		for _, subject := range []string{"agent.cmd.tester." + bad + ".session.create", "agent.cmd." + bad + ".ok.session.create", "agent.cmd.tester." + bad + ".message.submit"} {
			r, err := c.try(&nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(`{}`)}, patience)
			if err != nil || r.code() != "invalid_token" {
				t.Errorf("%q: %v %s", subject, err, r.raw)
			}
		}
	}
	for _, subject := range []string{"agent.cmd.tester.s.x", "agent.cmd.tester.s.a.b.c", "agent.cmd.tester.s", "agent.cmd.tester.s.message.shout", "agent.cmd.tester.s.*.submit"} {
		r, err := c.try(&nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(`{}`)}, patience)
		if err != nil || r.OK || r.code() == "" {
			t.Errorf("%q: %v %s", subject, err, r.raw)
		}
	}
	names := c.js.StreamNames(t.Context())
	for name := range names.Name() {
		if !regexp.MustCompile(`^[A-Z]+_[A-Za-z0-9_-]+$|^COMMANDS$`).MatchString(name) || strings.HasSuffix(name, "SESSION_ok") {
			t.Errorf("stream %q was made", name)
		}
	}
	must(t, names.Err())
	long := strings.Repeat("Z", 60) + "_-09"
	c.must(long, "session.create", nil, as(strings.Repeat("a", 64)))
}

// TestCommand_ForeignReplySubjectsGetNothing: an answer goes to an inbox or
// nowhere, and such a command is not carried out.
func TestCommand_ForeignReplySubjectsGetNothing(t *testing.T) {
	c := common(t)
	s := c.create("")
	heard := c.listen("agent.log.>")
	foreign := c.listen("foreign.>")
	publish := func(reply string) {
		m := message(s, "message.submit", obj{"content": "to " + reply})
		m.Reply = reply
		must(t, c.nc.PublishMsg(m))
	}
	for _, reply := range []string{"", "foreign.x", "agent.log." + s + ".message.submitted", "agent.cmd.tester." + s + ".session.close",
		"$KV.x.y", "_INBOX", "_INBOXx.y", "_R_x", "agent.later.tester." + s + ".session.close"} {
		publish(reply)
		m := readMessage(s, nil)
		m.Reply = reply
		must(t, c.nc.PublishMsg(m))
	}
	// One goroutine owns a session: what it would have answered has been by now.
	if n := c.must(s, "message.submit", obj{"content": "seen"}).Sequence; n != 2 {
		t.Errorf("%d commands with a foreign reply subject were carried out: %s", n-2, c.types(s))
	}
	must(t, c.nc.FlushTimeout(patience))
	for _, m := range drain(foreign, heard) {
		// What the test itself published there is echoed to it; an answer begins so.
		if strings.HasPrefix(string(m.Data), `{"ok"`) {
			t.Errorf("%s got %s", m.Subject, m.Data)
		}
	}
	inbox := c.listen("_INBOX.mine")
	publish("_INBOX.mine")
	if m := next(t, inbox); !strings.Contains(string(m.Data), `"ok":true`) {
		t.Errorf("_INBOX.mine got %s", m.Data)
	}
}

func drain(channels ...<-chan *nats.Msg) []*nats.Msg {
	var out []*nats.Msg
	for _, got := range channels {
		for len(got) > 0 {
			out = append(out, <-got)
		}
	}
	return out
}

// TestCommand_ClientsDoNotDisturbEachOther: 64 connections, each in a session of
// its own, get their own answers only.
func TestCommand_ClientsDoNotDisturbEachOther(t *testing.T) {
	c := common(t)
	failed := make(chan error, 64)
	for i := range 64 {
		go func() { failed <- ownSession(c, sessionName(t, fmt.Sprint("-", i))) }()
	}
	for range 64 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func ownSession(c *client, s string) error {
	for n, m := range []*nats.Msg{message(s, "session.create", nil), message(s, "message.submit", obj{"content": s}), message(s, "run.resume", nil), message(s, "run.cancel", nil)} {
		r, err := c.repeat(m)
		if err != nil {
			return err
		}
		if !r.OK || r.Session != s || r.Sequence != uint64(n+1) {
			return fmt.Errorf("%s: %s", m.Subject, r.raw)
		}
	}
	r, err := c.repeat(readMessage(s, obj{"transcript": true}))
	if err != nil || r.Sequence != 4 || objects(r.State["messages"])[0]["content"] != s {
		return fmt.Errorf("read of %s: %v %s", s, err, r.raw)
	}
	return nil
}
