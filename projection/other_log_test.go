package projection

import (
	"testing"
	"time"

	"culm/events"
)

// awaitNoneGone waits until the views hold no session that the log does not.
func awaitNoneGone(t *testing.T, r *running, log events.Log) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var gone []string
		listed := heads(t, log)
		r.pos.mu.Lock()
		for session := range r.pos.at {
			if listed[session] == 0 {
				gone = append(gone, session)
			}
		}
		r.pos.mu.Unlock()
		if len(gone) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still there: %v", gone)
		}
	}
}

// TestProjector_SessionCreatedAgain: for a projector that saw the deletion, one
// that was behind and one that was down.
func TestProjector_SessionCreatedAgain(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	quick, down := options(t, log), options(t, log)
	blind := options(t, log)
	blind.Feed, blind.Sweep = idleFeed{}, 50*time.Millisecond
	fill(t, log, "s", 7)
	start(t, down).awaitReady().stop()
	now, behind := start(t, quick).awaitReady(), start(t, blind).awaitReady()
	if err := log.Delete(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	fill(t, log, "s", 3)
	for _, r := range []*running{now.await(log), behind.await(log), start(t, down).awaitReady()} {
		page, err := r.Transcript(t.Context(), HistoryQuery{Session: "s"})
		if err != nil || len(page.Items) != 2 || page.AsOf.Sequence != heads(t, log)["s"] {
			t.Errorf("transcript: %+v, %v", page, err)
		}
		check(t, r.opts.File, log)
	}
}

// TestProjector_SessionGone: a deleted session leaves the views, and nobody is
// told that they are computed anew.
func TestProjector_SessionGone(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 3)
	fill(t, log, "stays", 3)
	o := options(t, log)
	o.Sweep = 20 * time.Millisecond
	gone := make(chan string, 8)
	o.Gone = func(session string) { gone <- session }
	r := start(t, o).awaitReady()
	if err := log.Delete(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	if session := <-gone; session != "s" {
		t.Errorf("%s is said to be gone", session)
	}
	awaitNoneGone(t, r, log)
	if n := r.stats.resets.Load(); n != 0 {
		t.Errorf("%d sessions were computed anew, of one that was deleted", n)
	}
	if _, err := r.Session(t.Context(), SessionQuery{Session: "s"}); AsError(err).Code != CodeSessionNotFound {
		t.Errorf("the deleted session: %v", err)
	}
	check(t, o.File, log)
}

// TestProjector_LogIsAnother: a log that was cut, or restored with another
// content of the same length, is noticed at the start.
func TestProjector_LogIsAnother(t *testing.T) {
	t.Parallel()
	other := events.NewMem()
	fill(t, other, "s", 4)
	h := newHistory(t, other, 77)
	h.now = h.now.Add(time.Hour)
	h.give("s2", "session.create", fields{"title": "x"})
	for name, change := range map[string]func([]events.Record) []events.Record{
		"cut": func(l []events.Record) []events.Record { return l[:2] },
		"of the same length": func(l []events.Record) []events.Record {
			log := events.NewMem()
			h := newHistory(t, log, 78)
			h.give("s", "session.create", fields{"title": "restored"})
			for range len(l) - 1 {
				h.give("s", "message.submit", fields{"content": "other"})
			}
			var out []events.Record
			for r := range log.Read(t.Context(), "s", 0, 0) {
				out = append(out, r)
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := events.NewMem()
			fill(t, log, "s", 4)
			fill(t, log, "stays", 4)
			o := options(t, log)
			start(t, o).awaitReady().stop()
			log.Rewrite("s", change)
			r := start(t, o).awaitReady()
			if n := r.stats.resets.Load(); n != 1 {
				t.Errorf("%d sessions were read anew", n)
			}
			check(t, o.File, log)
		})
	}
}
