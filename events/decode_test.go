package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"culm/events"
)

func mustEncode(t testing.TB, e events.Event) []byte {
	t.Helper()
	b, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func note(raw string) events.Event {
	return sampleEvent(events.NoteAppended{Kind: "k", Data: jsontext.Value(raw)})
}

// TestDecode_RefusesWhatIsNoEvent takes a stored event apart in one way each.
// All of the input but the change stands in the base, which does decode.
func TestDecode_RefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	base := string(mustEncode(t, sampleEvent(events.RoundFailed{RunID: "r", Round: 1, Error: events.Failure{Code: "c", Message: "m"}})))
	if _, err := events.Decode([]byte(base)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new string }{
		{"duplicate attribute", `"seq":13,`, `"seq":13,"seq":13,`},
		{"duplicate field", `"round":1,`, `"round":1,"round":1,`},
		{"duplicate key by escape", `"round":1,`, `"round":1,"roun\u0064":1,`},
		{"duplicate data", `"data":{`, `"data":{},"data":{`},
		{"unknown attribute", `"seq":13,`, `"seq":13,"partition":1,`},
		{"unknown attribute after data", `}}}`, `}},"partition":1}`},
		{"unknown field", `"round":1,`, `"round":1,"added":null,`},
		{"unknown inner field", `"code":"c"`, `"code":"c","hint":"h"`},
		{"attribute in other case", `"seq":13`, `"Seq":13`},
		{"field in other case", `"round":1`, `"Round":1`},
		{"trailing object", `}}}`, `}}}{}`},
		{"trailing bracket", `}}}`, `}}}}`},
		{"trailing NUL", `}}}`, "}}}\x00"},
		{"cut off", `}}}`, `}}`},
		{"leading byte order mark", `{"specversion"`, "\ufeff" + `{"specversion"`},
		{"invalid UTF-8 in an attribute", `"actor":"runner-1"`, "\"actor\":\"run\xff\""},
		{"invalid UTF-8 in a free attribute", `"command":"01KB9ZQ3V4"`, "\"command\":\"\xc3(\""},
		{"control character in a free attribute", `"command":"01KB9ZQ3V4"`, "\"command\":\"a\nb\""},
		{"invalid UTF-8 in a field", `"message":"m"`, "\"message\":\"\xc3\""},
		{"lone surrogate", `"message":"m"`, `"message":"\ud800"`},
		{"raw NUL in a string", `"message":"m"`, "\"message\":\"\x00\""},
		{"comment", `"round":1`, `/**/"round":1`},
		{"trailing comma", `"round":1,`, `"round":1,,`},
		{"leading zero", `"seq":13`, `"seq":013`},
		{"fraction for an integer", `"round":1`, `"round":1.0`},
		{"exponent for an integer", `"round":1`, `"round":1e0`},
		{"number over its range", `"round":1`, `"round":4294967296`},
		{"seq over its range", `"seq":13`, `"seq":18446744073709551616`},
		{"negative seq", `"seq":13`, `"seq":-13`},
		{"seq as text", `"seq":13`, `"seq":"13"`},
		{"number for text", `"run_id":"r"`, `"run_id":1`},
		{"text for a record", `"error":{"code":"c","message":"m"}`, `"error":"c"`},
		{"zero seq", `"seq":13`, `"seq":0`},
		{"no seq", `"seq":13,`, ``},
		{"no id", `"id":"` + sampleID + `",`, ``},
		{"id in lower case", sampleID, strings.ToLower(sampleID)},
		{"id too short", sampleID, sampleID[1:]},
		{"id beyond 128 bits", sampleID, "8" + sampleID[1:]},
		{"id with a letter that ULIDs lack", sampleID, sampleID[:25] + "U"},
		{"birth is no ULID", `"birth":"` + sampleBirth, `"birth":"b`},
		{"no birth", `"birth":"` + sampleBirth + `",`, ``},
		{"no actor", `"actor":"runner-1",`, ``},
		{"actor is no token", `"actor":"runner-1"`, `"actor":"a.b"`},
		{"no time", `"time":"2026-11-30T12:00:00.123456789Z",`, ``},
		{"time null", `"time":"2026-11-30T12:00:00.123456789Z"`, `"time":null`},
		{"time with an offset", `12:00:00.123456789Z`, `13:00:00.123456789+01:00`},
		{"time out of range", `2026-11-30T12`, `2026-11-31T12`},
		{"zero time", `2026-11-30T12:00:00.123456789Z`, `0001-01-01T00:00:00Z`},
		{"other specversion", `"specversion":"1.0"`, `"specversion":"1.1"`},
		{"source of another session", `culm/sessions/S-1_a`, `culm/sessions/S-2`},
		{"source elsewhere", `culm/sessions/S-1_a`, `S-1_a`},
		{"other content type", `application/json`, `text/plain`},
		{"schema of another type", `culm:round.failed:1`, `culm:round.finished:1`},
		{"schema without version", `culm:round.failed:1`, `culm:round.failed`},
		{"version zero", `culm:round.failed:1`, `culm:round.failed:0`},
		{"version with a sign", `culm:round.failed:1`, `culm:round.failed:+1`},
		{"version with a leading zero", `culm:round.failed:1`, `culm:round.failed:01`},
		{"version beyond numbers", `culm:round.failed:1`, `culm:round.failed:99999999999`},
		{"ignorable that is not", `"data":`, `"ignorable":true,"data":`},
		{"no data", `"data":{"run_id":"r","round":1,"error":{"code":"c","message":"m"}}`, `"extra":1`},
		{"data null", `{"run_id":"r","round":1,"error":{"code":"c","message":"m"}}`, `null`},
		{"data a list", `{"run_id":"r","round":1,"error":{"code":"c","message":"m"}}`, `[]`},
	}
	for _, tt := range tests {
		stored := strings.Replace(base, tt.old, tt.new, 1)
		if stored == base {
			t.Errorf("%s: changes nothing", tt.name)
		}
		for spelling, b := range map[string]string{"canonical": stored, "spaced": " " + stored} {
			if e, err := events.Decode([]byte(b)); !errors.Is(err, events.ErrMalformed) || e.Data != nil {
				t.Errorf("%s, %s: err %v, data %v", tt.name, spelling, err, e.Data)
			}
		}
	}
	for _, b := range []string{"", "null", "{}", "[]", "1", `"x"`, " ", "\x00", "{"} {
		if _, err := events.Decode([]byte(b)); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// TestDecode_ReadsAnySpelling: order of members, white space and escapes do
// not matter to a reader.
func TestDecode_ReadsAnySpelling(t *testing.T) {
	t.Parallel()
	want := sampleEvent(events.RunCancelRequested{RunID: "r"})
	base := string(mustEncode(t, want))
	want.Type, want.Version, want.Raw = "run.cancel_requested", 1, jsontext.Value(`{"run_id":"r"}`)
	id := `"id":"` + sampleID + `",`
	for name, stored := range map[string]string{
		"as encoded":    base,
		"spaced":        "\n" + strings.ReplaceAll(base, `,"`, ",\t\r\n \"") + " ",
		"before data":   strings.Replace(base, `{"run_id":"r"}`, ` {"run_id":"r"}`, 1),
		"after data":    strings.Replace(base, `{"run_id":"r"}`, `{"run_id":"r"} `, 1),
		"data spaced":   strings.Replace(base, `{"run_id":"r"}`, ` {"run_id":"r"} `, 1),
		"other order":   `{` + id + strings.Replace(base[1:], id, "", 1),
		"escapes":       strings.Replace(base, `"actor":"runner-1"`, `"\u0061ctor":"r\u0075nner-1"`, 1),
		"explicit null": strings.Replace(base, `"seq":13`, `"ignorable":null,"seq":13`, 1),
	} {
		got, err := events.Decode([]byte(stored))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDecode_LeavesTheInputAlone: what is appended to Raw does not run into the
// stored bytes behind it.
func TestDecode_LeavesTheInputAlone(t *testing.T) {
	t.Parallel()
	stored := mustEncode(t, note(`{"a":1}`))
	before := bytes.Clone(stored)
	e, err := events.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if raw := append(e.Raw, "xyz"...); len(raw) == 0 || !bytes.Equal(stored, before) {
		t.Errorf("the input became %s", stored)
	}
}

func TestDecode_KeepsRawNumbersAndEscapes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"id":9007199254740993}`, `{"id":18446744073709551615}`, `{"id":1e400}`, `{"id":-0}`, `{"id":1.10}`, `{"id":1E+05}`,
		`{"text":"\u0000\u001f\u0041\/"}`, `{"text":"\ud83c\udf8b 🎋"}`, `{"z":1,"a":[2,{"":null}]}`, `{}`, sampleRaw,
	} {
		stored := mustEncode(t, note(raw))
		if !strings.Contains(string(stored), raw) {
			t.Errorf("%s is stored as %s", raw, stored)
		}
		e, err := events.Decode(stored)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := e.Data.(events.NoteAppended).Data; string(got) != raw {
			t.Errorf("%s is read as %s", raw, got)
		}
		if again := mustEncode(t, e); !bytes.Equal(again, stored) {
			t.Errorf("%s: encodes to other bytes the second time", raw)
		}
	}
}

// TestEncode_KeepsTextExactly: what a model or a tool said is never replaced.
func TestEncode_KeepsTextExactly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "nul \x00 in the middle", strings.Repeat(strings.Repeat("x", 47)+"é", 100), `{"id":9007199254740993,"a":1e400}`,
		"\u2028\ufffd\U0010ffff<&>", "\\ud800 spelled out", strings.Repeat("[", 100),
	} {
		e := sampleEvent(events.RoundFinished{Message: events.AssistantMessage{ToolCalls: []events.ToolCall{{Arguments: text}}}})
		got, err := events.Decode(mustEncode(t, e))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if args := got.Data.(events.RoundFinished).Message.ToolCalls[0].Arguments; args != text {
			t.Errorf("%q is read as %q", text, args)
		}
	}
}

// TestEncode_RefusesWhatDecodeWould: nothing is stored that stops a reader.
func TestEncode_RefusesWhatDecodeWould(t *testing.T) {
	t.Parallel()
	bad := func(change func(*events.Event)) events.Event {
		e := sampleEvent(events.RunCancelRequested{RunID: "r"})
		change(&e)
		return e
	}
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	tests := []struct {
		name string
		e    events.Event
		err  error
	}{
		{"no data", bad(func(e *events.Event) { e.Data = nil }), events.ErrUnknownEvent},
		{"data by pointer", bad(func(e *events.Event) { e.Data = &events.RunCancelRequested{} }), events.ErrUnknownEvent},
		{"nil pointer", bad(func(e *events.Event) { e.Data = (*events.RunCancelRequested)(nil) }), events.ErrUnknownEvent},
		{"unregistered type", bad(func(e *events.Event) { e.Data = strange{} }), events.ErrUnknownEvent},
		{"foreign type under a known name", bad(func(e *events.Event) { e.Data = impostor{} }), events.ErrUnknownEvent},
		{"no id", bad(func(e *events.Event) { e.ID = "" }), events.ErrMalformed},
		{"no birth", bad(func(e *events.Event) { e.Birth = "" }), events.ErrMalformed},
		{"no seq", bad(func(e *events.Event) { e.Seq = 0 }), events.ErrMalformed},
		{"no actor", bad(func(e *events.Event) { e.Actor = "" }), events.ErrMalformed},
		{"no time", bad(func(e *events.Event) { e.Time = time.Time{} }), events.ErrMalformed},
		{"year 10000", bad(func(e *events.Event) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), events.ErrMalformed},
		{"session is no token", bad(func(e *events.Event) { e.Session = "a.>" }), events.ErrMalformed},
		{"invalid UTF-8 in an attribute", bad(func(e *events.Event) { e.Command = "\xff" }), events.ErrMalformed},
		{"invalid UTF-8 in a field", bad(func(e *events.Event) { e.Data = events.RunCancelRequested{RunID: "\xff"} }), events.ErrMalformed},
		{"raw is no JSON", note(`{"a":}`), events.ErrMalformed},
		{"raw with duplicate keys", note(`{"a":1,"a":2}`), events.ErrMalformed},
		{"raw with a lone surrogate", note(`{"a":"\ud800"}`), events.ErrMalformed},
		{"raw too deep", note(deep(events.MaxDepth)), events.ErrMalformed},
	}
	for _, tt := range tests {
		if b, err := events.Encode(tt.e); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %s", tt.name, err, b)
		}
	}
	// The deepest body of a command, {"kind":…,"data":…}, still makes an event.
	stored := mustEncode(t, note(deep(events.MaxDepth-1)))
	for spelling, b := range map[string][]byte{"canonical": stored, "spaced": append([]byte{' '}, stored...)} {
		if _, err := events.Decode(b); err != nil {
			t.Errorf("as deep as allowed, %s: %v", spelling, err)
		}
	}
}

// strange is data of no registered type, impostor of a registered name.
type (
	strange  struct{}
	impostor struct{ events.RunCancelRequested }
)

func (strange) EventType() string { return "thing.happened" }

func TestDecode_UnknownEvents(t *testing.T) {
	t.Parallel()
	plain := string(mustEncode(t, sampleEvent(events.RunCancelRequested{RunID: "r"})))
	ignorable := string(mustEncode(t, note(`{"a":1.10}`)))
	rename := func(s, from, to string) string { return strings.ReplaceAll(s, from, to) }
	newer := func(s, name string) string { return rename(s, "culm:"+name+":1", "culm:"+name+":2") }
	for name, stored := range map[string]string{
		"type":            rename(plain, "run.cancel_requested", "run.praised"),
		"newer version":   newer(plain, "run.cancel_requested"),
		"and spaced":      " " + newer(plain, "run.cancel_requested"),
		"fields unknown":  rename(newer(plain, "run.cancel_requested"), `"run_id"`, `"run_ids"`),
		"name is foreign": rename(plain, "run.cancel_requested", "Run/Praised"),
	} {
		e, err := events.Decode([]byte(stored))
		if !errors.Is(err, events.ErrUnknownEvent) || errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if e.Data != nil || e.Seq != 13 || e.ID != sampleID || e.Actor != "runner-1" || len(e.Raw) == 0 {
			t.Errorf("%s: envelope is not filled: %+v", name, e)
		}
	}
	for name, stored := range map[string]string{
		"type":          rename(ignorable, "note.appended", "badge.awarded"),
		"newer version": newer(ignorable, "note.appended"),
	} {
		e, err := events.Decode([]byte(stored))
		if err != nil || e.Data != nil || !e.Ignorable {
			t.Errorf("ignorable %s: %v, %+v", name, err, e)
		}
		if string(e.Raw) != `{"kind":"k","data":{"a":1.10}}` {
			t.Errorf("ignorable %s: content is lost: %s", name, e.Raw)
		}
	}
	broken := rename(rename(ignorable, "note.appended", "badge.awarded"), `{"a":1.10}`, `{"a":1,"a":2}`)
	if _, err := events.Decode([]byte(broken)); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("ignorable of an unknown type with broken data: %v", err)
	}
}

// TestDecode_OlderDataWithoutAField: an absent field reads as its zero value.
func TestDecode_OlderDataWithoutAField(t *testing.T) {
	t.Parallel()
	stored := bytes.Replace(mustEncode(t, sampleEvent(events.RunBudgetExhausted{RunID: "r", Kind: "tokens"})), []byte(`,"kind":"tokens"`), nil, 1)
	e, err := events.Decode(stored)
	if want := (events.RunBudgetExhausted{RunID: "r"}); err != nil || e.Data != want {
		t.Errorf("%v, %+v", err, e.Data)
	}
}

func TestValidToken(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "S-1_a", "_engine", strings.Repeat("x", 64), "-", "0"} {
		if !events.ValidToken(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "..", "a.b", "x.*", ">", "*", "a b", "a\r\n", "é", "a\x00", "a/b", strings.Repeat("x", 65), strings.Repeat("x", 300)} {
		if events.ValidToken(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestUnmarshalStrict(t *testing.T) {
	t.Parallel()
	type body struct {
		Round uint32         `json:"round"`
		Raw   jsontext.Value `json:"raw,omitzero"`
	}
	nested := func(n int) string {
		return fmt.Sprintf(`{"raw":%s1%s}`, strings.Repeat("[", n), strings.Repeat("]", n))
	}
	for _, s := range []string{`{}`, ` {"round":1} `, `{"raw":"[[["}`, nested(events.MaxDepth - 1), `{"raw":"` + strings.Repeat(`[\"`, 300) + `"}`, `{"raw":"\\","round":1}`,
		`{"raw":[` + strings.Repeat("[],", 200) + `1]}`} {
		if err := events.UnmarshalStrict([]byte(s), new(body)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{``, `{`, `{}{}`, `{} x`, `{"Round":1}`, `{"round":1,"round":1}`, `{"raw":{"a":1,"a":1}}`, `{"round":1,}`, `{"rounds":1}`,
		`{"raw":"\udc00"}`, "{\"raw\":\"\xff\"}", `[]`, `{"round":"1"}`, `{"raw":01}`, `{'round':1}`, `{"raw":NaN}`} {
		if err := events.UnmarshalStrict([]byte(s), new(body)); err == nil {
			t.Errorf("%s is accepted", s)
		}
	}
	for _, s := range []string{nested(events.MaxDepth), strings.Repeat("[", 1<<20), `{"raw":"\\","x":` + strings.Repeat("[", 65)} {
		if err := events.UnmarshalStrict([]byte(s), new(body)); !errors.Is(err, events.ErrTooDeep) {
			t.Errorf("%.40s…: %v", s, err)
		}
	}
}

// TestPackage_HasNoClockOrChance: events are what they are told to be.
func TestPackage_HasNoClockOrChance(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"time.Now", "math/rand", "crypto/rand", "ulid.Make", "uuid"} {
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s uses %s", f.Name(), word)
			}
		}
	}
}
