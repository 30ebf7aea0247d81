package bus

import (
	"testing"
	"time"

	"culm/events"
)

// TestRest_Due: a look is due after each change, of whatever kind, and when the
// last look was not clean; else it is not.
func TestRest_Due(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	l := embeddedLog(t, s)
	fillLog(t, l, "a", 3)
	r := NewRest(s)
	look := func(moved uint64, clean bool) {
		r.Begin(moved)
		r.took = 0
		r.End(clean)
	}
	want := func(due bool, after string) {
		t.Helper()
		if got := r.Due(0); got != due {
			t.Errorf("after %s: due is %t, want %t", after, got, due)
		}
		look(0, true)
		if r.Due(0) {
			t.Errorf("after %s and a look: due again", after)
		}
	}
	want(true, "nothing")
	want(false, "a look")
	fillLog(t, l, "a", 4)
	want(true, "an append")
	fillLog(t, l, "b", 1)
	want(true, "a new session")
	if err := l.Delete(t.Context(), "b", ""); err != nil {
		t.Fatal(err)
	}
	want(true, "a deletion")
	if _, err := l.Sessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(false, "reading")
	look(0, false)
	want(true, "a look that was not clean")
	look(1, true)
	want(true, "a move of the looker's own")
	r.Begin(0)
	fillLog(t, l, "a", 5)
	r.End(true)
	want(true, "an append during the look")
	if err := s.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(true, "a restart of the server")
	r.began = time.Now().Add(-restAtMost)
	want(true, "a minute")
}

func TestRest_Due_of_another_server(t *testing.T) {
	t.Parallel()
	r := NewRest(nil)
	r.Begin(0)
	r.End(true)
	if !r.Due(0) {
		t.Error("not due, and nothing is known")
	}
}

// TestFeed_notices_a_lost_end_of_an_embedded_log: also where comparisons are
// left out, while nothing is stored.
func TestFeed_notices_a_lost_end_of_an_embedded_log(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	quiet, err := NewSubjects("quiet") // no live feed comes of it
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewJetStreamLog(t.Context(), connectTo(t, s), LogOptions{Subjects: quiet, Embedded: true})
	if err != nil {
		t.Fatal(err)
	}
	feed := NewFeed(connectTo(t, s), l, FeedOptions{Compare: 10 * time.Millisecond, Server: s})
	w := follow(t, feed, events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	for last := uint64(1); last <= 20; last++ {
		fillLog(t, l, "a", last)
		w.want(t, "a", last, last)
	}
}
