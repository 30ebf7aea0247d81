package events_test

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"culm/events"
)

// genEvent draws an event of any type with any content.
func genEvent() *rapid.Generator[events.Event] {
	return rapid.Custom(func(t *rapid.T) events.Event {
		def := rapid.SampledFrom(events.Definitions()).Draw(t, "definition")
		data := reflect.New(def.GoType()).Elem()
		draw(t, data, false)
		token := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
		id := rapid.StringMatching(`[0-7][0-9A-HJKMNP-TV-Z]{25}`)
		return events.Event{
			ID: id.Draw(t, "id"), Session: token.Draw(t, "session"), Birth: id.Draw(t, "birth"), Actor: token.Draw(t, "actor"),
			Type: def.Type, Version: def.Version, Ignorable: def.Ignorable,
			Seq:  rapid.Uint64Min(1).Draw(t, "seq"),
			Time: drawTime(t), Command: drawText(t), CommandDigest: drawText(t), Run: drawText(t), Prevhash: drawText(t), Traceparent: drawText(t),
			Data: data.Interface().(events.Data),
		}
	})
}

// draw sets v to anything its type can hold; optional values may be absent.
func draw(t *rapid.T, v reflect.Value, optional bool) {
	if optional && rapid.Bool().Draw(t, "absent") {
		return
	}
	switch v.Type() {
	case rawType:
		v.Set(reflect.ValueOf(jsontext.Value(drawObject(t, 3))))
		return
	case timeType:
		v.Set(reflect.ValueOf(drawTime(t)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, fv := range v.Fields() {
			draw(t, fv, strings.HasSuffix(f.Tag.Get("json"), ",omitzero"))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, v.Elem(), false)
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			draw(t, v.Index(i), false)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint32:
		v.SetUint(uint64(rapid.Uint32().Draw(t, "uint32")))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint64"))
	case reflect.String:
		v.SetString(drawText(t))
	}
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[ -~]{1,20}`), rapid.String()).Draw(t, "text")
}

func drawTime(t *rapid.T) time.Time {
	seconds := rapid.Int64Range(-62135596799, 253402300799).Draw(t, "seconds") // years 1 to 9999
	return time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
}

// drawObject spells an object without spaces, with any kind of value inside.
func drawObject(t *rapid.T, depth int) string {
	var b strings.Builder
	for i := range rapid.IntRange(0, 3).Draw(t, "members") {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := jsontext.AppendQuote(nil, strconv.Itoa(i)+drawText(t))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(drawValue(t, depth))
	}
	return "{" + b.String() + "}"
}

func drawValue(t *rapid.T, depth int) string {
	if depth > 0 && rapid.Bool().Draw(t, "nested") {
		if inner := drawObject(t, depth-1); rapid.Bool().Draw(t, "list") {
			return "[" + inner + ",[]]"
		} else {
			return inner
		}
	}
	return rapid.SampledFrom([]string{
		"null", "true", "0", "-0", "1.10", "1e400", "-1E-7", "9007199254740993", "18446744073709551616",
		`""`, `"\u0041\/"`, `"\ud83c\udf8b"`, `"\u0000"`,
	}).Draw(t, "leaf")
}

// TestEvent_RoundTrip: decode(encode(e)) = e, equal events give equal bytes,
// and the two ways of reading an envelope agree.
func TestEvent_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := genEvent().Draw(t, "event")
		b := mustEncodeRapid(t, e)
		if !jsontext.Value(b).IsValid() {
			t.Fatalf("not JSON: %s", b)
		}
		canonical := decodeEqual(t, b, e)
		spaced := decodeEqual(t, append([]byte{' '}, b...), e)
		if diff := cmp.Diff(canonical, spaced); diff != "" {
			t.Fatalf("the two readers differ:\n%s", diff)
		}
		if again := mustEncodeRapid(t, canonical); !bytes.Equal(b, again) {
			t.Fatalf("equal events, other bytes:\n%s\n%s", b, again)
		}
		local := e
		local.Time = e.Time.In(time.FixedZone("elsewhere", 3600))
		if again := mustEncodeRapid(t, local); !bytes.Equal(b, again) {
			t.Fatalf("the time zone changes the bytes:\n%s\n%s", b, again)
		}
	})
}

func mustEncodeRapid(t *rapid.T, e events.Event) []byte {
	b, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decodeEqual(t *rapid.T, b []byte, want events.Event) events.Event {
	got, err := events.Decode(b)
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	want.Raw = got.Raw
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	return got
}

// butForSpaces compares raw values as Encode writes them.
var butForSpaces = cmp.Comparer(func(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return (len(a) == 0) == (len(b) == 0) && (len(a) == 0 || a.Compact() == nil && b.Compact() == nil && bytes.Equal(a, b))
})

// FuzzDecode: never a panic; an error is one of the two kinds; what is accepted
// encodes to an event equal to it, and to itself if it was encoded by us.
func FuzzDecode(f *testing.F) {
	for _, d := range events.Definitions() {
		f.Add(mustEncode(f, sampleEvent(full(d))))
		f.Add(append([]byte(" "), mustEncode(f, sampleEvent(reflect.Zero(d.GoType()).Interface().(events.Data)))...))
	}
	f.Add(bytes.Replace(mustEncode(f, note(`{"a":1}`)), []byte(`{"a":1}`), []byte(` { "a" : [ 1, "\u0041" ] } `), 1))
	f.Add([]byte(`{"specversion":"1.0","id":"` + sampleID + `","source":"culm/sessions/"`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		before := bytes.Clone(stored)
		e, err := events.Decode(stored)
		if !bytes.Equal(stored, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if !errors.Is(err, events.ErrMalformed) && !errors.Is(err, events.ErrUnknownEvent) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		if !jsontext.Value(stored).IsValid() {
			t.Fatalf("accepted what is not JSON: %s", stored)
		}
		spaced, err := events.Decode(append([]byte{' '}, stored...))
		if err != nil || cmp.Diff(e, spaced) != "" {
			t.Fatalf("the two readers differ: %v\n%s", err, cmp.Diff(e, spaced))
		}
		if e.Data == nil {
			return // ignorable and unknown: kept, never written
		}
		b, err := events.Encode(e)
		if err != nil {
			t.Fatalf("accepted, yet not encoded: %v", err)
		}
		again, err := events.Decode(b)
		again.Raw, e.Raw = nil, nil
		if err != nil || cmp.Diff(e, again, butForSpaces) != "" {
			t.Fatalf("%v\n%s", err, cmp.Diff(e, again, butForSpaces))
		}
	})
}

// FuzzUnmarshalStrict: never a panic; what is accepted is well-formed, no
// deeper than allowed, and all of it is known.
func FuzzUnmarshalStrict(f *testing.F) {
	for _, s := range []string{`{}`, sampleRaw, `{"role":"user","content":"\u0000","message_id":"\""}`, `[[[[`, `{"a":"\\\"[[["}`, `{"role":null}`} {
		f.Add([]byte(s))
	}
	f.Add([]byte(strings.Repeat("[", events.MaxDepth) + strings.Repeat("]", events.MaxDepth)))
	f.Add([]byte(strings.Repeat(`{"":`, events.MaxDepth+1) + "0" + strings.Repeat("}", events.MaxDepth+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw jsontext.Value
		err := events.UnmarshalStrict(b, &raw)
		if valid := jsontext.Value(b).IsValid(); valid != (err == nil) && !(valid && errors.Is(err, events.ErrTooDeep)) {
			t.Fatalf("well-formed %t, yet %v", valid, err)
		}
		if jsontext.Value(b).IsValid() && (depthOf(t, b) > events.MaxDepth) != errors.Is(err, events.ErrTooDeep) {
			t.Fatalf("depth %d: %v", depthOf(t, b), err)
		}
		var m events.MessageSubmitted
		if events.UnmarshalStrict(b, &m) != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var n events.MessageSubmitted
		if err := events.UnmarshalStrict(again, &n); err != nil || m != n {
			t.Fatalf("%+v comes back as %+v: %v", m, n, err)
		}
	})
}

// depthOf is the nesting of well-formed JSON, by the library's own count.
func depthOf(t *testing.T, b []byte) (deepest int) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}
