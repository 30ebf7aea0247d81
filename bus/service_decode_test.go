package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/events"
)

const goodTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// badCommand is a message that no engine may hand to the rules.
type badCommand struct {
	name    string
	subject string // below <p>.cmd or <p>.later
	header  nats.Header
	body    string
	code    string
}

func badCommands() []badCommand {
	const good = "a.s.message.submit"
	deep := strings.Repeat(`{"a":`, 64) + "{}" + strings.Repeat("}", 64)
	return []badCommand{
		{"actor with a space sign", "a$.s.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"long actor", strings.Repeat("a", 65) + ".s.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"reserved actor", "_engine.s.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"long session", "a." + strings.Repeat("s", 65) + ".n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"session not ASCII", "a.sé.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"session not UTF-8", "a.s\xff.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"reserved session", "a._x.n.v", nil, `{}`, aggregate.CodeInvalidToken},
		{"settings without policy", "a._settings.message.submit", nil, `{}`, aggregate.CodeInvalidToken},
		{"no session", "a", nil, `{}`, aggregate.CodeInvalidToken},
		{"no name", "a.s", nil, `{}`, aggregate.CodeUnknownCommand},
		{"no verb", "a.s.n", nil, `{}`, aggregate.CodeUnknownCommand},
		{"a token too many", "a.s.n.v.w", nil, `{}`, aggregate.CodeUnknownCommand},
		{"verb no token", "a.s.n.v!", nil, `{}`, aggregate.CodeUnknownCommand},
		{"empty expected", good, nats.Header{HeaderExpected: {""}}, `{}`, aggregate.CodeInvalidCommand},
		{"signed expected", good, nats.Header{HeaderExpected: {"+1"}}, `{}`, aggregate.CodeInvalidCommand},
		{"negative expected", good, nats.Header{HeaderExpected: {"-1"}}, `{}`, aggregate.CodeInvalidCommand},
		{"hexadecimal expected", good, nats.Header{HeaderExpected: {"0x1"}}, `{}`, aggregate.CodeInvalidCommand},
		{"expected over 64 bits", good, nats.Header{HeaderExpected: {"18446744073709551616"}}, `{}`, aggregate.CodeInvalidCommand},
		{"two expected", good, nats.Header{HeaderExpected: {"1", "1"}}, `{}`, aggregate.CodeInvalidCommand},
		{"expected in lower case", good, nats.Header{"culm-expected-sequence": {"1"}}, `{}`, aggregate.CodeInvalidCommand},
		{"id in lower case", good, nats.Header{"nats-msg-id": {"x"}}, `{}`, aggregate.CodeInvalidCommand},
		{"id of the queue in capitals", good, nats.Header{"CULM-COMMAND-ID": {"x"}}, `{}`, aggregate.CodeInvalidCommand},
		{"empty body", good, nil, ``, aggregate.CodeInvalidJSON},
		{"blank body", good, nil, "  ", aggregate.CodeInvalidJSON},
		{"no JSON", good, nil, `nope`, aggregate.CodeInvalidJSON},
		{"array", good, nil, `[]`, aggregate.CodeInvalidJSON},
		{"null", good, nil, `null`, aggregate.CodeInvalidJSON},
		{"string", good, nil, `"{}"`, aggregate.CodeInvalidJSON},
		{"unfinished", good, nil, `{"a":1`, aggregate.CodeInvalidJSON},
		{"trailing comma", good, nil, `{"a":1,}`, aggregate.CodeInvalidJSON},
		{"second object", good, nil, `{"a":1} {}`, aggregate.CodeInvalidJSON},
		{"trailing zero byte", good, nil, "{}\x00", aggregate.CodeInvalidJSON},
		{"byte order mark", good, nil, "\xef\xbb\xbf{}", aggregate.CodeInvalidJSON},
		{"duplicate key", good, nil, `{"a":1,"a":2}`, aggregate.CodeInvalidJSON},
		{"duplicate key, escaped", good, nil, `{"a":1,"\u0061":2}`, aggregate.CodeInvalidJSON},
		{"duplicate key deeper", good, nil, `{"x":[{"a":1,"a":2}]}`, aggregate.CodeInvalidJSON},
		{"invalid UTF-8", good, nil, "{\"a\":\"\xff\"}", aggregate.CodeInvalidJSON},
		{"lone surrogate", good, nil, `{"a":"\ud800"}`, aggregate.CodeInvalidJSON},
		{"raw control character", good, nil, "{\"a\":\"\x01\"}", aggregate.CodeInvalidJSON},
		{"not a number", good, nil, `{"a":NaN}`, aggregate.CodeInvalidJSON},
		{"leading zero", good, nil, `{"a":01}`, aggregate.CodeInvalidJSON},
		{"65 levels", good, nil, deep, aggregate.CodeInvalidJSON},
		{"20000 levels", good, nil, `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, aggregate.CodeInvalidJSON},
	}
}

// badIDs are values of a command id header that are refused as invalid_command.
func badIDs() map[string][]string {
	return map[string][]string{
		"empty id": {""}, "long id": {strings.Repeat("x", 129)}, "tab in id": {"a\tb"}, "id not ASCII": {"é"}, "two ids": {"a", "b"}, "one id twice": {"a", "a"},
	}
}

func TestDecodeCommand_BadInputIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kindCmd, kindLater} {
		for _, c := range badCommands() {
			if _, e := (Subjects{}).decodeCommand(k, "agent."+string(k)+"."+c.subject, c.header, []byte(c.body)); e == nil || e.Code != c.code {
				t.Errorf("%s %s: got %v, want %s", k, c.name, e, c.code)
			}
		}
	}
	for name, values := range badIDs() {
		for k, header := range map[kind]string{kindCmd: HeaderCommandID, kindLater: HeaderLaterID} {
			_, e := (Subjects{}).decodeCommand(k, "agent."+string(k)+".a.s.n.v", nats.Header{header: values}, []byte(`{}`))
			if e == nil || e.Code != aggregate.CodeInvalidCommand {
				t.Errorf("%s %s: got %v", k, name, e)
			}
		}
	}
	for k, header := range map[kind]string{kindLater: HeaderCommandID, kindCmd: HeaderLaterID} {
		_, e := (Subjects{}).decodeCommand(k, "agent."+string(k)+".a.s.n.v", nats.Header{header: {"x"}}, []byte(`{}`))
		if e == nil || e.Code != aggregate.CodeInvalidCommand || !strings.Contains(e.Message, HeaderLaterID) || !strings.Contains(e.Message, HeaderCommandID) {
			t.Errorf("%s with %s: %v", k, header, e)
		}
	}
}

func TestDecodeCommand_HandsOverWhatCameIn(t *testing.T) {
	t.Parallel()
	body := []byte(` {"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,"s":"{[\"\\"} `)
	h := nats.Header{HeaderCommandID: {strings.Repeat("~", 128)}, HeaderExpected: {"007"}, HeaderTraceparent: {goodTrace}, "other": {"x", "y"}}
	r, e := (Subjects{}).decodeCommand(kindCmd, "agent.cmd.alice.S1.run.request", h, body)
	if e != nil {
		t.Fatal(e)
	}
	if r.Actor != "alice" || r.Session != "S1" || r.Name != "run.request" || r.ID != h[HeaderCommandID][0] || *r.Expected != 7 || r.Traceparent != goodTrace ||
		string(r.Body) != string(body) || r.Digest != events.CommandDigest("agent.cmd.alice.S1.run.request", body) {
		t.Fatalf("%+v", r)
	}
	l, e := (Subjects{}).decodeCommand(kindLater, "agent.later.alice.S1.run.request", nats.Header{HeaderLaterID: {"x y"}}, body)
	if e != nil || l.ID != "x y" || l.Expected != nil || l.Traceparent != "" || l.Digest != r.Digest {
		t.Fatalf("%+v %v", l, e)
	}
	if p, e := (Subjects{}).decodeCommand(kindCmd, "agent.cmd.root._settings.policy.set_mode", nil, []byte("{}")); e != nil || p.Session != SettingsSession || p.ID != "" {
		t.Fatalf("%+v %v", p, e)
	}
}

func TestCleanTraceparent_MalformedIsDropped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		goodTrace:                               goodTrace,
		"cc" + goodTrace[2:]:                    goodTrace,
		"cc" + goodTrace[2:] + "-x":             goodTrace,
		"cc" + goodTrace[2:] + "x":              "",
		goodTrace + "-x":                        "",
		"ff" + goodTrace[2:]:                    "",
		strings.ToUpper(goodTrace):              "",
		goodTrace[:54]:                          "",
		"":                                      "",
		strings.Replace(goodTrace, "-", "_", 1): "",
		"00-" + strings.Repeat("0", 32) + goodTrace[35:]:          "",
		goodTrace[:36] + strings.Repeat("0", 16) + goodTrace[52:]: "",
	} {
		if got := aggregate.CleanTraceparent(in); got != want {
			t.Errorf("CleanTraceparent(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDecodeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ subject, body, code string }{
		{"s", "", ""}, {"s", `{}`, ""}, {"s", `{"at_sequence":3,"transcript":true,"events":{"after":1,"limit":2}}`, ""}, {"_settings", "", ""},
		{"_x", "", aggregate.CodeInvalidToken}, {"a.b", "", aggregate.CodeInvalidToken}, {"s!", "", aggregate.CodeInvalidToken},
		{"s", "nope", aggregate.CodeInvalidJSON}, {"s", "[]", aggregate.CodeInvalidJSON}, {"s", `{"at_sequence":1,"at_sequence":1}`, aggregate.CodeInvalidJSON},
		{"s", `{"at_sequence":-1}`, aggregate.CodeInvalidCommand}, {"s", `{"at_sequence":"1"}`, aggregate.CodeInvalidCommand},
		{"s", `{"at":1}`, aggregate.CodeInvalidCommand}, {"s", `{"At_sequence":1}`, aggregate.CodeInvalidCommand},
	} {
		_, _, e := (Subjects{}).decodeRead("agent.read."+c.subject, []byte(c.body))
		if got := codeOf(e); got != c.code {
			t.Errorf("%s %s: %q, want %q", c.subject, c.body, got, c.code)
		}
	}
}

func codeOf(e *aggregate.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// FuzzDecodeCommand: whatever comes in, nothing panics, and what is handed
// over has valid tokens, headers and one JSON object.
func FuzzDecodeCommand(f *testing.F) {
	f.Add(false, "agent.cmd.a.s.n.v", "id", "7", goodTrace, []byte(`{"a":[1,{"b":"\u00e9"}]}`))
	for _, c := range badCommands() {
		f.Add(true, "agent.later."+c.subject, "", "", "", []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, later bool, subject, id, expected, trace string, body []byte) {
		k, idHeader := kindCmd, HeaderCommandID
		if later {
			k, idHeader = kindLater, HeaderLaterID
		}
		h := nats.Header{HeaderTraceparent: {trace}}
		if id != "" {
			h[idHeader] = []string{id}
		}
		if expected != "" {
			h[HeaderExpected] = []string{expected}
		}
		r, e := (Subjects{}).decodeCommand(k, subject, h, body)
		if e != nil {
			if e.Code == "" || e.Message == "" || (r.Session != "" && !ValidToken(r.Session)) {
				t.Fatalf("refusal %+v of %+v", e, r)
			}
			return
		}
		checkHandedOver(t, r)
		if r.ID != id || (r.Expected == nil) != (expected == "") {
			t.Fatalf("headers changed: %+v", r)
		}
	})
}

// checkHandedOver fails the test if a request breaks what Service promises.
func checkHandedOver(t *testing.T, r aggregate.Request) {
	t.Helper()
	var object map[string]any
	if err := events.UnmarshalStrict(r.Body, &object); err != nil || object == nil {
		t.Fatalf("body %q: %v", r.Body, err)
	}
	if !ValidToken(r.Actor) || ReservedToken(r.Actor) || !ValidToken(r.Session) || !ValidName(r.Name) || len(r.Digest) != 64 {
		t.Fatalf("request %+v", r)
	}
	if ReservedToken(r.Session) && (r.Session != SettingsSession || !strings.HasPrefix(r.Name, "policy.")) {
		t.Fatalf("reserved session %+v", r)
	}
	if r.ID != "" && !aggregate.ValidCommandID(r.ID) || r.Traceparent != "" && r.Traceparent != aggregate.CleanTraceparent(r.Traceparent) {
		t.Fatalf("headers %+v", r)
	}
}

func BenchmarkDecodeCommand(b *testing.B) {
	h := nats.Header{HeaderCommandID: {"01JABCDEFGHJKMNPQRSTVWXYZ0"}}
	body := []byte(`{"run_id":"01JABCDEFGHJKMNPQRSTVWXYZ0","fence":17,"round":3,"message":{"content":"` + strings.Repeat("text ", 40) + `","tool_calls":[]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, e := (Subjects{}).decodeCommand(kindCmd, "agent.cmd.runner-1.session-17.round.finish", h, body); e != nil {
			b.Fatal(e)
		}
	}
}
