package events

import (
	"errors"
	"strings"
	"time"

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
// It is held by value, never by pointer, and must not be changed once it is part
// of an Event.
type Data interface {
	// EventType is the name on the wire: noun.verb_past.
	EventType() string
}

// Event is one fact of one session.
type Event struct {
	ID      string    // ULID, increasing within the session
	Type    string    // name on the wire, e.g. "round.started"
	Version int       // version of the data's shape as stored, 1-based
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
	// Raw is the data as stored, before upcasting; set by Decode only. It is
	// part of the decoded bytes and must not be changed.
	Raw jsontext.Value
}

// ValidToken says whether s may stand as one token of a subject: a session, an
// actor, a runner. It matches [A-Za-z0-9_-]{1,64}.
func ValidToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 64
}

// ReservedToken says whether s, as actor or session, is the engine's own.
func ReservedToken(s string) bool { return strings.HasPrefix(s, "_") }

// validULID accepts the canonical spelling only: ids are compared as strings.
func validULID(s string) bool {
	if len(s) != 26 || s[0] > '7' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U') {
			return false
		}
	}
	return true
}

// checkAttributes holds for every event that is encoded or decoded.
func (e *Event) checkAttributes() error {
	switch {
	case !validULID(e.ID):
		return errAttribute("id is not a ULID")
	case !ValidToken(e.Session):
		return errAttribute("subject is not a token")
	case !validULID(e.Birth):
		return errAttribute("birth is not a ULID")
	case !ValidToken(e.Actor):
		return errAttribute("actor is not a token")
	case e.Seq == 0:
		return errAttribute("seq is missing")
	case e.Time.IsZero():
		return errAttribute("time is missing")
	}
	return nil
}

// errAttribute says what is wrong with the envelope.
type errAttribute string

func (e errAttribute) Error() string { return string(e) }
