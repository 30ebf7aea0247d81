package bus

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/events"
)

// Headers of a command.
const (
	HeaderCommandID   = "Nats-Msg-Id"            // of a command that is answered
	HeaderLaterID     = "Culm-Command-Id"        // of a queued command
	HeaderExpected    = "Culm-Expected-Sequence" // decimal
	HeaderTraceparent = "traceparent"            // W3C trace context
)

const policyNoun = "policy."

// decodeCommand turns a message into a request. The subject is of kind cmd or
// later; both give the same digest, so that a command sent one way and again
// the other way is the same command. With an error, the request holds what
// could be trusted of session, actor and id, for the refusal. The codes are
// invalid_token, unknown_command, invalid_command and invalid_json.
func (s Subjects) decodeCommand(k kind, subject string, h nats.Header, body []byte) (aggregate.Request, *aggregate.Error) {
	var r aggregate.Request
	if e := s.decodeAddress(k, subject, &r); e != nil {
		return r, e
	}
	if e := decodeHeaders(k, h, &r); e != nil {
		return r, e
	}
	if err := checkObject(body); err != nil {
		return r, refuse(aggregate.CodeInvalidJSON, "the body is not one JSON object: %v", err)
	}
	if k != kindCmd {
		subject = s.Command(r.Actor, r.Session, r.Name)
	}
	r.Digest, r.Body = events.CommandDigest(subject, body), body
	return r, nil
}

// decodeAddress checks the tokens of the subject, from left to right.
func (s Subjects) decodeAddress(k kind, subject string, r *aggregate.Request) *aggregate.Error {
	actor, session, name := s.split(k, subject)
	if !ValidToken(actor) || ReservedToken(actor) {
		return refuse(aggregate.CodeInvalidToken, "the actor is no valid token, or reserved")
	}
	r.Actor = actor
	if !ValidToken(session) {
		return refuse(aggregate.CodeInvalidToken, "the session is no valid token")
	}
	r.Session = session
	if ReservedToken(session) && (session != SettingsSession || !strings.HasPrefix(name, policyNoun)) {
		return refuse(aggregate.CodeInvalidToken, "the session is reserved")
	}
	if !ValidName(name) {
		return refuse(aggregate.CodeUnknownCommand, "the subject does not end in <noun>.<verb>")
	}
	r.Name = name
	return nil
}

// decodeHeaders reads the headers that mean something; others are nobody's.
func decodeHeaders(k kind, h nats.Header, r *aggregate.Request) *aggregate.Error {
	if len(h) == 0 {
		return nil
	}
	if e := misspelt(h); e != nil {
		return e
	}
	idHeader, other, what := HeaderCommandID, HeaderLaterID, "a command that is answered"
	if k == kindLater {
		idHeader, other, what = HeaderLaterID, HeaderCommandID, "a queued command"
	}
	if _, found := h[other]; found {
		return refuse(aggregate.CodeInvalidCommand, "%s carries its id as %s, not as %s", what, idHeader, other)
	}
	if v, found := h[idHeader]; found {
		if len(v) != 1 || !aggregate.ValidCommandID(v[0]) {
			return refuse(aggregate.CodeInvalidCommand, "%s is not one command id of 1 to %d printable ASCII characters", idHeader, aggregate.MaxCommandID)
		}
		r.ID = v[0]
	}
	if v, found := h[HeaderExpected]; found {
		seq, ok := parseSequence(v)
		if !ok {
			return refuse(aggregate.CodeInvalidCommand, "%s is not one decimal sequence", HeaderExpected)
		}
		r.Expected = &seq
	}
	if v := h[HeaderTraceparent]; len(v) == 1 {
		r.Traceparent = aggregate.CleanTraceparent(v[0])
	}
	return nil
}

// parseSequence reads a header value of digits only.
func parseSequence(values []string) (uint64, bool) {
	if len(values) != 1 {
		return 0, false
	}
	seq, err := strconv.ParseUint(values[0], 10, 64)
	return seq, err == nil
}

// decodeRead turns a message into a read; an empty body asks for everything.
func (s Subjects) decodeRead(subject string, body []byte) (session string, q aggregate.ReadQuery, e *aggregate.Error) {
	session, ok := s.ParseRead(subject)
	if !ok {
		return "", q, refuse(aggregate.CodeInvalidToken, "the subject does not end in one session")
	}
	if ReservedToken(session) && session != SettingsSession {
		return session, q, refuse(aggregate.CodeInvalidToken, "the session is reserved")
	}
	if len(body) == 0 {
		return session, q, nil
	}
	if err := checkObject(body); err != nil {
		return session, q, refuse(aggregate.CodeInvalidJSON, "the body is not one JSON object: %v", err)
	}
	if err := events.UnmarshalStrict(body, &q); err != nil {
		return session, q, refuse(aggregate.CodeInvalidCommand, "the body is no read: %v", err)
	}
	return session, q, nil
}

var (
	errEmptyBody = errors.New("it is empty")
	errNoObject  = errors.New("it is another kind of value")
)

// syntaxOnly lets the decoder check a value without keeping any of it.
type syntaxOnly struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*syntaxOnly) UnmarshalJSON([]byte) error { return nil }

// checkObject says what keeps b from being exactly one well-formed JSON object
// as events.UnmarshalStrict understands it.
func checkObject(b []byte) error {
	if err := events.UnmarshalStrict(b, new(syntaxOnly)); err != nil {
		if len(b) == 0 {
			return errEmptyBody
		}
		return err
	}
	if bytes.TrimLeft(b, " \t\r\n")[0] != '{' {
		return errNoObject
	}
	return nil
}

func refuse(code, format string, args ...any) *aggregate.Error {
	return &aggregate.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
