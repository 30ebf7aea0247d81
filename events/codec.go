package events

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// writeOptions keep raw values as they were given, but for insignificant white
// space.
var writeOptions = json.JoinOptions(json.Deterministic(true), jsontext.PreserveRawStrings(true))

// Encode spells the event in the newest version of its type. Equal events give
// equal bytes. Type, Version and Ignorable follow from the data's registration.
// It returns ErrUnknownEvent for data of no registered type (nil included), and
// ErrMalformed for an event that Decode would not take back.
func Encode(e Event) ([]byte, error) { return registry.encode(e) }

// Decode reads one stored payload. Older versions are upcast to the newest; a
// field of the data that is absent reads as its zero value. It returns
// ErrMalformed for bytes that are no event, unknown fields included, and
// ErrUnknownEvent for a type or version it does not know, unless the event is
// ignorable; with ErrUnknownEvent all but Data is filled.
func Decode(stored []byte) (Event, error) { return registry.decode(stored) }

// buffers hold the data of an event until its envelope is written around it.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (c catalogue) encode(e Event) ([]byte, error) {
	if e.Data == nil {
		return nil, fmt.Errorf("encode %q: %w: no data", e.Type, ErrUnknownEvent)
	}
	def, ok := c.lookup(e.Data)
	if !ok {
		return nil, fmt.Errorf("encode %T: %w", e.Data, ErrUnknownEvent)
	}
	if err := e.checkAttributes(); err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", def.Type, ErrMalformed, err)
	}
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	err := json.MarshalWrite(buf, e.Data, writeOptions)
	data := buf.Bytes()
	if err == nil {
		err = checkDepth(data, MaxDepth)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", def.Type, ErrMalformed, err)
	}
	b, err := appendEnvelope(make([]byte, 0, envelopeSize+len(data)), &e, def, data)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", def.Type, ErrMalformed, err)
	}
	return b, nil
}

func (c catalogue) decode(stored []byte) (Event, error) {
	e, err := parseEnvelope(stored)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	def, ok := c[e.Type]
	if !ok || e.Version > def.Version {
		if !e.Raw.IsValid() {
			return Event{}, fmt.Errorf("%w: data of %s version %d", ErrMalformed, e.Type, e.Version)
		}
		if e.Ignorable {
			return e, nil
		}
		return e, fmt.Errorf("%w: %s version %d", ErrUnknownEvent, e.Type, e.Version)
	}
	if e.Version == def.Version && e.Ignorable != def.Ignorable {
		return Event{}, fmt.Errorf("%w: %s version %d with ignorable %t", ErrMalformed, e.Type, e.Version, e.Ignorable)
	}
	if e.Data, err = def.decode(e.Version, e.Raw); err != nil {
		return Event{}, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, e.Type, e.Version, err)
	}
	return e, nil
}

// lookup finds the definition of the data's type; data behind a pointer has none.
func (c catalogue) lookup(d Data) (*Definition, bool) {
	t := reflect.TypeOf(d)
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	def, ok := c[d.EventType()]
	return def, ok && def.goType == t
}

// decode turns raw, data of the given version, into the newest Go type.
func (d *Definition) decode(version int, raw jsontext.Value) (Data, error) {
	if version < d.Version && !raw.IsValid() {
		return nil, errAttribute("data is not JSON")
	}
	for v := version; v < d.Version; v++ {
		var err error
		if raw, err = d.Upcasters[v-1](raw); err != nil {
			return nil, fmt.Errorf("upcast from version %d: %w", v, err)
		}
	}
	p := reflect.New(d.goType)
	if err := decodeJSON(raw, p.Interface()); err != nil {
		return nil, err
	}
	return p.Elem().Interface().(Data), nil
}

// envelopeSize is room for the attributes of a typical event.
const envelopeSize = 768

// appendEnvelope writes the attributes in their order on the wire, data last.
func appendEnvelope(b []byte, e *Event, def *Definition, data []byte) ([]byte, error) {
	w := writer{b: b}
	w.raw(openID).text(e.ID)
	w.raw(thenSource).raw(e.Session).raw(thenType).raw(def.Type).raw(thenSubject).raw(e.Session)
	w.raw(thenTime).time(e.Time.UTC())
	w.raw(thenSchema).raw(def.Type).raw(":").number(uint64(def.Version))
	w.raw(thenSeq).number(e.Seq)
	w.raw(thenBirth).text(e.Birth)
	w.raw(thenActor).text(e.Actor)
	w.optional(thenCommand, e.Command)
	w.optional(thenCommandDigest, e.CommandDigest)
	w.optional(thenRun, e.Run)
	w.raw(thenPrevhash).text(e.Prevhash)
	w.optional(thenTraceparent, e.Traceparent)
	if def.Ignorable {
		w.raw(thenIgnorable)
	}
	w.raw(thenData)
	w.b = append(append(w.b, data...), '}')
	return w.b, w.err
}

// writer appends JSON and keeps the first error.
type writer struct {
	b   []byte
	err error
}

func (w *writer) raw(s string) *writer { w.b = append(w.b, s...); return w }

func (w *writer) number(n uint64) { w.b = strconv.AppendUint(w.b, n, 10) }

func (w *writer) text(s string) {
	if isPlain(s) {
		w.b = append(append(append(w.b, '"'), s...), '"')
		return
	}
	var err error
	if w.b, err = jsontext.AppendQuote(w.b, s); err != nil && w.err == nil {
		w.err = err
	}
}

// isPlain says that s is ASCII that needs no escape.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *writer) time(t time.Time) {
	var err error
	if w.b, err = t.AppendText(w.b); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) optional(key, s string) {
	if s != "" {
		w.raw(key).text(s)
	}
}
