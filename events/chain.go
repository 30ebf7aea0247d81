package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Head is the end of a session's log as a writer or reader knows it. The zero
// value is the empty log; a log created again after a deletion starts at
// Head{Seq: last sequence of the deleted one}.
type Head struct {
	Seq     uint64 // last sequence, 0 for none
	Hash    string // hex SHA-256 of the last stored payload, "" for none
	ID      string // id of the last event, "" for none
	Birth   string // birth of the session, "" for none
	Session string // token of the session; "" leaves it unchecked
}

// Next is the head after the event was stored as these bytes.
func (h Head) Next(e *Event, stored []byte) Head {
	return Head{Seq: e.Seq, Hash: Hash(stored), ID: e.ID, Birth: e.Birth, Session: e.Session}
}

// Hash is the lower-case hex SHA-256 of b.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// CommandDigest is what two commands with one id are compared by: the hex
// SHA-256 of the subject, a zero byte and the body.
func CommandDigest(subject string, body []byte) string {
	var room [1024]byte // most commands fit, and nothing is allocated for them
	b := append(room[:0], subject...)
	b = append(b, 0)
	return Hash(append(b, body...))
}

// Chain faults, by what an auditor would say happened.
var (
	ErrGap      = errors.New("missing_event")      // a sequence was passed over
	ErrDoubled  = errors.New("doubled_event")      // an event that was there already
	ErrOrder    = errors.New("event_out_of_order") // an earlier event, or a later one in its place
	ErrHash     = errors.New("changed_event")      // the previous payload is not the one hashed here
	ErrBirth    = errors.New("foreign_event")      // an event of another lifetime or session
	ErrIDOrder  = errors.New("id_out_of_order")    // ids do not increase
	ErrPosition = errors.New("wrong_position")     // seq attribute differs from the stored sequence
)

// Check says whether the event, stored at sequence at, continues the log that
// ends in h. It returns one of the chain faults, wrapped, or nil. Of several
// faults it names the one that explains the others; a changed event shows at
// its successor, so ErrHash speaks of the event before this one.
func (h Head) Check(e *Event, at uint64) error {
	if h.Session != "" && e.Session != h.Session {
		return fmt.Errorf("%w: event of session %s in session %s", ErrBirth, e.Session, h.Session)
	}
	if h.Hash == "" {
		return h.checkFirst(e, at)
	}
	if e.Birth != h.Birth {
		return fmt.Errorf("%w: birth %s in the session born %s", ErrBirth, e.Birth, h.Birth)
	}
	if err := h.checkSequence(e.Seq, at); err != nil {
		return err
	}
	if e.Prevhash != h.Hash {
		return fmt.Errorf("%w: event %d is not the one that %d was chained to", ErrHash, h.Seq, at)
	}
	if e.ID <= h.ID {
		return fmt.Errorf("%w: %s after %s", ErrIDOrder, e.ID, h.ID)
	}
	return nil
}

// checkFirst holds for the first event of a lifetime, which may lie above 1.
func (h Head) checkFirst(e *Event, at uint64) error {
	switch {
	case e.Prevhash != "":
		return fmt.Errorf("%w: %d follows an event that is not there", ErrGap, e.Seq)
	case e.Seq != at:
		return fmt.Errorf("%w: seq %d is stored at %d", ErrPosition, e.Seq, at)
	case h.Seq != 0 && at <= h.Seq:
		return fmt.Errorf("%w: %d begins a log above %d", ErrOrder, at, h.Seq)
	case h.Seq != 0 && at > h.Seq+1:
		return fmt.Errorf("%w: %d begins a log above %d", ErrGap, at, h.Seq)
	}
	return nil
}

func (h Head) checkSequence(seq, at uint64) error {
	next := h.Seq + 1
	switch {
	case seq == h.Seq:
		return fmt.Errorf("%w: %d, the second time at %d", ErrDoubled, seq, at)
	case seq < h.Seq:
		return fmt.Errorf("%w: %d after %d", ErrOrder, seq, h.Seq)
	case seq > next && at == next:
		return fmt.Errorf("%w: %d stands in the place of %d", ErrOrder, seq, at)
	case seq > next && at == seq:
		return fmt.Errorf("%w: %d follows %d", ErrGap, seq, h.Seq)
	case seq != at:
		return fmt.Errorf("%w: seq %d is stored at %d", ErrPosition, seq, at)
	}
	return nil
}

// NextID is the ULID of the next event: the given time and entropy, unless
// that would not sort after last; then last plus one. So ids increase within a
// session even while clocks go back. last may be ""; it returns an error if last is
// no ULID in its canonical spelling, the highest ULID, or now lies after 10889.
func NextID(last string, now time.Time, entropy [10]byte) (string, error) {
	var id ulid.ULID
	if last != "" && !validULID(last) {
		return "", fmt.Errorf("last id %q is not a ULID", last)
	}
	if err := id.SetTime(uint64(max(now.UnixMilli(), 0))); err != nil {
		return "", fmt.Errorf("ulid time: %w", err)
	}
	if err := id.SetEntropy(entropy[:]); err != nil {
		return "", fmt.Errorf("ulid entropy: %w", err)
	}
	if s := id.String(); s > last {
		return s, nil
	}
	prev, err := ulid.ParseStrict(last)
	if err != nil {
		return "", fmt.Errorf("last id %q: %w", last, err)
	}
	for i := len(prev) - 1; i >= 0; i-- {
		if prev[i]++; prev[i] != 0 {
			return prev.String(), nil
		}
	}
	return "", fmt.Errorf("last id %q: no id sorts after it", last)
}
