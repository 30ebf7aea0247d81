package projection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"culm/events"
)

// faultyFeed loses, doubles, delays and reorders what a feed brings.
type faultyFeed struct {
	events.Feed
	seed                 uint64
	drop, double, delays float64 // percent
	times                int     // how often each event comes, 0 is once
}

func (f faultyFeed) Follow(ctx context.Context, o events.FollowOptions, handle func(events.Record) error) error {
	random := rand.New(rand.NewPCG(f.seed, 2))
	var late []events.Record
	return f.Feed.Follow(ctx, o, func(r events.Record) error {
		give := []events.Record{r}
		for range f.times - 1 {
			give = append(give, r)
		}
		switch n := random.Float64() * 100; {
		case n < f.drop:
			give = nil
		case n < f.drop+f.double:
			give = append(give, r)
		case n < f.drop+f.double+f.delays:
			late, give = append(late, r), nil
		}
		if len(late) > 0 && random.IntN(4) == 0 {
			i := random.IntN(len(late))
			give = append(give, late[i])
			late = append(late[:i], late[i+1:]...)
		}
		for _, r := range give {
			if err := handle(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestProjector_Exact: whatever the feed does, the views are what the log says,
// while events come and at the end.
func TestProjector_Exact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			log := events.NewMem()
			h := newHistory(t, log, 100+seed).run(12, 300)
			o := options(t, log)
			o.Feed = faultyFeed{Feed: log, seed: seed, drop: 10, double: 10, delays: 10}
			o.Sweep = 50 * time.Millisecond // finds what was lost at the end
			o.BatchEvents, o.Sessions = int(1+seed*7), int(1+seed*3)
			r := start(t, o).awaitReady()
			for range 4 {
				h.run(12, h.Events+300)
				report := check(t, o.File, log)
				t.Log(report.Events, "events, behind", report.Behind)
			}
			r.await(log)
			awaitNoneGone(t, r, log)
			check(t, o.File, log)
		})
	}
}

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

// TestProjector_AllEventsOfALongSession: at the sizes around a batch no event is missed.
func TestProjector_AllEventsOfALongSession(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 255, 256, 257, 499, 500, 501, 1001} {
		log := events.NewMem()
		fill(t, log, "s", n)
		o := options(t, log)
		o.BatchEvents = 500
		r := start(t, o).awaitReady()
		page, err := r.Session(t.Context(), SessionQuery{Session: "s"})
		if err != nil || page.Items[0].Events != int64(n) || page.AsOf.Sequence != uint64(n) {
			t.Errorf("%d events: %+v, %v", n, page, err)
		}
		check(t, o.File, log)
		r.stop()
	}
}

// fill makes a session of n events: session.created and messages.
func fill(t testing.TB, log events.Log, session string, n int) {
	t.Helper()
	h := newHistory(t, log, 5)
	if !h.give(session, "session.create", fields{"title": session}) {
		t.Fatal("not created")
	}
	for i := 1; i < n; i++ {
		h.give(session, "message.submit", fields{"content": fmt.Sprint("message ", i)})
	}
}

// TestProjector_DeliveredThreeTimes: what comes again changes nothing, by the count of the history.
func TestProjector_DeliveredThreeTimes(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	o := options(t, log)
	o.Feed = faultyFeed{Feed: log, times: 3}
	r := start(t, o).awaitReady()
	h := newHistory(t, log, 9)
	h.noClose = true
	h.run(5, 600)
	r.await(log)
	var rows int
	if err := r.db.read.QueryRowContext(t.Context(), "SELECT count(*) FROM timeline").Scan(&rows); err != nil || rows != h.Events {
		t.Errorf("%d rows of %d events, %v", rows, h.Events, err)
	}
	check(t, o.File, log)
}

// TestProjector_Restarted: sessions interleave, and no event is applied twice or
// passed over.
func TestProjector_Restarted(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 11)
	o := options(t, log)
	o.Sessions = 1
	for i := range 10 {
		h.run(2, h.Events+40)
		r := start(t, o).awaitReady()
		if i > 0 && r.stats.applied.Load() > 60 {
			t.Errorf("restart %d applied %d events", i, r.stats.applied.Load())
		}
		h.run(2, h.Events+10)
		if i%2 == 0 {
			r.await(log) // else it ends with what it has
		}
		r.stop()
	}
	start(t, o).awaitReady()
	check(t, o.File, log)
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

// TestProjector_SessionGone: a deleted session leaves the views.
func TestProjector_SessionGone(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 3)
	fill(t, log, "stays", 3)
	o := options(t, log)
	o.Sweep = 20 * time.Millisecond
	r := start(t, o).awaitReady()
	if err := log.Delete(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	awaitNoneGone(t, r, log)
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

// TestProjector_Poison: what cannot be applied parks its session, the others go
// on, and a later start tries again.
func TestProjector_Poison(t *testing.T) {
	t.Parallel()
	replace := func(old, new string) func([]events.Record) []events.Record {
		return func(l []events.Record) []events.Record {
			l[2].Payload = []byte(strings.Replace(string(l[2].Payload), old, new, 1))
			return l
		}
	}
	for _, c := range []struct {
		name, code string
		damage     func([]events.Record) []events.Record
	}{
		{"bytes", "malformed_event", func(l []events.Record) []events.Record { l[2].Payload = []byte("{"); return l }},
		{"a newer version", "unknown_event", replace("message.submitted:1", "message.submitted:2")},
		{"an unknown field", "malformed_event", replace(`"role":`, `"rôle":`)},
		{"a hole", "missing_event", func(l []events.Record) []events.Record { return append(l[:2:2], l[3:]...) }},
		{"a changed event", "changed_event", func(l []events.Record) []events.Record {
			l[1].Payload = []byte(strings.Replace(string(l[1].Payload), "message 1", "message 9", 1))
			return l
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := events.NewMem()
			fill(t, log, "bad", 5)
			fill(t, log, "good", 5)
			var whole []events.Record
			log.Rewrite("bad", func(l []events.Record) []events.Record {
				whole = append(whole, l...)
				return c.damage(l)
			})
			o := options(t, log)
			o.Logger = nil
			for n := range 2 { // the second start tries again
				r := start(t, o).awaitReady()
				page, err := r.Sessions(t.Context(), SessionsQuery{Status: "stuck"})
				if err != nil || len(page.Items) != 1 || page.Items[0].Stuck == nil || page.Items[0].Stuck.Reason == "" {
					t.Fatalf("stuck sessions: %+v, %v", page, err)
				}
				stats, err := r.Stats(t.Context())
				if err != nil || len(stats.Parked) != 1 || stats.Parked[0].Code != c.code {
					t.Errorf("parked: %+v, %v", stats.Parked, err)
				}
				h := newHistory(t, log, 3)
				h.n = 1000 * (n + 1) // other command ids
				h.fold("good")
				h.give("good", "message.submit", fields{"content": "goes on"})
				w := Wait{MinSequence: map[string]uint64{"good": h.states["good"].Head.Seq}}
				if err := w.until(t.Context(), &r.pos); err != nil {
					t.Error(err)
				}
				r.stop()
			}
			log.Rewrite("bad", func([]events.Record) []events.Record { return whole })
			start(t, o).awaitReady()
			if report := check(t, o.File, log); len(report.Parked) != 0 {
				t.Errorf("still parked: %+v", report.Parked)
			}
		})
	}
}

// TestProjector_HandlerFails: a view that panics, or rows that SQL refuses, park
// the session before the event; what came before it in the batch stays.
func TestProjector_HandlerFails(t *testing.T) {
	for name, fail := range map[string]func(l *live) error{
		"panic": func(*live) error { panic("no such thing") },
		"error": func(*live) error { return errors.New("cannot") },
		"refused by SQL": func(l *live) error {
			l.out.timeline.add(&timelineRow{Session: "bad", Seq: 1})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			apply := applyHook
			defer func() { applyHook = apply }()
			applyHook = func(l *live, e *events.Event, size int) error {
				if err := apply(l, e, size); err != nil || e.Session != "bad" || e.Seq != 4 {
					return err
				}
				return fail(l)
			}
			log := events.NewMem()
			fill(t, log, "bad", 6)
			fill(t, log, "good", 6)
			o := options(t, log)
			o.Logger = nil
			r := start(t, o).awaitReady()
			report := check(t, o.File, log)
			if len(report.Parked) != 1 || report.Parked[0].Seq != 4 || report.Parked[0].Code != "view_failed" || report.Events != 9 {
				t.Errorf("%+v", report)
			}
			r.stop()
			applyHook = apply
			r = start(t, o).awaitReady()
			if report := check(t, o.File, log); report.Events != 12 || len(report.Parked) != 0 {
				t.Errorf("after the repair: %+v", report)
			}
			r.stop()
		})
	}
}

// TestOpen_SecondProjector: one process at a time writes to a file.
func TestOpen_SecondProjector(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	o := options(t, log)
	r := start(t, o).awaitReady()
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLocked) {
		t.Errorf("a second projector: %v", err)
	}
	// Where locks do not work, the one that came first ends.
	if _, err := r.db.pool.ExecContext(t.Context(), "UPDATE meta SET value = 'another' WHERE key = 'owner'"); err != nil {
		t.Fatal(err)
	}
	fill(t, log, "s", 2)
	select {
	case err := <-r.ended:
		if !errors.Is(err, ErrTaken) {
			t.Errorf("Run: %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		t.Error("the former projector goes on")
	}
	var rows int
	if err := r.db.read.QueryRowContext(t.Context(), "SELECT count(*) FROM timeline").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestRun_ChangedViews: a view of another version is computed anew, the others
// are left alone.
func TestRun_ChangedViews(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	newHistory(t, log, 21).run(5, 400)
	o := options(t, log)
	r := start(t, o).awaitReady()
	for _, spoil := range []string{"DELETE FROM tools", "UPDATE messages SET content = 'x'", "UPDATE views SET version = 0 WHERE name IN ('tools', 'messages')"} {
		if _, err := r.db.write.ExecContext(t.Context(), spoil); err != nil {
			t.Fatal(err)
		}
	}
	r.stop()
	r = start(t, o).awaitReady()
	if n := r.stats.applied.Load(); n != 0 {
		t.Errorf("%d events were applied to views that were up to date", n)
	}
	check(t, o.File, log)
}

// TestProjector_AbsurdTokens: what a runner reports cannot break sums.
func TestProjector_AbsurdTokens(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 25)
	h.give("s", "session.create", fields{})
	h.give("s", "run.request", fields{"prompt": "go"})
	h.give("s", "run.claim", fields{"run_id": h.states["s"].Run.ID, "runner": "r"})
	for round := range 3 {
		run := h.states["s"].Run
		h.give("s", "round.start", fields{"run_id": run.ID, "fence": run.Fence})
		h.give("s", "round.finish", fields{
			"run_id": run.ID, "fence": run.Fence, "round": round, "message": fields{"content": "", "tool_calls": []fields{{"id": "c", "name": "x", "arguments": ""}}},
			"usage": fields{"prompt": uint64(1 << 40), "completion": uint64(1 << 40), "total": uint64(1 << 40)}, // as much as the rules take
		})
		h.give("s", "tool.start", fields{"run_id": run.ID, "fence": run.Fence, "tool_call_id": "c"})
		h.give("s", "tool.finish", fields{"run_id": run.ID, "fence": run.Fence, "tool_call_id": "c", "success": true, "content": "", "elapsed_ms": uint64(1<<64 - 1)})
	}
	o := options(t, log)
	r := start(t, o).awaitReady()
	page, err := r.Usage(t.Context(), UsageQuery{By: "model"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Rounds != 3 || page.Items[0].Usage.Total != 3*maxTokens {
		t.Errorf("%+v, %v", page, err)
	}
	check(t, o.File, log)
}

// TestProjector_QuestionExpired: no command leads to this event yet.
func TestProjector_QuestionExpired(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 26)
	h.give("s", "session.create", fields{})
	h.give("s", "run.request", fields{"prompt": "go"})
	h.give("s", "run.claim", fields{"run_id": h.states["s"].Run.ID, "runner": "r"})
	run := fields{"run_id": h.states["s"].Run.ID, "fence": h.states["s"].Run.Fence}
	h.give("s", "round.start", run)
	h.give("s", "round.finish", fields{
		"run_id": run["run_id"], "fence": run["fence"], "round": 0, "message": fields{"content": "", "tool_calls": []fields{{"id": "c", "name": "ask", "arguments": ""}}},
	})
	h.give("s", "tool.park", fields{"run_id": run["run_id"], "fence": run["fence"], "tool_call_id": "c", "question": "Well?"})
	s := h.states["s"]
	id, err := events.NextID(s.Head.ID, h.now, [10]byte{})
	if err != nil || len(s.Calls) != 1 {
		t.Fatal(s.Calls, err)
	}
	ref := events.CallRef{ToolCallID: "c", MessageID: s.Calls[0].MessageID, Name: "ask"}
	expired := events.QuestionExpired{CallRef: ref, Content: "nobody answered", RunID: "next"}
	stored, err := events.Encode(events.Event{
		ID: id, Session: "s", Time: h.now, Seq: s.Head.Seq + 1, Birth: s.Head.Birth, Actor: "_engine", Run: "next", Prevhash: s.Head.Hash, Data: expired,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), "s", s.Head.Seq, "question.expired", stored); err != nil {
		t.Fatal(err)
	}
	o := options(t, log)
	r := start(t, o).awaitReady()
	page, err := r.Approvals(t.Context(), ApprovalsQuery{Status: "decided"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Decision != "expired" || page.Items[0].Successor != "next" {
		t.Errorf("%+v, %v", page, err)
	}
	check(t, o.File, log)
}

// TestRebuild switches to a database that was built beside a running one.
func TestRebuild(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 23).run(5, 400)
	o := options(t, log)
	r := start(t, o).awaitReady()
	spoil := func(statement string) {
		if _, err := r.db.write.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	spoil("UPDATE messages SET content = 'x'")
	if err := Rebuild(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	h.run(5, h.Events+50)
	r.await(log)
	check(t, o.File, log)
	r.stop()
	if err := Rebuild(t.Context(), o); err != nil { // with nobody there
		t.Fatal(err)
	}
	check(t, o.File, log)
	left, err := filepath.Glob(o.File + ".*")
	if err != nil || len(left) > 1 {
		t.Errorf("left beside the database: %v", left)
	}
	if _, err := os.Stat(o.File); err != nil {
		t.Error(err)
	}
}

// TestCheck_FindsDifferences: every kind of damage to every column is found.
func TestCheck_FindsDifferences(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	newHistory(t, log, 31).run(2, 250)
	o := options(t, log)
	r := start(t, o).awaitReady()
	find := func(damage string) {
		t.Helper()
		tx, err := r.db.pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), damage); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		c := &checker{o: CheckOptions{File: o.File, Log: log}, db: r.db.read, tx: tx}
		if err := c.all(t.Context()); err != nil || c.out.Differences == 0 {
			t.Errorf("%s: %d differences, %v", damage, c.out.Differences, err)
		}
	}
	for _, v := range views {
		table := v.tables[0]
		one := " WHERE rowid = (SELECT min(rowid) FROM " + table + ")"
		key := map[string]string{"runs": "run_id", "rounds": "run_id", "usage": "day", "timeline": "seq"}[table]
		if key != "" { // without rowids
			one = " WHERE (session, " + key + ") IN (SELECT session, " + key + " FROM " + table + " LIMIT 1)"
		}
		find("DELETE FROM " + table + one)
		for _, c := range columns(t, r, table) {
			if c.name != "session" && c.name != "id" && !(table == "timeline" && c.name == "text") {
				find("UPDATE " + table + " SET " + c.name + " = " + c.other + one)
			}
		}
	}
	find("UPDATE checkpoints SET hash = 'x'")
	find("DELETE FROM checkpoints WHERE session = 's1'")
	find("DELETE FROM messages_fts WHERE rowid = 1")
	find("INSERT INTO usage VALUES ('s1', '2026-01-01', '', '', 1, 1, 1, 1)")
}

type column struct{ name, other string }

func columns(t *testing.T, r *running, table string) (out []column) {
	t.Helper()
	rows, err := r.db.read.QueryContext(t.Context(), "SELECT name, type FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		other := name + " || 'x'"
		if name == "idx" || name == "round" {
			other = name + " + 100000"
		} else if kind == "INTEGER" {
			other = "CASE WHEN " + name + " IN (0, 1) THEN 1 - " + name + " ELSE " + name + " + 100000 END"
		}
		out = append(out, column{name, other})
	}
	return out
}
