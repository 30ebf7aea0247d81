package aggregate

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is one command as it came in, its subject already taken apart.
type Request struct {
	Actor   string // token of the subject: who speaks
	Session string // token of the subject
	Name    string // noun.verb
	// ID is the command id the client chose, or "": then the engine mints one
	// and a retry is a new command.
	ID string
	// Digest is events.CommandDigest of subject and body.
	Digest string
	// Expected is the session sequence that the client has seen, or nil.
	Expected    *uint64
	Traceparent string
	Body        []byte // one JSON object
}

// Reply answers a Request. Its JSON is docs/contract.md, "Replies".
type Reply struct {
	OK       bool   `json:"ok"`
	Session  string `json:"session"`
	Command  string `json:"command,omitzero"`
	Sequence uint64 `json:"sequence"` // the session's last sequence after the command
	// Duplicate marks the repeated first outcome of a command id.
	Duplicate bool `json:"duplicate,omitzero"`
	// Event is what was appended; null when the effect already held.
	Event  *EventRef      `json:"event"`
	Result jsontext.Value `json:"result,omitzero"` // object, with OK
	Error  *Error         `json:"error,omitzero"`  // without OK
}

// EventRef names an appended event.
type EventRef struct {
	Sequence uint64 `json:"sequence"`
	Type     string `json:"type"`
}

// Error is a refusal as clients see it.
type Error struct {
	Code    string         `json:"code"` // of docs/contract.md, "Error codes"
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

// ReadQuery is the body of a strongly consistent read.
type ReadQuery struct {
	AtSequence   *uint64      `json:"at_sequence,omitzero"` // fold up to here; all if absent
	Transcript   bool         `json:"transcript,omitzero"`
	AfterMessage string       `json:"after_message,omitzero"` // page of the transcript after this message id
	Events       *EventsQuery `json:"events,omitzero"`
}

// EventsQuery asks for stored events instead of the folded state.
type EventsQuery struct {
	After uint64 `json:"after,omitzero"` // sequence
	Limit int    `json:"limit,omitzero"` // 1..1000, 0 means 100
}

// ReadReply answers a ReadQuery.
type ReadReply struct {
	OK       bool             `json:"ok"`
	Session  string           `json:"session"`
	Birth    string           `json:"birth,omitzero"`
	Sequence uint64           `json:"sequence"`
	HeadHash string           `json:"head_hash,omitzero"`
	State    jsontext.Value   `json:"state,omitzero"`
	Events   []jsontext.Value `json:"events,omitzero"`
	Next     jsontext.Value   `json:"next,omitzero"` // cursor of the next page: a message id or a sequence
	Error    *Error           `json:"error,omitzero"`
}

// Service is what a front door (bus) drives; Handler implements it.
type Service interface {
	// Handle judges one command and calls done exactly once, possibly before it
	// returns and possibly from another goroutine, when the outcome is known
	// and durable. Commands of one session are judged in the order of the calls.
	Handle(ctx context.Context, r Request, done func(Reply))
	// Read answers a read; done is called exactly once, as in Handle.
	Read(ctx context.Context, session string, q ReadQuery, done func(ReadReply))
}

// Leases say which runs are believed alive. They may be wrong: safety rests on
// the fence and the expected sequence alone (docs/rules.md#lease).
type Leases interface {
	// Duration is how long a lease lasts after Renew.
	Duration() time.Duration
	// Renew grants or prolongs the lease of the session's run.
	Renew(ctx context.Context, session, run string) error
	// Alive reports whether the run's lease has not run out.
	Alive(ctx context.Context, session, run string) (bool, error)
	// Release gives the session's lease back; without one it does nothing.
	Release(ctx context.Context, session string) error
}

// Clock gives the time of events; tests replace it.
type Clock func() time.Time
