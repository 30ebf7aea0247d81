package show_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"culm/events"
	"culm/internal/show"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// golden compares got with testdata/name, or writes it with -rewrite.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// told gives the events an envelope and tells them, one line each.
func told(style show.Style, data []events.Data) string {
	p := show.NewPrinter(style)
	var b strings.Builder
	for i, d := range data {
		e := events.Event{
			Type: d.EventType(), Session: "demo", Seq: uint64(i + 1), Actor: "alice",
			Time: noon.Add(time.Duration(i) * time.Second), Data: d,
		}
		b.WriteString(p.Event(&e) + "\n")
	}
	return b.String()
}

func TestEveryTypeIsToldInWords(t *testing.T) {
	t.Parallel()
	all := story()
	seen := map[string]bool{}
	for _, d := range all {
		seen[d.EventType()] = true
	}
	for _, def := range events.Definitions() {
		if !seen[def.Type] {
			t.Errorf("the story has no %s", def.Type)
		}
	}
	text := told(show.Style{}, all)
	for _, def := range events.Definitions() {
		if strings.Contains(text, def.Type) {
			t.Errorf("%s is told by its name, not in words", def.Type)
		}
	}
	golden(t, "story.txt", text)
}

func TestColourIsOnlyAround(t *testing.T) {
	t.Parallel()
	text := told(show.Style{Color: true}, story())
	golden(t, "story_colour.txt", strings.ReplaceAll(text, "\x1b", "ESC"))
	for _, code := range []string{"\x1b[0m", "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"} {
		text = strings.ReplaceAll(text, code, "")
	}
	if diff := cmp.Diff(told(show.Style{}, story()), text); diff != "" {
		t.Errorf("colour changes the text (-plain +coloured):\n%s", diff)
	}
}

// Every string of every event type is hostile; no line may show it raw.
func TestHostileContentIsNeutralised(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\x1b]0;owned\x07\r\nb\x00\u202ec\u009bd\xff\u2028e\x7f"
	p := show.NewPrinter(show.Style{Width: 400})
	for _, def := range events.Definitions() {
		v := reflect.New(def.GoType()).Elem()
		fill(v, hostile)
		for _, version := range []int{1, 99} {
			e := events.Event{Type: def.Type, Version: version, Session: hostile, Actor: hostile, Seq: 1, Time: noon, Data: v.Interface().(events.Data)}
			check(t, def.Type, p.Event(&e))
		}
	}
	check(t, "unknown", p.Event(&events.Event{Type: hostile, Session: hostile, Actor: hostile, Ignorable: true}))
	check(t, "not an event", p.Record(events.Record{Session: "s", Seq: 3, Payload: []byte(hostile)}))
	check(t, "unknown type", p.Record(events.Record{Session: "s", Seq: 3, Payload: []byte(strings.ReplaceAll(future, "TYPE", `x\u001b.y`))}))
}

const future = `{"specversion":"1.0","id":"01JDXJ3V00ABCDEFGHJKMNPQRS","source":"culm/sessions/s","type":"TYPE","subject":"s","time":"2026-11-30T12:00:00Z",` +
	`"datacontenttype":"application/json","dataschema":"culm:TYPE:2","seq":3,"birth":"01JDXJ3V00ABCDEFGHJKMNPQRS","actor":"alice","prevhash":"","data":{}}`

func TestRecordTellsWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	p := show.NewPrinter(show.Style{})
	golden(t, "records.txt", strings.Join([]string{
		p.Record(events.Record{Session: "s", Seq: 3, Payload: []byte(strings.ReplaceAll(future, "TYPE", "mind.read"))}),
		p.Record(events.Record{Session: "s", Seq: 3, Payload: []byte(strings.ReplaceAll(future, `"seq"`, `"ignorable":true,"seq"`))}),
		p.Record(events.Record{Session: "s", Seq: 4, Payload: []byte("{")}),
	}, "\n")+"\n")
}

func check(t *testing.T, what, line string) {
	t.Helper()
	for _, r := range line {
		if !unicode.IsPrint(r) {
			t.Errorf("%s: %U reaches the terminal: %q", what, r, line)
			return
		}
	}
}

// fill sets every field below v: strings to s, numbers to 7, lists to one element.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[jsontext.Value]() {
			v.SetBytes([]byte(s))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), s)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(s), reflect.ValueOf(s))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m", 47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := show.Short(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
