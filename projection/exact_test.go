package projection

import (
	"context"
	"fmt"
	"math/rand/v2"
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
