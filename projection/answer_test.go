package projection

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"culm/events"
)

func TestAnswer_Refusals(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 3)
	r := start(t, options(t, log)).awaitReady()
	for _, c := range []struct{ query, body, code string }{
		{"sessions.drop", ``, CodeUnknownCommand},
		{"sessions.list", `{`, CodeInvalidJSON},
		{"sessions.list", `{} {}`, CodeInvalidJSON},
		{"sessions.list", `{"limit":1,"limit":2}`, CodeInvalidJSON},
		{"sessions.list", `[]`, CodeInvalidCommand},
		{"sessions.list", `null`, CodeInvalidCommand},
		{"sessions.list", `{"Limit":1}`, CodeInvalidCommand},
		{"sessions.list", `{"limit":0}`, CodeInvalidCommand},
		{"sessions.list", `{"limit":501}`, CodeInvalidCommand},
		{"sessions.list", `{"limit":"1"}`, CodeInvalidCommand},
		{"sessions.list", `{"status":"asleep"}`, CodeInvalidCommand},
		{"sessions.list", `{"cursor":"bm9uZQ"}`, CodeInvalidCommand},
		{"sessions.list", `{"cursor":"!"}`, CodeInvalidCommand},
		{"sessions.list", `{"wait_ms":-1,"min_sequence":{"s":1}}`, CodeInvalidCommand},
		{"sessions.get", `{}`, CodeInvalidToken},
		{"sessions.get", `{"session":"a b"}`, CodeInvalidToken},
		{"sessions.get", `{"session":"none"}`, CodeSessionNotFound},
		{"transcript.get", `{"session":"none"}`, CodeSessionNotFound},
		{"transcript.get", `{"session":"s","after":true}`, CodeInvalidCommand},
		{"timeline.get", `{"session":"s","after":-1}`, CodeInvalidCommand},
		{"approvals.list", `{"status":"open"}`, CodeInvalidCommand},
		{"usage.get", `{"by":"hour"}`, CodeInvalidCommand},
		{"messages.search", `{"text":" "}`, CodeInvalidCommand},
		{"sessions.list", `{"min_sequence":{"s":99},"wait_ms":10}`, CodeNotYet},
	} {
		reply, e := r.Answer(t.Context(), c.query, []byte(c.body))
		if e == nil || e.Code != c.code || !strings.HasPrefix(string(reply), `{"ok":false,"error":{"code":"`+c.code) {
			t.Errorf("%s %s: %s", c.query, c.body, reply)
		}
	}
	for _, query := range []string{"sessions.list", "approvals.list", "loops.list", "runs.list", "tools.list", "usage.get"} {
		for _, body := range []string{"", "{}"} {
			if reply, e := r.Answer(t.Context(), query, []byte(body)); e != nil || !strings.HasPrefix(string(reply), `{"ok":true,"as_of":{},"items":[`) {
				t.Errorf("%s %q: %s", query, body, reply)
			}
		}
	}
}

// TestWait_ReadsItsOwnWrites waits for an event that is written meanwhile.
func TestWait_ReadsItsOwnWrites(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 3)
	r := start(t, options(t, log)).awaitReady()
	type answer struct {
		page Page[TimelineItem]
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		page, err := r.Timeline(context.Background(), HistoryQuery{Session: "s", Wait: Wait{MinSequence: map[string]uint64{"s": 4}, WaitMS: ptr(int64(30000))}})
		got <- answer{page, err}
	}()
	h := newHistory(t, log, 1)
	h.n = 1000 // other command ids
	h.fold("s")
	h.give("s", "message.submit", fields{"content": "now"})
	if a := <-got; a.err != nil || a.page.AsOf.Sequence != 4 || len(a.page.Items) != 4 {
		t.Errorf("%+v", a)
	}
}

// TestQueries_FitIntoAnAnswer: pages end early, and what is too large by itself
// is shown with less text; nothing is passed over.
func TestQueries_FitIntoAnAnswer(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 51)
	h.give("s", "session.create", fields{"title": strings.Repeat("\u0001", 50_000)})
	for _, content := range []string{"small", strings.Repeat("\x00", 60_000), strings.Repeat("größer ", 9000), "<script>\u202e" + strings.Repeat("x", 3000)} {
		h.give("s", "message.submit", fields{"content": content})
	}
	h.give("s", "run.request", fields{"prompt": strings.Repeat("y", 15000)})
	o := options(t, log)
	o.MaxReply = 16 << 10
	r := start(t, o).awaitReady()
	for _, query := range []string{"transcript.get", "timeline.get", "sessions.get"} {
		items := 0
		for after := ""; ; {
			reply, e := r.Answer(t.Context(), query, []byte(`{"session":"s"`+after+`}`))
			if e != nil || len(reply) > o.MaxReply {
				t.Fatalf("%s: %d bytes, %v", query, len(reply), e)
			}
			var page struct {
				Items []any  `json:"items"`
				Next  string `json:"next"`
			}
			if err := json.Unmarshal(reply, &page); err != nil {
				t.Fatal(err)
			}
			if items += len(page.Items); page.Next == "" {
				break
			}
			after = `,"after":"` + page.Next + `"`
		}
		if want := map[string]int{"transcript.get": 5, "timeline.get": 6, "sessions.get": 1}[query]; items != want {
			t.Errorf("%s: %d items, want %d", query, items, want)
		}
	}
	check(t, o.File, log)
}

// TestWait_LeavesNothingBehind: names of sessions come from clients, and may be
// of none; who has waited for them is forgotten.
func TestWait_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var p positions
	p.init()
	p.set("there", position{seq: 3})
	p.set("stuck", position{seq: 3, stuck: "why"})
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx     context.Context //nolint:containedctx // of one case
		session string
		seq     uint64
		ms      int64
		want    string
	}{
		{t.Context(), "there", 3, 0, ""},
		{t.Context(), "there", 4, 1, "not_yet: the views are not there yet"},
		{t.Context(), "stuck", 4, 30000, "not_yet: the session is stuck: why"},
		{t.Context(), "none", 1, 1, "not_yet: the views are not there yet"},
		{ended, "none", 1, 30000, "context canceled"},
	} {
		w := Wait{MinSequence: map[string]uint64{c.session: c.seq}, WaitMS: &c.ms}
		if err := w.until(c.ctx, &p); err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%s@%d: %v", c.session, c.seq, err)
		}
	}
	both := make(chan error, 2)
	for range 2 {
		w := Wait{MinSequence: map[string]uint64{"comes": 2}, WaitMS: ptr(int64(30000))}
		go func() { both <- w.until(t.Context(), &p) }()
	}
	for seq := uint64(1); len(both) < 2; seq++ {
		p.set("comes", position{seq: seq})
	}
	if a, b := <-both, <-both; a != nil || b != nil {
		t.Error(a, b)
	}
	if len(p.waiting) > 0 {
		t.Errorf("still kept: %v", p.waiting)
	}
}
