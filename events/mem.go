package events

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Mem is a Log and Feed in memory, for tests and simulations. It keeps the
// promises of both, and breaks down where it is told to (FailAppends,
// SetUnavailable, SetMaxPayload, Rewrite). It is safe for concurrent use.
type Mem struct {
	mu          sync.Mutex
	logs        map[string]*memLog
	feed        []Record      // all appends of all sessions, in order
	grown       chan struct{} // closed, and replaced, when feed has grown
	appends     uint64
	fault       func(AppendCall) Fault
	unavailable bool
	maxPayload  int
}

var (
	_ Log  = (*Mem)(nil)
	_ Feed = (*Mem)(nil)
)

// memLog is one session's log, or what its deletion left.
type memLog struct {
	deleted bool
	base    uint64 // sequence before the first event of this life
	records []Record
}

func (l *memLog) last() uint64 {
	if n := len(l.records); n > 0 {
		return l.records[n-1].Seq
	}
	return l.base
}

// holds says whether the payload is what is stored at seq.
func (l *memLog) holds(seq uint64, payload []byte) bool {
	for _, r := range slices.Backward(l.records) {
		if r.Seq <= seq {
			return r.Seq == seq && bytes.Equal(r.Payload, payload)
		}
	}
	return false
}

// between returns the records with sequence > after and <= through; 0 is all.
func (l *memLog) between(after, through uint64) []Record {
	end := len(l.records)
	for through > 0 && end > 0 && l.records[end-1].Seq > through {
		end--
	}
	start := end
	for start > 0 && l.records[start-1].Seq > after {
		start--
	}
	return slices.Clone(l.records[start:end])
}

// NewMem returns an empty log.
func NewMem() *Mem {
	return &Mem{logs: map[string]*memLog{}, grown: make(chan struct{})}
}

// Fault is what happens to one append.
type Fault int

const (
	// FaultNone lets the append through.
	FaultNone Fault = iota
	// FaultBefore answers ErrUnavailable and stores nothing.
	FaultBefore
	// FaultAfter stores the event and answers ErrUnavailable: the lost
	// acknowledgement.
	FaultAfter
)

// AppendCall describes one call of Append to a fault function.
type AppendCall struct {
	N        uint64 // number of the call over all sessions, 1-based
	Session  string
	Expected uint64
	Type     string
}

// FailAppends asks fault about every further append; nil ends that. fault is
// called before the append is judged, without locks held: it may block, and it
// may use the Mem, so as to let another writer in between. It must be safe for
// concurrent use if appends are concurrent.
func (m *Mem) FailAppends(fault func(AppendCall) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// FailNth is a fault function: append number n fails as f, all others pass.
func FailNth(n uint64, f Fault) func(AppendCall) Fault {
	return func(c AppendCall) Fault {
		if c.N == n {
			return f
		}
		return FaultNone
	}
}

// Appends is the number of calls of Append so far.
func (m *Mem) Appends() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends
}

// SetUnavailable makes every call of the Log answer ErrUnavailable until it is
// set back. Followers just see nothing new.
func (m *Mem) SetUnavailable(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unavailable = down
}

// SetMaxPayload makes Append refuse longer payloads with ErrTooLarge; 0 is no limit.
func (m *Mem) SetMaxPayload(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maxPayload = n
}

// Rewrite replaces what a session's log holds, as no writer can: for tests of
// readers that look for damage. Followers are not told.
func (m *Mem) Rewrite(session string, change func([]Record) []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.logs[session]; l != nil {
		l.records = change(slices.Clone(l.records))
	}
}

// Create implements Log. It refuses a session that is no token.
func (m *Mem) Create(ctx context.Context, session string) (uint64, error) {
	if !ValidToken(session) {
		return 0, fmt.Errorf("create %q: the session is no token", session)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx); err != nil {
		return 0, fmt.Errorf("create %s: %w", session, err)
	}
	l := m.logs[session]
	if l == nil {
		l = &memLog{}
		m.logs[session] = l
	}
	l.deleted = false
	return l.base, nil
}

// Append implements Log.
func (m *Mem) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	fault := m.nextFault(session, expected, eventType)
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.check(ctx)
	if err == nil && fault == FaultBefore {
		err = ErrUnavailable
	}
	if err == nil {
		err = m.append(session, expected, eventType, payload)
	}
	if err == nil && fault == FaultAfter {
		err = ErrUnavailable
	}
	if err != nil {
		return fmt.Errorf("append %s@%d: %w", session, expected, err)
	}
	return nil
}

func (m *Mem) nextFault(session string, expected uint64, eventType string) Fault {
	m.mu.Lock()
	m.appends++
	call := AppendCall{N: m.appends, Session: session, Expected: expected, Type: eventType}
	fault := m.fault
	m.mu.Unlock()
	if fault == nil {
		return FaultNone
	}
	return fault(call)
}

func (m *Mem) append(session string, expected uint64, eventType string, payload []byte) error {
	l := m.logs[session]
	switch {
	case l == nil || l.deleted:
		return ErrNotFound
	case m.tooLarge(payload) != nil:
		return m.tooLarge(payload)
	case l.holds(expected+1, payload):
		return nil // the acknowledgement of this very append was lost
	case l.last() != expected:
		return &WrongSequenceError{Session: session, Expected: expected}
	}
	r := Record{Session: session, Seq: expected + 1, Type: eventType, Payload: bytes.Clone(payload)}
	l.records = append(l.records, r)
	m.feed = append(m.feed, r)
	close(m.grown)
	m.grown = make(chan struct{})
	return nil
}

func (m *Mem) tooLarge(payload []byte) error {
	if m.maxPayload > 0 && len(payload) > m.maxPayload {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), m.maxPayload)
	}
	return nil
}

// Fits implements Log.
func (m *Mem) Fits(_ string, _ uint64, _ string, payload []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tooLarge(payload)
}

// Last implements Log.
func (m *Mem) Last(ctx context.Context, session string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.find(ctx, session)
	if err != nil {
		return 0, fmt.Errorf("last of %s: %w", session, err)
	}
	return l.last(), nil
}

// Read implements Log. For a session that does not exist or holds nothing its
// error is ErrNotFound.
func (m *Mem) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[Record, error] {
	var records []Record
	m.mu.Lock()
	l, err := m.find(ctx, session)
	if err == nil {
		records = l.between(after, through)
	}
	m.mu.Unlock()
	return func(yield func(Record, error) bool) {
		failed := err
		for _, r := range records {
			if failed = ctx.Err(); failed != nil {
				break
			}
			if !yield(r, nil) {
				return
			}
		}
		if failed != nil {
			yield(Record{}, fmt.Errorf("read %s after %d: %w", session, after, failed))
		}
	}
}

// Sessions implements Log.
func (m *Mem) Sessions(ctx context.Context) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	var out []Info
	for _, session := range slices.Sorted(maps.Keys(m.logs)) {
		if l := m.logs[session]; len(l.records) > 0 {
			out = append(out, Info{Session: session, FirstSeq: l.base + 1, LastSeq: l.last()})
		}
	}
	return out, nil
}

// Delete implements Log. Of a session that is not there it deletes nothing.
func (m *Mem) Delete(ctx context.Context, session, birth string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx); err != nil {
		return fmt.Errorf("delete %s: %w", session, err)
	}
	l := m.logs[session]
	if l == nil || l.deleted {
		return nil
	}
	if birth != "" && l.birth() != birth {
		return fmt.Errorf("delete %s: %w", session, ErrBirthChanged)
	}
	*l = memLog{deleted: true, base: l.last() + 1}
	return nil
}

// birth is that of the first event, "" if it cannot be read.
func (l *memLog) birth() string {
	if len(l.records) == 0 {
		return ""
	}
	e, _ := Decode(l.records[0].Payload)
	return e.Birth
}

// find returns a log that holds an event.
func (m *Mem) find(ctx context.Context, session string) (*memLog, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if l := m.logs[session]; l != nil && len(l.records) > 0 {
		return l, nil
	}
	return nil, ErrNotFound
}

func (m *Mem) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if m.unavailable {
		return ErrUnavailable
	}
	return nil
}
