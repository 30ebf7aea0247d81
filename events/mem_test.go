package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"culm/events"
)

func newMem(t *testing.T, sessions ...string) *events.Mem {
	t.Helper()
	m := events.NewMem()
	for _, s := range sessions {
		if at, err := m.Create(t.Context(), s); err != nil || at != 0 {
			t.Fatalf("create %s: %d, %v", s, at, err)
		}
	}
	return m
}

func mustAppend(t *testing.T, m *events.Mem, session string, expected uint64, payload string) {
	t.Helper()
	if err := m.Append(t.Context(), session, expected, "note.appended", []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, m *events.Mem, session string, after, through uint64) (out []string) {
	t.Helper()
	for r, err := range m.Read(t.Context(), session, after, through) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s/%d=%s", r.Session, r.Seq, r.Payload))
	}
	return out
}

func wantRecords(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestMem_AppendsAtTheExpectedSequenceOnly(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	mustAppend(t, m, "s", 0, "a")
	mustAppend(t, m, "s", 1, "b")
	for _, expected := range []uint64{0, 1, 3, 9} {
		err := m.Append(t.Context(), "s", expected, "note.appended", []byte("x"))
		wrong, ok := errors.AsType[*events.WrongSequenceError](err)
		if !ok || wrong.Expected != expected || wrong.Session != "s" {
			t.Errorf("append at %d: %v", expected, err)
		}
	}
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=a", "s/2=b")
	if last, err := m.Last(t.Context(), "s"); last != 2 || err != nil {
		t.Errorf("last %d, %v", last, err)
	}
}

func TestMem_SameAppendTwiceIsTheSameAppend(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	mustAppend(t, m, "s", 0, "a")
	mustAppend(t, m, "s", 1, "b")
	mustAppend(t, m, "s", 0, "a")
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=a", "s/2=b")
}

func TestMem_KeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	payload := []byte("abc")
	if err := m.Append(t.Context(), "s", 0, "note.appended", payload); err != nil {
		t.Fatal(err)
	}
	payload[0] = 'x'
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=abc")
}

func TestMem_ReadsTheRangeAskedFor(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	for i := range 5 {
		mustAppend(t, m, "s", uint64(i), "e")
	}
	wantRecords(t, readAll(t, m, "s", 1, 3), "s/2=e", "s/3=e")
	wantRecords(t, readAll(t, m, "s", 3, 99), "s/4=e", "s/5=e")
	wantRecords(t, readAll(t, m, "s", 5, 0))
	wantRecords(t, readAll(t, m, "s", 9, 0))
	records := m.Read(t.Context(), "s", 3, 0)
	mustAppend(t, m, "s", 5, "late")
	for r := range records {
		if r.Seq > 5 {
			t.Error("read what came after the call")
		}
	}
}

func TestMem_ReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	mustAppend(t, m, "s", 0, "a")
	mustAppend(t, m, "s", 1, "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range m.Read(ctx, "s", 0, 0) {
		cancel()
		if last = err; err == nil {
			n++
		}
	}
	if n != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d records, then %v", n, last)
	}
}

func TestMem_NothingThere(t *testing.T) {
	t.Parallel()
	m := newMem(t, "empty")
	for _, s := range []string{"empty", "missing"} {
		if _, err := m.Last(t.Context(), s); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("last of %s: %v", s, err)
		}
		var got error
		for _, got = range m.Read(t.Context(), s, 0, 0) {
		}
		if !errors.Is(got, events.ErrNotFound) {
			t.Errorf("read of %s: %v", s, got)
		}
	}
	if err := m.Append(t.Context(), "missing", 0, "x.y", nil); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("append: %v", err)
	}
	if all, err := m.Sessions(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("sessions %v, %v", all, err)
	}
	if err := m.Delete(t.Context(), "missing", ""); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestMem_RefusesSessionsThatAreNoTokens(t *testing.T) {
	t.Parallel()
	m := newMem(t)
	for _, s := range []string{"", "a.b", "*", ">", "a b", "é"} {
		if _, err := m.Create(t.Context(), s); err == nil {
			t.Errorf("create %q succeeds", s)
		}
		if err := m.Append(t.Context(), s, 0, "x.y", nil); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("append to %q: %v", s, err)
		}
	}
}

func TestMem_CreatedAgainStartsAboveItsFormerLife(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s", "other")
	mustAppend(t, m, "s", 0, "a")
	mustAppend(t, m, "s", 1, "b")
	mustAppend(t, m, "other", 0, "o")
	for range 2 { // interrupted, it is called again
		if err := m.Delete(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Append(t.Context(), "s", 2, "x.y", []byte("stale")); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("append to a deleted log: %v", err)
	}
	for range 2 { // twice changes nothing
		if at, err := m.Create(t.Context(), "s"); at != 3 || err != nil {
			t.Fatalf("create again: %d, %v", at, err)
		}
	}
	if _, ok := errors.AsType[*events.WrongSequenceError](m.Append(t.Context(), "s", 2, "x.y", []byte("a"))); !ok {
		t.Error("an append of the former life fits")
	}
	mustAppend(t, m, "s", 3, "c")
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/4=c")
	all, err := m.Sessions(t.Context())
	want := []events.Info{{Session: "other", FirstSeq: 1, LastSeq: 1}, {Session: "s", FirstSeq: 4, LastSeq: 4}}
	if !slices.Equal(all, want) || err != nil {
		t.Errorf("sessions %v, %v", all, err)
	}
}

func TestMem_Faults(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	m.FailAppends(events.FailNth(2, events.FaultBefore))
	mustAppend(t, m, "s", 0, "a")
	if err := m.Append(t.Context(), "s", 1, "x.y", []byte("b")); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("before: %v", err)
	}
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=a")
	m.FailAppends(events.FailNth(3, events.FaultAfter))
	if err := m.Append(t.Context(), "s", 1, "x.y", []byte("b")); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("after: %v", err)
	}
	mustAppend(t, m, "s", 1, "b") // the retry finds it stored
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=a", "s/2=b")
	if m.Appends() != 4 {
		t.Errorf("%d appends", m.Appends())
	}
	m.SetMaxPayload(3)
	mustAppend(t, m, "s", 2, "fit")
	if err := m.Append(t.Context(), "s", 3, "x.y", []byte("long")); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	m.SetUnavailable(true)
	if _, err := m.Last(t.Context(), "s"); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("unavailable: %v", err)
	}
	m.SetUnavailable(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Append(ctx, "s", 3, "x.y", []byte("c")); !errors.Is(err, events.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMem_FaultFunctionMayLetAnotherWriterIn(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	m.FailAppends(func(c events.AppendCall) events.Fault {
		if c.N == 1 {
			mustAppend(t, m, "s", 0, "first")
		}
		return events.FaultNone
	})
	err := m.Append(t.Context(), "s", 0, "x.y", []byte("second"))
	if _, ok := errors.AsType[*events.WrongSequenceError](err); !ok {
		t.Errorf("append: %v", err)
	}
}

func TestMem_OneWinnerPerSequence(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for {
					last, err := m.Last(t.Context(), "s")
					if err != nil && !errors.Is(err, events.ErrNotFound) {
						t.Error(err)
						return
					}
					err = m.Append(t.Context(), "s", last, "x.y", fmt.Appendf(nil, "%d.%d", w, i))
					if err == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	got := readAll(t, m, "s", 0, 0)
	if len(got) != writers*each {
		t.Errorf("%d events, want %d", len(got), writers*each)
	}
}

func TestMem_Rewrite(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	for i, p := range []string{"a", "b", "c"} {
		mustAppend(t, m, "s", uint64(i), p)
	}
	m.Rewrite("s", func(r []events.Record) []events.Record { return slices.Delete(r, 1, 2) })
	wantRecords(t, readAll(t, m, "s", 0, 0), "s/1=a", "s/3=c")
	wantRecords(t, readAll(t, m, "s", 1, 0), "s/3=c")
}
