package events_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"culm/events"
)

// stored is one record of a log as an auditor reads it.
type stored struct {
	at uint64
	b  []byte
}

// chain writes n events above base, as a writer does.
func chain(t testing.TB, session, birth string, base uint64, n int) (log []stored) {
	t.Helper()
	head := events.Head{Seq: base}
	for i := range n {
		e := sampleEvent(events.MessageSubmitted{UserMessage: events.UserMessage{Content: fmt.Sprint(i)}, Role: "user"})
		e.Session, e.Birth, e.Seq, e.Prevhash = session, birth, head.Seq+1, head.Hash
		id, err := events.NextID(head.ID, e.Time.Add(-time.Duration(i)*time.Minute), [10]byte{})
		if err != nil {
			t.Fatal(err)
		}
		e.ID = id
		b := mustEncode(t, e)
		log = append(log, stored{e.Seq, b})
		head = head.Next(&e, b)
	}
	return log
}

// audit is a reader: it returns the position of the first fault, and the fault.
func audit(head events.Head, log []stored) (uint64, error) {
	for _, r := range log {
		e, err := events.Decode(r.b)
		if err == nil {
			err = head.Check(&e, r.at)
		}
		if err != nil {
			return r.at, err
		}
		head = head.Next(&e, r.b)
	}
	return 0, nil
}

// change re-encodes record i with the event changed and nothing else.
func change(t *testing.T, log []stored, i int, edit func(*events.Event)) []stored {
	t.Helper()
	e, err := events.Decode(log[i].b)
	if err != nil {
		t.Fatal(err)
	}
	edit(&e)
	log[i].b = mustEncode(t, e)
	return log
}

// TestHead_NamesEachFault: an auditor says what happened to the log, not only
// that something did. at is where the fault shows.
func TestHead_NamesEachFault(t *testing.T) {
	t.Parallel()
	const birth, otherBirth = sampleBirth, "01KB9ZQ111T8QW2X4Y6Z7A8B9C"
	session := events.Head{Session: "S"}
	tests := []struct {
		name   string
		damage func(*testing.T, []stored) []stored
		head   events.Head
		at     uint64
		fault  error
	}{
		{name: "intact", head: session},
		{name: "a byte changed", head: session, at: 5, fault: events.ErrHash, damage: func(t *testing.T, l []stored) []stored {
			return change(t, l, 3, func(e *events.Event) { e.Actor = "runner-2" })
		}},
		{name: "first event changed", head: session, at: 2, fault: events.ErrHash, damage: func(t *testing.T, l []stored) []stored {
			return change(t, l, 0, func(e *events.Event) { e.Actor = "runner-2" })
		}},
		{name: "one missing", head: session, at: 5, fault: events.ErrGap, damage: func(_ *testing.T, l []stored) []stored { return slices.Delete(l, 3, 4) }},
		{name: "the first missing", head: session, at: 2, fault: events.ErrGap, damage: func(_ *testing.T, l []stored) []stored { return l[1:] }},
		{name: "one doubled", head: session, at: 5, fault: events.ErrDoubled, damage: func(_ *testing.T, l []stored) []stored {
			l = slices.Insert(l, 4, l[3])
			for i := range l {
				l[i].at = uint64(i + 1)
			}
			return l
		}},
		{name: "one delivered twice", head: session, at: 4, fault: events.ErrDoubled, damage: func(_ *testing.T, l []stored) []stored { return slices.Insert(l, 4, l[3]) }},
		{name: "two writers at one sequence", head: session, at: 5, fault: events.ErrDoubled, damage: func(t *testing.T, l []stored) []stored {
			return change(t, l, 4, func(e *events.Event) { e.Seq = 4 })
		}},
		{name: "two swapped", head: session, at: 4, fault: events.ErrOrder, damage: func(_ *testing.T, l []stored) []stored {
			l[3].b, l[4].b = l[4].b, l[3].b
			return l
		}},
		{name: "an old one again", head: session, at: 6, fault: events.ErrOrder, damage: func(_ *testing.T, l []stored) []stored { return append(l, stored{6, l[1].b}) }},
		{name: "read backwards", head: session, at: 1, fault: events.ErrOrder, damage: func(_ *testing.T, l []stored) []stored { return append(l, l[0]) }},
		{name: "of a later life", head: session, at: 6, fault: events.ErrBirth, damage: func(t *testing.T, l []stored) []stored {
			return append(l, chain(t, "S", otherBirth, 5, 1)...)
		}},
		{name: "of another session", head: session, at: 6, fault: events.ErrBirth, damage: func(t *testing.T, l []stored) []stored {
			return append(l, chain(t, "T", birth, 5, 1)...)
		}},
		{name: "all of another session", head: events.Head{Session: "T"}, at: 1, fault: events.ErrBirth},
		{name: "moved up", head: session, at: 8, fault: events.ErrPosition, damage: func(_ *testing.T, l []stored) []stored { l[4].at = 8; return l }},
		{name: "all moved up", head: session, at: 8, fault: events.ErrPosition, damage: func(_ *testing.T, l []stored) []stored {
			for i := range l {
				l[i].at += 7
			}
			return l
		}},
		{name: "id goes back", head: session, at: 5, fault: events.ErrIDOrder, damage: func(t *testing.T, l []stored) []stored {
			return change(t, l, 4, func(e *events.Event) { e.ID = sampleBirth })
		}},
		{name: "an id twice", head: session, at: 5, fault: events.ErrIDOrder, damage: func(t *testing.T, l []stored) []stored {
			former, err := events.Decode(l[3].b)
			if err != nil {
				t.Fatal(err)
			}
			return change(t, l, 4, func(e *events.Event) { e.ID = former.ID })
		}},
		{name: "second life begins too low", head: events.Head{Session: "S", Seq: 5}, at: 1, fault: events.ErrOrder},
		{name: "second life begins too high", head: events.Head{Session: "S", Seq: 5}, at: 9, fault: events.ErrGap, damage: func(t *testing.T, _ []stored) []stored {
			return chain(t, "S", otherBirth, 8, 2)
		}},
		{name: "second life", head: events.Head{Session: "S", Seq: 5}, damage: func(t *testing.T, _ []stored) []stored { return chain(t, "S", otherBirth, 5, 3) }},
		{name: "second life, former one not known", damage: func(t *testing.T, _ []stored) []stored { return chain(t, "S", otherBirth, 5, 3) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := chain(t, "S", birth, 0, 5)
			if tt.damage != nil {
				log = tt.damage(t, log)
			}
			at, err := audit(tt.head, log)
			if at != tt.at || !errors.Is(err, tt.fault) {
				t.Errorf("at %d: %v, want at %d: %v", at, err, tt.at, tt.fault)
			}
		})
	}
}

// TestHead_NoticesEveryByte: whatever byte is changed, the log does not pass.
func TestHead_NoticesEveryByte(t *testing.T) {
	t.Parallel()
	log := chain(t, "S", sampleBirth, 0, 3)
	for i := range log[1].b {
		damaged := slices.Clone(log)
		damaged[1].b = slices.Clone(log[1].b)
		damaged[1].b[i] ^= 1
		if _, err := audit(events.Head{Session: "S"}, damaged); err == nil {
			t.Fatalf("byte %d (%q) may change", i, log[1].b[i])
		}
	}
}

// TestNextID_IncreasesWhateverTheClockDoes: the clock jumps within one
// millisecond, stands still, and goes back and forth by an hour.
func TestNextID_IncreasesWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		jump := rapid.OneOf(rapid.Just(0), rapid.IntRange(-1000, 1000), rapid.IntRange(-3600_000_000, 3600_000_000))
		entropy := rapid.SliceOfN(rapid.OneOf(rapid.Just(byte(255)), rapid.Byte()), 10, 10)
		last := ""
		for range rapid.IntRange(2, 50).Draw(t, "n") {
			now = now.Add(time.Duration(jump.Draw(t, "jump")) * time.Microsecond)
			id, err := events.NextID(last, now, [10]byte(entropy.Draw(t, "entropy")))
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := ulid.ParseStrict(id)
			if id <= last || len(id) != 26 || err != nil || parsed.String() != id {
				t.Fatalf("%q after %q: %v", id, last, err)
			}
			if last == "" && parsed.Time() != uint64(now.UnixMilli()) {
				t.Fatalf("the first id does not carry the time")
			}
			last = id
		}
	})
}

func TestNextID_Edges(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	full := [10]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
	last, err := events.NextID("", now, full)
	if err != nil {
		t.Fatal(err)
	}
	next, err := events.NextID(last, now, full) // carries into the time
	if err != nil || next <= last || next[10:] != "0000000000000000" {
		t.Errorf("%s after %s: %v", next, last, err)
	}
	if id, err := events.NextID("", time.Unix(-1, 0), [10]byte{}); id != "00000000000000000000000000" || err != nil {
		t.Errorf("before 1970: %s, %v", id, err)
	}
	for name, f := range map[string]func() (string, error){
		"highest":    func() (string, error) { return events.NextID("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", now, full) },
		"no ULID":    func() (string, error) { return events.NextID("zzz", now, full) },
		"lower case": func() (string, error) { return events.NextID("01kb9zq3v5t8qw2x4y6z7a8b9c", now, full) },
		"far future": func() (string, error) { return events.NextID("", time.Date(10890, 1, 1, 0, 0, 0, 0, time.UTC), full) },
	} {
		if id, err := f(); err == nil {
			t.Errorf("%s: %s", name, id)
		}
	}
}

func TestCommandDigest_SeparatesSubjectAndBody(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range [][2]string{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"a", "b "}, {"b", "a"}} {
		seen[events.CommandDigest(c[0], []byte(c[1]))] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d digests of 5 commands", len(seen))
	}
	if got := events.CommandDigest("s", []byte("{}")); got != events.Hash([]byte("s\x00{}")) {
		t.Errorf("digest is %s", got)
	}
}
