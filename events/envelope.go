package events

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// envelope is the stored spelling of an event, for bytes in any order and
// spacing. What Encode writes is read by parseCanonical instead, in one pass;
// both give the same event.
type envelope struct {
	SpecVersion     string         `json:"specversion"`
	ID              string         `json:"id"`
	Source          string         `json:"source"`
	Type            string         `json:"type"`
	Subject         string         `json:"subject"`
	Time            jsontext.Value `json:"time"`
	DataContentType string         `json:"datacontenttype"`
	DataSchema      string         `json:"dataschema"`
	Seq             uint64         `json:"seq"`
	Birth           string         `json:"birth"`
	Actor           string         `json:"actor"`
	Command         string         `json:"command,omitzero"`
	CommandDigest   string         `json:"commanddigest,omitzero"`
	Run             string         `json:"run,omitzero"`
	Prevhash        string         `json:"prevhash"`
	Traceparent     string         `json:"traceparent,omitzero"`
	Ignorable       bool           `json:"ignorable,omitzero"`
	Data            jsontext.Value `json:"data"`
}

const (
	specVersion  = "1.0"
	sourcePrefix = "culm/sessions/"
	schemaPrefix = "culm:"
	dataType     = "application/json"
)

// What stands between the values of an encoded event.
const (
	openID            = `{"specversion":"` + specVersion + `","id":`
	thenSource        = `,"source":"` + sourcePrefix
	thenType          = `","type":"`
	thenSubject       = `","subject":"`
	thenTime          = `","time":"`
	thenSchema        = `","datacontenttype":"` + dataType + `","dataschema":"` + schemaPrefix
	thenSeq           = `","seq":`
	thenBirth         = `,"birth":`
	thenActor         = `,"actor":`
	thenCommand       = `,"command":`
	thenCommandDigest = `,"commanddigest":`
	thenRun           = `,"run":`
	thenPrevhash      = `,"prevhash":`
	thenTraceparent   = `,"traceparent":`
	thenIgnorable     = `,"ignorable":true`
	thenData          = `,"data":`
)

// parseEnvelope reads everything but the typed data, whose bytes it leaves in
// Raw: an object by its first byte, of bounded depth, not looked at otherwise.
func parseEnvelope(stored []byte) (Event, error) {
	e, ok := parseCanonical(stored)
	if !ok {
		var err error
		if e, err = parseAny(stored); err != nil {
			return Event{}, err
		}
	}
	if len(e.Raw) == 0 || e.Raw[0] != '{' {
		return Event{}, errAttribute("data is not an object")
	}
	if err := checkDepth(e.Raw, MaxDepth); err != nil {
		return Event{}, err
	}
	return e, e.checkAttributes()
}

// parseAny reads an envelope however it is spelled.
func parseAny(stored []byte) (Event, error) {
	var w envelope
	if err := unmarshalStrict(stored, &w, MaxDepth+1); err != nil {
		return Event{}, err
	}
	switch {
	case w.SpecVersion != specVersion:
		return Event{}, fmt.Errorf("specversion %q", w.SpecVersion)
	case w.Source != sourcePrefix+w.Subject:
		return Event{}, fmt.Errorf("source %q does not name session %q", w.Source, w.Subject)
	case w.DataContentType != dataType:
		return Event{}, fmt.Errorf("datacontenttype %q", w.DataContentType)
	}
	rest, ok := strings.CutPrefix(w.DataSchema, schemaPrefix+w.Type+":")
	version, okVersion := parseVersion([]byte(rest))
	if !ok || !okVersion {
		return Event{}, fmt.Errorf("dataschema %q does not fit type %q", w.DataSchema, w.Type)
	}
	text, err := jsontext.AppendUnquote(nil, w.Time)
	if err != nil {
		return Event{}, errAttribute("time is not a string")
	}
	at, ok := parseTime(text)
	if !ok {
		return Event{}, fmt.Errorf("time %q is not RFC 3339 in UTC", text)
	}
	return Event{
		ID: w.ID, Type: w.Type, Version: version, Session: w.Subject, Time: at, Seq: w.Seq, Birth: w.Birth,
		Actor: w.Actor, Command: w.Command, CommandDigest: w.CommandDigest, Run: w.Run, Prevhash: w.Prevhash,
		Traceparent: w.Traceparent, Ignorable: w.Ignorable, Raw: w.Data,
	}, nil
}

func parseVersion(digits []byte) (int, bool) {
	n, err := strconv.ParseUint(string(digits), 10, 31)
	return int(n), err == nil && n > 0 && digits[0] != '0'
}

func parseTime(text []byte) (time.Time, bool) {
	var t time.Time
	err := t.UnmarshalText(text)
	return t, err == nil && text[len(text)-1] == 'Z'
}

// parseCanonical reads the spelling that Encode gives, as long as no attribute
// needs an escape. It refuses anything else, malformed or not: parseAny decides.
func parseCanonical(stored []byte) (Event, bool) {
	var e Event
	r := reader{b: stored, ok: true}
	r.skip(openID)
	e.ID = r.text()
	r.skip(thenSource)
	session := r.plain()
	r.skip(thenType)
	name := r.plain()
	r.skip(thenSubject)
	r.skip(string(session))
	r.skip(thenTime)
	at := r.plain()
	r.skip(thenSchema)
	r.skip(string(name))
	r.skip(":")
	version := r.plain()
	r.skip(thenSeq)
	e.Seq = r.number()
	r.skip(thenBirth)
	e.Birth = r.text()
	r.skip(thenActor)
	e.Actor = r.text()
	e.Command = r.optional(thenCommand)
	e.CommandDigest = r.optional(thenCommandDigest)
	e.Run = r.optional(thenRun)
	r.skip(thenPrevhash)
	e.Prevhash = r.text()
	e.Traceparent = r.optional(thenTraceparent)
	e.Ignorable = r.has(thenIgnorable)
	r.skip(thenData)
	if !r.ok || !bytes.HasPrefix(r.b, []byte("{")) || !bytes.HasSuffix(r.b, []byte("}}")) {
		return Event{}, false
	}
	end := len(r.b) - 1
	e.Raw = jsontext.Value(r.b[:end:end])
	e.Session, e.Type = string(session), string(name)
	var okVersion, okTime bool
	e.Version, okVersion = parseVersion(version)
	e.Time, okTime = parseTime(at)
	return e, okVersion && okTime
}

// reader takes expected pieces off the front of b; after the first that is not
// there, ok is false and what it returns means nothing.
type reader struct {
	b  []byte
	ok bool
}

// has takes s off if it is next.
func (r *reader) has(s string) bool {
	if len(r.b) < len(s) || string(r.b[:len(s)]) != s {
		return false
	}
	r.b = r.b[len(s):]
	return true
}

func (r *reader) skip(s string) { r.ok = r.ok && r.has(s) }

// plain takes the bytes before the next quotation mark: ASCII without escapes.
func (r *reader) plain() []byte {
	for i, c := range r.b {
		switch {
		case c == '"':
			text := r.b[:i]
			r.b = r.b[i:]
			return text
		case c < ' ' || c > '~' || c == '\\':
			r.ok = false
			return nil
		}
	}
	r.ok = false
	return nil
}

func (r *reader) text() string {
	r.skip(`"`)
	text := r.plain()
	r.skip(`"`)
	return string(text)
}

func (r *reader) optional(key string) string {
	if r.has(key) {
		return r.text()
	}
	return ""
}

func (r *reader) number() uint64 {
	i := 0
	for i < len(r.b) && '0' <= r.b[i] && r.b[i] <= '9' {
		i++
	}
	n, err := strconv.ParseUint(string(r.b[:i]), 10, 64)
	r.ok = r.ok && err == nil && r.b[0] != '0'
	r.b = r.b[i:]
	return n
}
