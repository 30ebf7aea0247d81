package bus

import (
	"errors"
	"testing"
	"time"

	"culm/events"
	"culm/internal/logtest"
	"culm/internal/natstest"
)

// The steps at which a deletion may be interrupted, and who completes it.
func TestDelete_interrupted(t *testing.T) {
	t.Parallel()
	crash := errors.New("crash")
	for _, step := range []string{"sealed", "buried"} {
		for name, complete := range map[string]func(t *testing.T, l *JetStreamLog, session string){
			"delete": func(t *testing.T, l *JetStreamLog, session string) {
				if err := l.Delete(t.Context(), session, ""); err != nil {
					t.Error(err)
				}
			},
			"create": func(*testing.T, *JetStreamLog, string) {},
			"sessions": func(t *testing.T, l *JetStreamLog, session string) {
				infos, err := l.Sessions(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, info := range infos {
					if info.Session == session {
						t.Errorf("listed although half deleted")
					}
				}
			},
		} {
			t.Run(step+" then "+name, func(t *testing.T) {
				t.Parallel()
				session := step + "-" + name
				// Listing sessions completes every deletion of the server.
				l := newTestLog(t, natstest.Start(t, nil), LogOptions{})
				l.abandoned = 50 * time.Millisecond
				fillLog(t, l, session, 3)
				l.step = func(at string) error {
					if at == step {
						return crash
					}
					return nil
				}
				if err := l.Delete(t.Context(), session, ""); !errors.Is(err, crash) {
					t.Fatalf("Delete: %v", err)
				}
				l.step = nil
				if err := l.Append(t.Context(), session, 3, noted, []byte("{}")); !errors.Is(err, events.ErrNotFound) {
					t.Errorf("append while being deleted: %v, want ErrNotFound", err)
				}
				// What was stored before counts as stored.
				if err := l.Append(t.Context(), session, 2, noted, logtest.Payload(session, 3)); err != nil {
					t.Errorf("the last append again: %v", err)
				}
				complete(t, l, session)
				if expected, err := l.Create(t.Context(), session); err != nil || expected != 4 {
					t.Errorf("Create = %d, %v; want 4", expected, err)
				}
				fillLog(t, l, session, 6)
			})
		}
	}
}

func TestDelete_waits_for_the_tombstone_to_be_durable(t *testing.T) {
	t.Parallel()
	disk := newFakeDisk()
	b := NewSyncBarrier(disk.sync)
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{Barrier: b})
	fillLog(t, l, "s", 2)
	ended := make(chan error, 1)
	go func() { ended <- l.Delete(t.Context(), "s", "") }()
	<-disk.begins
	if grave, err := l.tombstone(t.Context(), "s"); err != nil || grave.last != 2 {
		t.Errorf("tombstone %v, %v", grave, err)
	}
	if last, err := l.Last(t.Context(), "s"); err != nil || last != 2 {
		t.Errorf("the stream went before its tombstone was durable: %d, %v", last, err)
	}
	disk.ends <- nil
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// born appends the first event of a life and returns its birth.
func born(t *testing.T, l *JetStreamLog, session string) string {
	t.Helper()
	expected, err := l.Create(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	id, err := events.NextID("", time.Now(), [10]byte{byte(expected)})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := events.Encode(events.Event{
		ID: id, Session: session, Time: time.Now().UTC(), Seq: expected + 1, Birth: id, Actor: "alice",
		Data: events.SessionCreated{Kind: "root", Mode: "default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), session, expected, "session.created", stored); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestDelete_leaves_sequence_and_birth: what a deletion leaves.
func TestDelete_leaves_sequence_and_birth(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, natstest.Start(t, nil), LogOptions{})
	birth := born(t, l, "s")
	if err := l.Delete(t.Context(), "s", birth); err != nil {
		t.Fatal(err)
	}
	if g, err := l.tombstone(t.Context(), "s"); err != nil || g.last != 1 || g.birth != birth {
		t.Errorf("tombstone %+v, %v; want 1 and %s", g, err, birth)
	}
	for session, want := range map[string]uint64{"s": 1, "never": 0} {
		if last, err := l.Buried(t.Context(), session); err != nil || last != want {
			t.Errorf("Buried(%s) = %d, %v; want %d", session, last, err, want)
		}
	}
}

// TestDelete_overtaken: between the steps of a deletion another engine completes
// it, and the id is created again. At each step but one the new life stays as it
// is; there the deletion says what it met.
func TestDelete_overtaken(t *testing.T) {
	t.Parallel()
	for step, hurt := range map[string]bool{"looked": true, "sealed": false, "buried": false} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := natstest.Start(t, nil)
			l, other := newTestLog(t, s, LogOptions{}), newTestLog(t, s, LogOptions{})
			other.abandoned = 50 * time.Millisecond
			first := born(t, l, "s")
			var second string
			l.step = func(at string) error {
				if at == step && second == "" {
					if err := other.Delete(t.Context(), "s", first); err != nil {
						return err
					}
					second = born(t, other, "s")
				}
				return nil
			}
			err := l.Delete(t.Context(), "s", first)
			if hurt {
				if !errors.Is(err, events.ErrBirthChanged) {
					t.Errorf("Delete: %v, want ErrBirthChanged", err)
				}
				return
			}
			if err != nil {
				t.Errorf("Delete: %v", err)
			}
			if err := other.Append(t.Context(), "s", 3, noted, logtest.Payload("s", 4)); err != nil {
				t.Errorf("the new life takes no event: %v", err)
			}
			if err := l.Delete(t.Context(), "s", first); !errors.Is(err, events.ErrBirthChanged) {
				t.Errorf("Delete of the former life: %v, want ErrBirthChanged", err)
			}
		})
	}
}

// halfDelete begins the deletion of s and ends, as in a crash, when it is sealed.
func halfDelete(t *testing.T, l *JetStreamLog, birth string) {
	t.Helper()
	crash := errors.New("crash")
	l.step = func(at string) error {
		if at == "sealed" {
			return crash
		}
		return nil
	}
	if err := l.Delete(t.Context(), "s", birth); !errors.Is(err, crash) {
		t.Fatalf("Delete: %v", err)
	}
	l.step = nil
}

// TestSessions_completes_only_the_deletion_it_saw: the id that was half deleted
// when it was listed may live again when its turn comes.
func TestSessions_completes_only_the_deletion_it_saw(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, other := newTestLog(t, s, LogOptions{}), newTestLog(t, s, LogOptions{})
	l.abandoned, other.abandoned = 50*time.Millisecond, 50*time.Millisecond
	birth := born(t, l, "s")
	halfDelete(t, l, birth)
	var old time.Time
	if err := l.list(t.Context(), func(found listed) { old = found.Created }); err != nil {
		t.Fatal(err)
	}
	if err := other.Delete(t.Context(), "s", birth); err != nil {
		t.Fatal(err)
	}
	born(t, other, "s")
	if err := l.remove(t.Context(), "s", old); err != nil {
		t.Error(err)
	}
	if last, err := l.Last(t.Context(), "s"); err != nil || last != 3 {
		t.Errorf("the new life ends at %d, %v; want 3", last, err)
	}
}

// TestSessions_completes_nothing_that_is_gone: a deletion that somebody else has
// completed since it was listed is complete.
func TestSessions_completes_nothing_that_is_gone(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, natstest.Start(t, nil), LogOptions{})
	if err := l.complete(t.Context(), "gone", time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := l.Create(t.Context(), "gone"); err != nil {
		t.Errorf("Create: %v", err)
	}
}

// TestCreate_meets_a_deletion_overtaken: while it completes a deletion that was
// interrupted, another engine does so too and creates the id again. The creation
// looks once more instead of answering with an error of deletions.
func TestCreate_meets_a_deletion_overtaken(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, other := newTestLog(t, s, LogOptions{}), newTestLog(t, s, LogOptions{})
	l.abandoned, other.abandoned = 50*time.Millisecond, 50*time.Millisecond
	birth := born(t, l, "s")
	halfDelete(t, l, birth)
	overtaken := false
	l.step = func(at string) error {
		if at == "looked" && !overtaken {
			overtaken = true
			if err := other.Delete(t.Context(), "s", birth); err != nil {
				return err
			}
			born(t, other, "s")
		}
		return nil
	}
	if expected, err := l.Create(t.Context(), "s"); err != nil || !overtaken {
		t.Errorf("Create = %d, %v; overtaken %v", expected, err, overtaken)
	}
}
