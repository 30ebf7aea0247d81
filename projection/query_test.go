package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"culm/events"
)

// collect reads all pages of a query by its cursors.
func collect[I any](t *testing.T, read func(cursor string) (Page[I], error)) (items []I, pages int) {
	t.Helper()
	for cursor := ""; ; {
		page, err := read(cursor)
		if err != nil {
			t.Fatal(err)
		}
		items, pages = append(items, page.Items...), pages+1
		if cursor = page.Next; cursor == "" {
			return items, pages
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestQueries_Pages: the pages of every list together are the view, in order,
// each row once, while rows are added in between.
func TestQueries_Pages(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 41)
	h.noClose = true
	h.run(30, 2000)
	r := start(t, options(t, log)).awaitReady()
	count := func(query string) (n int) {
		t.Helper()
		if err := r.db.read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, limit := range []int{1, 7, 500} {
		page := func(c string) List { return List{Limit: &limit, Cursor: c} }
		ctx := t.Context()
		for name, c := range map[string]struct {
			want int
			got  func() []string
		}{
			"sessions.list": {count("SELECT count(*) FROM sessions WHERE session <> '_settings'"), func() []string {
				items, _ := collect(t, func(c string) (Page[SessionItem], error) { return r.Sessions(ctx, SessionsQuery{List: page(c)}) })
				return each(items, func(i SessionItem) string { return i.Session })
			}},
			"runs.list": {count("SELECT count(*) FROM runs"), func() []string {
				items, _ := collect(t, func(c string) (Page[RunItem], error) { return r.Runs(ctx, ListQuery{List: page(c)}) })
				return each(items, func(i RunItem) string { return i.Session + i.RunID })
			}},
			"loops.list": {count("SELECT count(*) FROM loops"), func() []string {
				items, _ := collect(t, func(c string) (Page[LoopItem], error) { return r.Loops(ctx, ListQuery{List: page(c)}) })
				return each(items, func(i LoopItem) string { return i.Session + i.Generation })
			}},
			"tools.list": {count("SELECT count(*) FROM tools"), func() []string {
				items, _ := collect(t, func(c string) (Page[ToolItem], error) { return r.Tools(ctx, ListQuery{List: page(c)}) })
				return each(items, func(i ToolItem) string { return i.Session + i.MessageID })
			}},
			"approvals.list": {count("SELECT count(*) FROM approvals"), func() []string {
				items, _ := collect(t, func(c string) (Page[ApprovalItem], error) {
					return r.Approvals(ctx, ApprovalsQuery{Status: "all", List: page(c)})
				})
				return each(items, func(i ApprovalItem) string { return fmt.Sprint(i.Session, i.MessageID, i.SinceSeq) })
			}},
			"transcript.get": {count("SELECT count(*) FROM messages WHERE session = 's1'"), func() []string {
				items, _ := collect(t, func(c string) (Page[MessageItem], error) {
					return r.Transcript(ctx, HistoryQuery{Session: "s1", List: page(c)})
				})
				return each(items, func(i MessageItem) string { return i.MessageID })
			}},
			"timeline.get": {count("SELECT count(*) FROM timeline WHERE session = 's1'"), func() []string {
				items, _ := collect(t, func(c string) (Page[TimelineItem], error) {
					return r.Timeline(ctx, HistoryQuery{Session: "s1", List: page(c)})
				})
				return each(items, func(i TimelineItem) string { return i.ID })
			}},
			"rounds.list": {count("SELECT count(*) FROM rounds WHERE session = 's1'"), func() []string {
				items, _ := collect(t, func(c string) (Page[RoundItem], error) { return r.Rounds(ctx, ListQuery{Session: "s1", List: page(c)}) })
				return each(items, func(i RoundItem) string { return fmt.Sprint(i.RunID, i.Round) })
			}},
			"usage.get": {count("SELECT count(DISTINCT session) FROM usage"), func() []string {
				items, _ := collect(t, func(c string) (Page[UsageItem], error) { return r.Usage(ctx, UsageQuery{List: page(c)}) })
				return each(items, func(i UsageItem) string { return i.Session })
			}},
			"messages.search": {count("SELECT count(*) FROM messages WHERE content LIKE '%files%'"), func() []string {
				items, _ := collect(t, func(c string) (Page[SearchItem], error) {
					return r.Search(ctx, SearchQuery{Text: "files", List: page(c)})
				})
				return each(items, func(i SearchItem) string { return i.Session + i.MessageID })
			}},
		} {
			got := c.got()
			if len(got) != c.want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != c.want || c.want == 0 {
				t.Errorf("%s by %d: %d items, want %d different ones", name, limit, len(got), c.want)
			}
		}
	}
}

func each[I any](items []I, f func(I) string) (out []string) {
	for _, i := range items {
		out = append(out, f(i))
	}
	return out
}

// TestSessions_CursorsHoldWhileSessionsCome: what was there and did not change
// is told once, whatever is added between the pages.
func TestSessions_CursorsHoldWhileSessionsCome(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 43)
	for i := range 20 {
		h.give(fmt.Sprint("old", i), "session.create", fields{"title": fmt.Sprint(i)})
	}
	r := start(t, options(t, log)).awaitReady()
	n := 0
	items, pages := collect(t, func(c string) (Page[SessionItem], error) {
		page, err := r.Sessions(t.Context(), SessionsQuery{List: List{Limit: ptr(3), Cursor: c}})
		n++
		h.give(fmt.Sprint("new", n), "session.create", fields{})
		r.await(log)
		return page, err
	})
	var old []string
	for _, i := range items {
		if strings.HasPrefix(i.Session, "old") {
			old = append(old, i.Session)
		}
	}
	if len(old) != 20 || pages != 7 || !slices.IsSortedFunc(items, func(a, b SessionItem) int { return b.UpdatedAt.Compare(a.UpdatedAt) }) {
		t.Errorf("%d pages with %v", pages, old)
	}
}

func TestSessions_Filters(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 44)
	h.give("plain", "session.create", fields{"title": "100 % of_it"})
	h.give("child", "session.create", fields{"kind": "child", "parent": fields{"session": "plain", "tool_call_id": "c"}})
	h.give("child", "message.submit", fields{"content": "look at the Größe of it"})
	h.give("asked", "session.create", fields{"title": "100 percent"})
	h.give("asked", "run.request", fields{"prompt": "go", "loop": fields{"max_iterations": 2, "max_total_rounds": 4}})
	h.give("shut", "session.create", fields{})
	h.give("shut", "session.close", fields{})
	r := start(t, options(t, log)).awaitReady()
	for _, c := range []struct {
		q    SessionsQuery
		want string
	}{
		{SessionsQuery{}, "shut asked child plain"},
		{SessionsQuery{Status: "requested"}, "asked"},
		{SessionsQuery{Status: "closed"}, "shut"},
		{SessionsQuery{Kind: "child"}, "child"},
		{SessionsQuery{Parent: "plain"}, "child"},
		{SessionsQuery{Text: "grosse"}, ""},
		{SessionsQuery{Text: "größe LOOK"}, "child"},
		{SessionsQuery{Text: "groß"}, "child"}, // the beginning of a word, without marks
		{SessionsQuery{Text: "100 % of_"}, "plain"},
		{SessionsQuery{Text: "SHUT"}, "shut"},
		{SessionsQuery{Text: `" OR 1=1 --`}, ""},
		{SessionsQuery{Text: "\x00 NEAR("}, ""},
	} {
		page, err := r.Sessions(t.Context(), c.q)
		if got := strings.Join(each(page.Items, func(i SessionItem) string { return i.Session }), " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.q, got, err, c.want)
		}
	}
	page, err := r.Session(t.Context(), SessionQuery{Session: "asked"})
	if err != nil || page.Items[0].Run == nil || page.Items[0].Run.Status != "requested" {
		t.Errorf("session: %+v, %v", page, err)
	}
}

// TestApprovals_Item: what waits is shown with what would run, and for how long.
func TestApprovals_Item(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 61)
	o := options(t, log)
	o.Now = func() time.Time { return h.now.Add(time.Minute) }
	h.give("s", "session.create", fields{"title": "T"})
	h.give("s", "run.request", fields{"prompt": "go"})
	run := func(more fields) fields {
		out := fields{"run_id": h.states["s"].Run.ID, "fence": h.states["s"].Run.Fence}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	h.give("s", "run.claim", fields{"run_id": h.states["s"].Run.ID, "runner": "r"})
	h.give("s", "round.start", run(nil))
	long := strings.Repeat("ä", 10_000)
	h.give("s", "round.finish", run(fields{"round": 0, "message": fields{"content": "", "tool_calls": []fields{{"id": "c1", "name": "write", "arguments": long}}}}))
	h.give("s", "tool.park", run(fields{"tool_call_id": "c1", "question": "May I?", "request": fields{"tool_name": "write", "permission_type": "write", "resource": "/x"}}))
	r := start(t, o).awaitReady()
	page, err := r.Approvals(t.Context(), ApprovalsQuery{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	i := page.Items[0]
	if i.Kind != "approval" || i.Title != "T" || i.ArgumentsBytes != 20_000 || len(i.Arguments) != 16<<10 || i.ArgumentsDigest != events.Hash([]byte(long)) || i.AgeMS != 60_000 {
		t.Errorf("%+v", i)
	}
	h.give("s", "approval.decide", fields{"tool_call_id": "c1", "generation": i.Generation, "decision": "deny_once", "note": "no"})
	r.await(log)
	page, err = r.Approvals(t.Context(), ApprovalsQuery{Status: "decided", Session: "s"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Decision != "deny_once" || page.Items[0].Note != "no" || page.Items[0].Successor == "" {
		t.Errorf("%+v, %v", page, err)
	}
	if e, err := r.Event(t.Context(), "s", uint64(page.Items[0].DecidedSeq)); err != nil || e.Type != "approval.decided" {
		t.Errorf("event: %+v, %v", e, err)
	}
}
