package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ContentType is the value of the Content-Type header of every stored event.
const ContentType = "application/cloudevents+json"

var (
	// ErrUnknownEvent: a type, or a version of a type, that this reader does
	// not know. The session must not be folded past it.
	ErrUnknownEvent = errors.New("unknown_event")
	// ErrMalformed: bytes that are not an event as this package spells it.
	ErrMalformed = errors.New("malformed_event")
)

// Data is the typed content of an event; one Go type for each event type.
// A Data value must not be changed once it is part of an Event.
type Data interface {
	// EventType is the name on the wire: noun.verb_past.
	EventType() string
}

// Event is one fact of one session.
type Event struct {
	ID      string    // ULID, increasing within the session
	Type    string    // name on the wire, e.g. "round.started"
	Version int       // version of the data's shape, 1-based
	Session string    // token of the session
	Time    time.Time // UTC, of the engine that appended it; not ordered
	Seq     uint64    // 1-based position in the session, without gaps
	Birth   string    // ULID of this lifetime of the session id
	Actor   string    // who issued the command; "_engine" for its own facts
	Command string    // command id, "" for the engine's own facts
	// CommandDigest is the hex SHA-256 of the command's subject and body
	// ([CommandDigest]), "" for the engine's own facts.
	CommandDigest string
	Run           string // run id, "" where the event belongs to no run
	Prevhash      string // hex SHA-256 of the previous stored payload, "" for the first
	Traceparent   string // W3C trace context of the command, or ""
	// Ignorable marks a fact that changes no state: a reader that does not
	// know the type keeps it and passes over it.
	Ignorable bool
	// Data is the decoded content; nil exactly for an ignorable event of an
	// unknown type or version, whose content stays in Raw.
	Data Data
	// Raw is the data as stored, before upcasting; set by Decode only.
	Raw jsontext.Value
}

// envelope is the stored spelling; the order of the fields is the order on the wire.
type envelope struct {
	SpecVersion     string         `json:"specversion"`
	ID              string         `json:"id"`
	Source          string         `json:"source"`
	Type            string         `json:"type"`
	Subject         string         `json:"subject"`
	Time            time.Time      `json:"time"`
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

var writeOptions = json.JoinOptions(json.Deterministic(true))

// Encode spells the event in the newest version of its type. Equal events give
// equal bytes. Type, Version and Ignorable follow from the data's registration.
func Encode(e Event) ([]byte, error) {
	def, ok := lookup(e.Data.EventType())
	if !ok {
		return nil, fmt.Errorf("encode %s: %w", e.Data.EventType(), ErrUnknownEvent)
	}
	data, err := json.Marshal(e.Data, writeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", def.Type, err)
	}
	b, err := json.Marshal(envelope{
		SpecVersion: specVersion, ID: e.ID, Source: sourcePrefix + e.Session, Type: def.Type, Subject: e.Session,
		Time: e.Time.UTC(), DataContentType: dataType, DataSchema: schemaPrefix + def.Type + ":" + strconv.Itoa(def.Version),
		Seq: e.Seq, Birth: e.Birth, Actor: e.Actor, Command: e.Command, CommandDigest: e.CommandDigest, Run: e.Run,
		Prevhash: e.Prevhash, Traceparent: e.Traceparent, Ignorable: def.Ignorable, Data: data,
	}, writeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", def.Type, err)
	}
	return b, nil
}

// Decode reads one stored payload. Older versions are upcast to the newest.
// It returns ErrMalformed for bytes that are no event (unknown or missing
// fields included) and ErrUnknownEvent for a type or version it does not know,
// unless the event is ignorable; with ErrUnknownEvent the envelope is filled.
func Decode(stored []byte) (Event, error) {
	var w envelope
	if err := UnmarshalStrict(stored, &w); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	version, err := w.check()
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	e := Event{
		ID: w.ID, Type: w.Type, Version: version, Session: w.Subject, Time: w.Time, Seq: w.Seq, Birth: w.Birth,
		Actor: w.Actor, Command: w.Command, CommandDigest: w.CommandDigest, Run: w.Run, Prevhash: w.Prevhash,
		Traceparent: w.Traceparent, Ignorable: w.Ignorable, Raw: w.Data,
	}
	def, ok := lookup(w.Type)
	if !ok || version > def.Version {
		if w.Ignorable {
			return e, nil
		}
		return e, fmt.Errorf("%w: %s version %d", ErrUnknownEvent, w.Type, version)
	}
	e.Data, err = def.decode(version, w.Data)
	if err != nil {
		return e, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, w.Type, version, err)
	}
	return e, nil
}

// check validates the constant parts of the envelope and returns the version
// named by dataschema.
func (w *envelope) check() (int, error) {
	switch {
	case w.SpecVersion != specVersion:
		return 0, fmt.Errorf("specversion %q", w.SpecVersion)
	case w.Source != sourcePrefix+w.Subject:
		return 0, fmt.Errorf("source %q does not name session %q", w.Source, w.Subject)
	case w.DataContentType != dataType:
		return 0, fmt.Errorf("datacontenttype %q", w.DataContentType)
	case w.ID == "" || w.Subject == "" || w.Birth == "" || w.Actor == "" || w.Seq == 0 || w.Time.IsZero() || len(w.Data) == 0:
		return 0, errors.New("an attribute is missing")
	}
	rest, ok := strings.CutPrefix(w.DataSchema, schemaPrefix+w.Type+":")
	version, err := strconv.Atoi(rest)
	if !ok || err != nil || version < 1 {
		return 0, fmt.Errorf("dataschema %q does not fit type %q", w.DataSchema, w.Type)
	}
	return version, nil
}
