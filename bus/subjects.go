package bus

import (
	"errors"
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/events"
)

const (
	// DefaultPrefix begins every subject unless another prefix is configured.
	DefaultPrefix = "agent"
	// SettingsSession holds the installation's policy.
	SettingsSession = aggregate.SettingsSession

	maxPrefix = 128 // bytes, so that a whole subject stays far below the server's line limit
)

var (
	// ErrInvalidToken: a name that cannot be a token of a subject here.
	ErrInvalidToken = errors.New("invalid_token")
	// ErrInvalidPrefix: a prefix that is not made of valid, unreserved tokens.
	ErrInvalidPrefix = errors.New("invalid subject prefix")
)

// ValidToken reports whether s matches [A-Za-z0-9_-]{1,64}.
func ValidToken(s string) bool { return events.ValidToken(s) }

// ReservedToken reports whether s, as actor or session, is the engine's own.
func ReservedToken(s string) bool { return events.ReservedToken(s) }

// ValidName reports whether s is noun.verb, both valid tokens.
func ValidName(s string) bool {
	noun, verb, ok := strings.Cut(s, ".")
	return ok && ValidToken(noun) && ValidToken(verb)
}

// Subjects builds and parses the subjects of one installation. The zero value
// uses DefaultPrefix. The building methods trust their arguments: callers
// check tokens first, with ValidToken and ValidName.
type Subjects struct{ prefix string }

// NewSubjects checks the prefix, one or more tokens joined by dots. It returns
// ErrInvalidPrefix for anything else and for a token that begins with "_": a
// prefix under _INBOX would let replies land in a log.
func NewSubjects(prefix string) (Subjects, error) {
	if len(prefix) > maxPrefix {
		return Subjects{}, fmt.Errorf("%w: longer than %d bytes", ErrInvalidPrefix, maxPrefix)
	}
	for token := range strings.SplitSeq(prefix, ".") {
		if !ValidToken(token) || ReservedToken(token) {
			return Subjects{}, fmt.Errorf("%w: %q", ErrInvalidPrefix, prefix)
		}
	}
	return Subjects{prefix: prefix}, nil
}

// Prefix is what every subject begins with, without the dot after it.
func (s Subjects) Prefix() string {
	if s.prefix == "" {
		return DefaultPrefix
	}
	return s.prefix
}

// kind is the token after the prefix.
type kind string

const (
	kindCmd     kind = "cmd"
	kindLater   kind = "later"
	kindRefused kind = "refused"
	kindLog     kind = "log"
	kindEvent   kind = "event"
	kindDelta   kind = "delta"
	kindRead    kind = "read"
	kindQuery   kind = "query"
)

func (s Subjects) join(k kind, rest string) string {
	return s.Prefix() + "." + string(k) + "." + rest
}

// rest is what follows prefix and kind in the subject.
func (s Subjects) rest(k kind, subject string) (string, bool) {
	after, ok := strings.CutPrefix(subject, s.Prefix())
	if !ok || len(after) < len(k)+3 || after[0] != '.' || after[1:1+len(k)] != string(k) || after[1+len(k)] != '.' {
		return "", false
	}
	return after[len(k)+2:], true
}

// Command is the subject of a command that is answered.
func (s Subjects) Command(actor, session, name string) string {
	return s.join(kindCmd, actor+"."+session+"."+name)
}

// Later is the subject of the same command, queued.
func (s Subjects) Later(actor, session, name string) string {
	return s.join(kindLater, actor+"."+session+"."+name)
}

// Refused is where the refusal of a queued command is published.
func (s Subjects) Refused(actor, session, name string) string {
	return s.join(kindRefused, actor+"."+session+"."+name)
}

// Log is the subject under which an event is stored.
func (s Subjects) Log(session, eventType string) string {
	return s.join(kindLog, session+"."+eventType)
}

// Event is the subject under which a stored event is seen live.
func (s Subjects) Event(session, eventType string) string {
	return s.join(kindEvent, session+"."+eventType)
}

// Delta is the subject of what a run streams and nobody stores.
func (s Subjects) Delta(session, run string) string {
	return s.join(kindDelta, session+"."+run)
}

// Read is the subject of strongly consistent reads of a session.
func (s Subjects) Read(session string) string { return s.join(kindRead, session) }

// Query is the subject of a projector's query.
func (s Subjects) Query(view, verb string) string { return s.join(kindQuery, view+"."+verb) }
