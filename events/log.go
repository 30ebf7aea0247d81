package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// What can go wrong with a Log, by what the caller should do.
var (
	// ErrNotFound: no such session, or one that holds no event yet.
	ErrNotFound = errors.New("session_not_found")
	// ErrUnavailable: nothing is known to be stored; the same append may be tried again.
	ErrUnavailable = errors.New("unavailable")
	// ErrTooLarge: the event with its headers exceeds what the server takes.
	ErrTooLarge = errors.New("payload_too_large")
	// ErrBirthChanged: the session's log is that of another life.
	ErrBirthChanged = errors.New("birth_changed")
)

// WrongSequenceError: the log did not end where the writer thought; nothing
// was stored. Read on from Expected, fold, decide again.
type WrongSequenceError struct {
	Session  string
	Expected uint64
}

func (e *WrongSequenceError) Error() string {
	return fmt.Sprintf("append %s@%d: wrong expected sequence", e.Session, e.Expected)
}

// LostError: the store knows of events at the end of a session's log that it
// cannot give any more. Nothing can be appended after them.
type LostError struct {
	Session     string
	First, Last uint64 // sequences that are gone
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the store of %s has lost events %d to %d, the end of the log: put its stream back from a copy", e.Session, e.First, e.Last)
}

// IsLost says that err is a *LostError, or wraps one.
func IsLost(err error) bool {
	_, lost := errors.AsType[*LostError](err)
	return lost
}

// Record is one stored event as it lies in the log.
type Record struct {
	Session string
	Seq     uint64 // 1-based
	Type    string // from the subject it is stored under
	Payload []byte // exactly the stored bytes; must not be changed
}

// Info describes one session that a Log holds.
type Info struct {
	Session           string
	FirstSeq, LastSeq uint64
	Lost              uint64 // events between the two that the store cannot give any more
}

// Log is an append-only log for each session. All methods are safe for
// concurrent use. Implementations: bus (JetStream) and Mem (tests).
type Log interface {
	// Create makes the session's log if there is none, and returns the sequence
	// that its first event must expect: 0, or for an id that was deleted before
	// one above the last sequence of its former life, so that no writer who knew
	// that life can ever fit. Creating twice changes nothing.
	Create(ctx context.Context, session string) (expected uint64, err error)
	// Append stores the payload as the event after expected and returns once
	// the store has acknowledged it. A lost acknowledgement is resolved by
	// reading back, so it returns nil exactly if the payload is stored at
	// expected+1. It returns *WrongSequenceError if something else is there or
	// the log is shorter, ErrNotFound if there is no such log, ErrTooLarge,
	// *LostError, or ErrUnavailable if the outcome could not be learned before
	// ctx ended.
	Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error
	// Last is the sequence of the session's last event, read from the leader:
	// no later event existed when the call began. ErrNotFound if there is none.
	Last(ctx context.Context, session string) (uint64, error)
	// Read yields the events with sequence > after and <= through (0: all that
	// were there when the call began), in order. The error, if any, comes last;
	// reading all from the beginning (0, 0) ends with *LostError where the store
	// has lost the end.
	Read(ctx context.Context, session string, after, through uint64) iter.Seq2[Record, error]
	// Sessions lists all sessions that hold an event, sorted by name.
	Sessions(ctx context.Context) ([]Info, error)
	// Fits returns ErrTooLarge for an event that Append would refuse so, without
	// asking the server.
	Fits(session string, expected uint64, eventType string, payload []byte) error
	// Delete removes the session's log; what is left is its last sequence, for
	// Create, and its birth. It first closes the log to writers, so that no
	// append can be lost in between; interrupted, it may be called again. A log
	// whose first event has another birth stays: ErrBirthChanged. The empty
	// birth stands for whatever log is there.
	Delete(ctx context.Context, session, birth string) error
}

// Barrier makes appends durable. A ticket stands for everything that was
// acknowledged before Mark was called.
type Barrier interface {
	// Mark returns the ticket of a sync that begins after this call.
	Mark() uint64
	// Then calls done exactly once: with nil when the ticket's sync has ended
	// well, else with the error that ended all syncs. It does so from another
	// goroutine, or before it returns if that is known already.
	Then(ticket uint64, done func(error))
}

// Feed follows the live events of all sessions.
type Feed interface {
	// Follow calls handle for every event stored after the call began, of
	// sessions in any interleaving but in sequence, without gaps, within each:
	// what the live feed drops is read from the log. For sessions in from it
	// starts after the given sequence, for others with their first event if
	// all is set. It returns when ctx ends or the server is lost for good.
	// caughtUp, if not nil, is called once the backlog has been handed over.
	Follow(ctx context.Context, opts FollowOptions, handle func(Record) error) error
}

// FollowOptions choose where Follow begins.
type FollowOptions struct {
	Session  string            // only this session; "" for all
	From     map[string]uint64 // session -> sequence that is known already
	All      bool              // begin unknown sessions with their first event, else with what is new
	CaughtUp func()
}
