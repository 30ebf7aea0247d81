// Package logtest is the contract of events.Log as tests. Every implementation
// runs the same suite.
package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"culm/events"
)

// Run tests a Log. open returns a log that holds nothing; it is called once
// for each test of the suite.
func Run(t *testing.T, open func(t *testing.T) events.Log) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, events.Log)
	}{
		{"create is repeatable", testCreate},
		{"names that are no tokens are refused", testNames},
		{"append and read back", testAppendRead},
		{"append again is one event", testAppendTwice},
		{"append refuses a wrong sequence", testWrongSequence},
		{"append needs a log", testAppendWithoutLog},
		{"read bounds", testReadBounds},
		{"read stops when told", testReadStops},
		{"read many", testReadMany},
		{"last of nothing", testLastOfNothing},
		{"sessions are sorted and not empty", testSessions},
		{"delete leaves the last sequence", testDelete},
		{"delete is repeatable", testDeleteTwice},
		{"delete means one life", testDeleteBirth},
		{"what fits is known before", testFits},
		{"one winner for each sequence", testRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

const noted = "note.appended"

// Payload is a test's event n of a session.
func Payload(session string, n uint64) []byte {
	return fmt.Appendf(nil, `{"session":%q,"n":%d}`, session, n)
}

// create makes the session and checks what its first event must expect.
func create(t *testing.T, l events.Log, session string, want uint64) {
	t.Helper()
	got, err := l.Create(t.Context(), session)
	if err != nil || got != want {
		t.Fatalf("Create(%s) = %d, %v; want %d", session, got, err, want)
	}
}

// fill appends events until the session's last sequence is last.
func fill(t *testing.T, l events.Log, session string, after, last uint64) {
	t.Helper()
	for n := after; n < last; n++ {
		if err := l.Append(t.Context(), session, n, noted, Payload(session, n+1)); err != nil {
			t.Fatalf("Append(%s@%d): %v", session, n, err)
		}
	}
}

// read returns the sequences of session s that Read yields, contents checked.
func read(t *testing.T, l events.Log, after, through uint64) []uint64 {
	t.Helper()
	const session = "s"
	var seqs []uint64
	for r, err := range l.Read(t.Context(), session, after, through) {
		if err != nil {
			t.Fatalf("Read(%s, %d, %d): %v", session, after, through, err)
		}
		if r.Session != session || r.Type != noted || !bytes.Equal(r.Payload, Payload(session, r.Seq)) {
			t.Fatalf("Read(%s): record %s %d %s %q", session, r.Session, r.Seq, r.Type, r.Payload)
		}
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func wantSeqs(t *testing.T, got []uint64, first, last uint64) {
	t.Helper()
	if uint64(len(got)) != last+1-first {
		t.Fatalf("%d events, want %d to %d", len(got), first, last)
	}
	for i, seq := range got {
		if seq != first+uint64(i) {
			t.Fatalf("event %d has sequence %d, want %d", i, seq, first+uint64(i))
		}
	}
}

func wantLast(t *testing.T, l events.Log, want uint64) {
	t.Helper()
	const session = "s"
	got, err := l.Last(t.Context(), session)
	if err != nil || got != want {
		t.Fatalf("Last(%s) = %d, %v; want %d", session, got, err, want)
	}
}

func testCreate(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 2)
	create(t, l, "s", 0)
	wantLast(t, l, 2)
}

func testNames(t *testing.T, l events.Log) {
	for _, name := range []string{"", "a.b", "a*", ">", "a b", "ä", string(bytes.Repeat([]byte("x"), 65))} {
		if _, err := l.Create(t.Context(), name); err == nil {
			t.Errorf("Create(%q) succeeded", name)
		}
		if err := l.Append(t.Context(), name, 0, noted, []byte("{}")); err == nil {
			t.Errorf("Append(%q) succeeded", name)
		}
	}
	create(t, l, "A_z-09", 0)
}

func testAppendRead(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 5)
	wantLast(t, l, 5)
	wantSeqs(t, read(t, l, 0, 0), 1, 5)
}

func testAppendTwice(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 3)
	// The same bytes at the same place: as after a lost acknowledgement.
	if err := l.Append(t.Context(), "s", 1, noted, Payload("s", 2)); err != nil {
		t.Fatalf("the same append again: %v", err)
	}
	wantLast(t, l, 3)
}

func testWrongSequence(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 3)
	for _, expected := range []uint64{0, 2, 4, 100} {
		err := l.Append(t.Context(), "s", expected, noted, []byte(`{"other":true}`))
		wrong, ok := errors.AsType[*events.WrongSequenceError](err)
		if !ok || wrong.Session != "s" || wrong.Expected != expected {
			t.Errorf("Append at %d: %v, want WrongSequenceError", expected, err)
		}
	}
	wantLast(t, l, 3)
}

func testAppendWithoutLog(t *testing.T, l events.Log) {
	if err := l.Append(t.Context(), "s", 0, noted, Payload("s", 1)); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("Append without Create: %v, want ErrNotFound", err)
	}
}

func testReadBounds(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 40)
	for _, c := range []struct{ after, through, first, last uint64 }{
		{0, 1, 1, 1},
		{0, 40, 1, 40},
		{10, 20, 11, 20},
		{10, 35, 11, 35},
		{39, 0, 40, 40},
		{35, 100, 36, 40},
		{5, 100, 6, 40},
		{40, 0, 1, 0},
		{40, 41, 1, 0},
		{60, 0, 1, 0},
		{20, 10, 1, 0},
	} {
		wantSeqs(t, read(t, l, c.after, c.through), c.first, c.last)
	}
}

func testReadStops(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 50)
	for _, stop := range []uint64{1, 3, 30} {
		var got uint64
		for r, err := range l.Read(t.Context(), "s", 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if got = r.Seq; got == stop {
				break
			}
		}
		if got != stop {
			t.Errorf("stopped at %d, want %d", got, stop)
		}
	}
}

func testReadMany(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 1500)
	wantSeqs(t, read(t, l, 0, 0), 1, 1500)
}

func testLastOfNothing(t *testing.T, l events.Log) {
	readErr := func(session string) error {
		for _, err := range l.Read(t.Context(), session, 0, 0) {
			return err
		}
		return nil
	}
	for _, session := range []string{"none", "empty"} {
		if session == "empty" {
			create(t, l, session, 0)
		}
		if _, err := l.Last(t.Context(), session); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("Last(%s): %v, want ErrNotFound", session, err)
		}
		if err := readErr(session); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("Read(%s): %v, want ErrNotFound", session, err)
		}
	}
}

func testSessions(t *testing.T, l events.Log) {
	for i, name := range []string{"b", "empty", "a", "c"} {
		create(t, l, name, 0)
		if name != "empty" {
			fill(t, l, name, 0, uint64(i+1))
		}
	}
	want := []events.Info{{Session: "a", FirstSeq: 1, LastSeq: 3}, {Session: "b", FirstSeq: 1, LastSeq: 1}, {Session: "c", FirstSeq: 1, LastSeq: 4}}
	got, err := l.Sessions(t.Context())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Sessions() = %v, %v; want %v", got, err, want)
	}
}

func testDelete(t *testing.T, l events.Log) {
	for life := range uint64(3) {
		before := 5 * life
		create(t, l, "s", before)
		fill(t, l, "s", before, before+4)
		wantSeqs(t, read(t, l, 0, 0), before+1, before+4)
		if err := l.Delete(t.Context(), "s", ""); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if _, err := l.Last(t.Context(), "s"); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("Last after Delete: %v, want ErrNotFound", err)
		}
		if err := l.Append(t.Context(), "s", before+4, noted, []byte("{}")); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("Append after Delete: %v, want ErrNotFound", err)
		}
		if infos, err := l.Sessions(t.Context()); err != nil || len(infos) > 0 {
			t.Errorf("Sessions after Delete: %v, %v", infos, err)
		}
	}
	// No writer of an earlier life fits into the next.
	create(t, l, "s", 15)
	for _, stale := range []uint64{0, 3, 13, 14} {
		err := l.Append(t.Context(), "s", stale, noted, []byte("{}"))
		if _, ok := errors.AsType[*events.WrongSequenceError](err); !ok {
			t.Errorf("stale append at %d: %v, want WrongSequenceError", stale, err)
		}
	}
}

func testDeleteTwice(t *testing.T, l events.Log) {
	create(t, l, "s", 0)
	fill(t, l, "s", 0, 2)
	for range 2 {
		if err := l.Delete(t.Context(), "s", ""); err != nil && !errors.Is(err, events.ErrNotFound) {
			t.Fatalf("Delete: %v", err)
		}
	}
	create(t, l, "s", 3)
	// An empty log keeps its place too.
	if err := l.Delete(t.Context(), "s", ""); err != nil {
		t.Fatalf("Delete of an empty log: %v", err)
	}
	create(t, l, "s", 4)
}

// born is an event of a life, as far as a Log reads it.
func born(session, birth string, seq uint64) []byte {
	b, err := events.Encode(events.Event{
		ID: birth, Session: session, Time: time.Unix(0, 0).UTC(), Seq: seq, Birth: birth, Actor: "alice",
		Data: events.SessionCreated{Kind: "root", Mode: "default"},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// testDeleteBirth: the life that is not meant stays as it was.
func testDeleteBirth(t *testing.T, l events.Log) {
	const first, second = "01KB9ZQ000T8QW2X4Y6Z7A8B9C", "01KB9ZQ000T8QW2X4Y6Z7A8B9D"
	create(t, l, "s", 0)
	for n, payload := range [][]byte{born("s", first, 1), Payload("s", 2)} {
		if err := l.Append(t.Context(), "s", uint64(n), noted, payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Delete(t.Context(), "s", second); !errors.Is(err, events.ErrBirthChanged) {
		t.Errorf("Delete of another life: %v, want ErrBirthChanged", err)
	}
	if err := l.Append(t.Context(), "s", 2, noted, Payload("s", 3)); err != nil {
		t.Errorf("the life that stayed takes no event: %v", err)
	}
	if err := l.Delete(t.Context(), "s", first); err != nil {
		t.Fatal(err)
	}
	create(t, l, "s", 4)
	if err := l.Append(t.Context(), "s", 4, noted, born("s", second, 5)); err != nil {
		t.Fatal(err)
	}
	if err := l.Delete(t.Context(), "s", first); !errors.Is(err, events.ErrBirthChanged) {
		t.Errorf("Delete of the former life: %v, want ErrBirthChanged", err)
	}
	if err := l.Delete(t.Context(), "s", second); err != nil {
		t.Error(err)
	}
}

// testFits: Fits says what Append would, for a log that is not there.
func testFits(t *testing.T, l events.Log) {
	if err := l.Fits("s", 0, noted, Payload("s", 1)); err != nil {
		t.Errorf("Fits: %v", err)
	}
	if _, ok := l.(*events.Mem); ok {
		return // has no limit unless told
	}
	if err := l.Fits("s", 0, noted, make([]byte, 64<<20)); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("Fits of 64 MiB: %v, want ErrTooLarge", err)
	}
}

func testRace(t *testing.T, l events.Log) {
	const writers, rounds = 8, 40
	create(t, l, "s", 0)
	for seq := range uint64(rounds) {
		var wg sync.WaitGroup
		won := make([]bool, writers)
		for w := range writers {
			wg.Go(func() {
				err := l.Append(t.Context(), "s", seq, noted, fmt.Appendf(nil, `{"writer":%d,"seq":%d}`, w, seq))
				if _, lost := errors.AsType[*events.WrongSequenceError](err); err != nil && !lost {
					t.Errorf("writer %d at %d: %v", w, seq, err)
				}
				won[w] = err == nil
			})
		}
		wg.Wait()
		winners := 0
		for _, w := range won {
			if w {
				winners++
			}
		}
		if winners != 1 {
			t.Fatalf("%d winners at %d, want 1", winners, seq)
		}
	}
	wantLast(t, l, rounds)
}
