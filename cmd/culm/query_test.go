package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/events"
)

func answerWithItems(next string, items ...string) string {
	return fmt.Sprintf(`{"ok":true,"as_of":{},"items":[%s],"next":%q}`, strings.Join(items, ","), next)
}

const (
	busySession = `{"session":"demo","title":"Tidy \u001b[2J up","status":"running","sequence":14,"events":14,"updated_at":"2026-11-30T12:01:00Z","last_event":{"type":"round.started","actor":"runner"},
		"loop":{"generation":"g","status":"running","iterations_started":2,"iterations_completed":1,"max_iterations":5,"rounds_started":7,"max_total_rounds":20},"waiting":0,"run":null,"new_field":1}`
	waitingSession = `{"session":"b","title":"","status":"waiting","sequence":3,"events":3,"updated_at":"2026-11-30T12:30:00Z","last_event":{"type":"tool.parked","actor":"runner"},
		"loop":{"status":"recovery_unsupported","reason":"owner_lost","iterations_started":2,"max_iterations":5},"waiting":2,"waiting_since":"2026-11-30T12:30:00Z"}`
	doneSession = `{"session":"c","status":"idle","sequence":9,"events":9,"updated_at":"2026-11-30T12:00:00Z","last_event":{"type":"run.finished","actor":"runner"},
		"loop":{"status":"budget_exhausted","iterations_completed":1,"max_iterations":5}}`
)

func TestSessionListAsksTheViews(t *testing.T) {
	f := &fake{views: map[string][]string{"sessions.list": {answerWithItems("", busySession, waitingSession, doneSession)}}}
	want := `SESSION  STATUS   LOOP                             WAITS      LAST ACTIVITY   TITLE
demo     running  iteration 2 of 5, round 7 of 20             59 minutes ago  Tidy \x1b[2J up
b        waiting  owner lost in iteration 2 of 5   2 for 30m  30 minutes ago
c        idle     budget exhausted, 1 of 5 done               1 hour ago
`
	r := culm(t, f, "session", "list", "--status", "running", "--text", "tidy up")
	if diff := cmp.Diff(want, r.out); diff != "" || r.status != exitOK || r.err != "" {
		t.Errorf("status %d, err %q (-want +got):\n%s", r.status, r.err, diff)
	}
	if want := []string{`sessions.list {"status":"running","text":"tidy up","limit":50}`}; !cmp.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
	wantJSON := `{"session":"demo","events":14,"title":"Tidy \u001b[2J up","status":"running","loop":{"generation":"g","status":"running","iterations_started":2,"iterations_completed":1,"max_iterations":5,"rounds_started":7,"max_total_rounds":20},"last_event":"round.started","sequence":14,"last_time":"2026-11-30T12:01:00Z"}`
	if r := culm(t, f, "session", "list", "--json"); strings.Split(r.out, "\n")[0] != wantJSON {
		t.Errorf("JSON:\n%s", r.out)
	}
}

// Ten thousand sessions are many pages, each asked for with the former's cursor.
func TestListsArePaged(t *testing.T) {
	pages := func() map[string][]string {
		var answers []string
		for page := range 20 {
			items := make([]string, 500)
			for i := range items {
				items[i] = fmt.Sprintf(`{"session":"s%d"}`, 500*page+i)
			}
			next := fmt.Sprint("after-", page)
			if page == 19 {
				next = ""
			}
			answers = append(answers, answerWithItems(next, items...))
		}
		return map[string][]string{"sessions.list": answers}
	}
	f := &fake{views: pages()}
	r := culm(t, f, "session", "list", "--limit", "0", "--json")
	if n := strings.Count(r.out, "\n"); n != 10_000 || r.status != exitOK || !strings.Contains(r.out, `"s9999"`) {
		t.Errorf("%d sessions, status %d, %s", n, r.status, r.err)
	}
	if len(f.asked) != 20 || f.asked[0] != `sessions.list {"limit":500}` || f.asked[19] != `sessions.list {"limit":500,"cursor":"after-18"}` {
		t.Errorf("%d queries, %q", len(f.asked), f.asked)
	}
	f = &fake{views: pages()}
	r = culm(t, f, "session", "list", "--limit", "700")
	if last := f.asked[len(f.asked)-1]; len(f.asked) != 2 || last != `sessions.list {"limit":200,"cursor":"after-0"}` {
		t.Errorf("asked %q", f.asked)
	}
	if !strings.HasSuffix(r.out, "and more; --limit 0 shows all\n") {
		t.Errorf("it does not say that there is more: %s", r.out[len(r.out)-100:])
	}
}

func TestSessionListWithoutViews(t *testing.T) {
	stored := map[string][]events.Record{
		"demo":      story(t, "demo", events.SessionCreated{Settings: events.Settings{Title: "Tidy \x1b[2J up"}}, events.MessageSubmitted{}),
		"_settings": story(t, "_settings", events.PolicyModeChanged{}),
	}
	want := "SESSION  EVENTS  LAST EVENT         LAST ACTIVITY   TITLE\n" +
		"demo     2       message.submitted  59 minutes ago  Tidy \\x1b[2J up\n"
	poorer := "culm: no query service answers, so this list is without status, loop and what waits\n"
	rebuilding := map[string][]string{"sessions.list": {`{"ok":false,"error":{"code":"unavailable","message":"the view messages is being computed anew"}}`}}
	for name, c := range map[string]struct {
		views map[string][]string
		err   string
	}{
		"nobody answers": {nil, poorer}, "views are computed anew": {rebuilding, poorer}, "views that have just begun": {map[string][]string{}, ""},
	} {
		if r := culm(t, &fake{stored: stored, views: c.views}, "session", "list"); r.out != want || r.status != exitOK || r.err != c.err {
			t.Errorf("%s: status %d, err %q\n%s", name, r.status, r.err, r.out)
		}
		if r := culm(t, &fake{stored: stored, views: c.views}, "session", "list", "--json"); r.err != "" || !strings.HasPrefix(r.out, `{"session":"demo","events":2,`) {
			t.Errorf("%s with --json: err %q\n%s", name, r.err, r.out)
		}
	}
	if r := culm(t, &fake{stored: stored}, "session", "list", "--status", "idle"); r.status != exitFailed || r.out != "" || !strings.Contains(r.err, noViewsText) {
		t.Errorf("a filter: status %d, %q, %q", r.status, r.out, r.err)
	}
	for _, f := range []*fake{{}, {views: map[string][]string{}}} {
		if r := culm(t, f, "session", "list"); !strings.Contains(r.out, "culm session create") || r.status != exitOK {
			t.Errorf("the empty list says %q", r.out)
		}
	}
	if r := culm(t, &fake{views: map[string][]string{}}, "session", "list", "--text", "x"); r.out != "no session has “x”; culm session list shows what there is\n" {
		t.Errorf("nothing found: %q", r.out)
	}
}

const noViewsText = "no query service answers: start the engine with its projector, or cmd/projector"

func TestOnlyViewsCanSearchAndCount(t *testing.T) {
	for _, args := range []string{"search x", "usage", "search x --json"} {
		if r := culm(t, &fake{}, strings.Fields(args)...); r.status != exitFailed || r.err != "culm: "+noViewsText+"\n" || r.out != "" {
			t.Errorf("%s: status %d, out %q, err %q", args, r.status, r.out, r.err)
		}
	}
	refused := map[string][]string{"messages.search": {`{"ok":false,"error":{"code":"session_not_found","message":"no view has it"}}`}}
	if r := culm(t, &fake{views: refused}, "search", "x", "--session", "demo"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") || !strings.Contains(r.err, "culm session create demo") {
		t.Errorf("no session: status %d, %q", r.status, r.err)
	}
}

// Without an engine nothing else is wrong: the list tells what the streams do,
// and everything else says that none answers.
func TestViewsWithoutAnEngine(t *testing.T) {
	const none = "no engine answers at nats://127.0.0.1:4222 (prefix agent)"
	for _, args := range []string{"search x", "usage", "pending", "session list --status idle"} {
		if r := culm(t, &fake{readErr: errNoEngine}, strings.Fields(args)...); r.status != exitFailed || r.out != "" || !strings.HasPrefix(r.err, "culm: "+none+"\n      start one: ") {
			t.Errorf("%s: status %d, out %q, err %q", args, r.status, r.out, r.err)
		}
	}
	some := map[string][]events.Record{"demo": story(t, "demo", events.SessionCreated{Kind: "root"})}
	for out, stored := range map[string]map[string][]events.Record{"no session yet\n": nil, "demo ": some} {
		r := culm(t, &fake{readErr: errNoEngine, stored: stored}, "session", "list")
		if r.status != exitOK || !strings.Contains(r.out, out) || !strings.HasPrefix(r.err, "culm: "+none+", so this list is without status, loop and what waits\n      start one: ") {
			t.Errorf("session list: status %d, out %q, err %q", r.status, r.out, r.err)
		}
	}
	if r := culm(t, &fake{}, "session", "list"); r.status != exitOK || r.out != "no session yet; culm session create NAME makes one\n" || !strings.HasPrefix(r.err, "culm: no query service answers, so ") {
		t.Errorf("with an engine: status %d, out %q, err %q", r.status, r.out, r.err)
	}
}

func TestSearch(t *testing.T) {
	found := `{"session":"demo","message_id":"m","role":"assistant","seq":14,"at":"2026-11-30T12:30:00Z","snippet":"…the \u0002next\u0003 \u0002dra\u0003ft\n\u001b[2J of it"}`
	views := func() *fake {
		return &fake{views: map[string][]string{"messages.search": {answerWithItems("", found)}}}
	}
	f := views()
	r := culm(t, f, "search", "next", "dra", "--session", "demo", "--limit", "2")
	if want := "demo 14  assistant, 30 minutes ago\n    …the next draft \\x1b[2J of it\n"; r.out != want || r.status != exitOK {
		t.Errorf("status %d, %s\n%s", r.status, r.err, r.out)
	}
	if want := []string{`messages.search {"text":"next dra","session":"demo","limit":2}`}; !cmp.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
	if r := culmAt(t, views(), true, "", "search", "next"); !strings.Contains(r.out, "the \x1b[1mnext\x1b[0m \x1b[1mdra\x1b[0mft \\x1b[2J of it") {
		t.Errorf("on a terminal: %q", r.out)
	}
	if r := culm(t, views(), "search", "next", "--json"); !strings.HasPrefix(r.out, `{"session":"demo","message_id":"m","role":"assistant",`) || !strings.Contains(r.out, `"seq":14,`) {
		t.Errorf("JSON: %s", r.out)
	}
}

func TestUsageIsSummed(t *testing.T) {
	item := func(what string, tokens int) string {
		return fmt.Sprintf(`{%s,"rounds":2,"usage":{"prompt":%d,"completion":1,"total":%d}}`, what, tokens, tokens+1)
	}
	for _, c := range []struct{ args, by, want string }{
		{"usage", answerWithItems("", item(`"session":"a"`, 9), item(`"session":"b"`, 1999)), "SESSION  ROUNDS  TOKENS IN  OUT  TOTAL\nb             2      1,999    1  2,000\na             2          9    1     10\nall           4      2,008    2  2,010\n"},
		{"usage --limit 1", answerWithItems("", item(`"session":"a"`, 9), item(`"session":"b"`, 1999)), "SESSION  ROUNDS  TOKENS IN  OUT  TOTAL\nb             2      1,999    1  2,000\nall           4      2,008    2  2,010\nand more; --limit 0 shows all\n"},
		{"usage --by model", answerWithItems("", item(`"provider":"p","model":"m"`, 9)), "MODEL  ROUNDS  TOKENS IN  OUT  TOTAL\np/m         2          9    1     10\n"},
		{"usage --by day", answerWithItems("", item(`"day":"2026-11-29"`, 9), item(`"day":"2026-11-30"`, 9)), "DAY         ROUNDS  TOKENS IN  OUT  TOTAL\n2026-11-30       2          9    1     10\n2026-11-29       2          9    1     10\nall              4         18    2     20\n"},
		{"usage --json", answerWithItems("", item(`"session":"a"`, 9)), `{"session":"a","rounds":2,"usage":{"prompt":9,"completion":1,"total":10}}` + "\n"},
		{"usage", answerWithItems(""), "no model has answered yet\n"},
	} {
		r := culm(t, &fake{views: map[string][]string{"usage.get": {c.by}}}, strings.Fields(c.args)...)
		if diff := cmp.Diff(c.want, r.out); diff != "" || r.status != exitOK {
			t.Errorf("%s: status %d, %s (-want +got):\n%s", c.args, r.status, r.err, diff)
		}
	}
}

// The last column gives way to the terminal; where nothing useful would be left
// of it, it is left out.
func TestTablesFitTheTerminal(t *testing.T) {
	for width, want := range map[int]string{
		0:  "A    TITLE\n123  a title of some length\n",
		20: "A    TITLE\n123  a title of som…\n",
		10: "A\n123\n",
	} {
		var out strings.Builder
		if err := (table{{"A", "TITLE"}, {"123", "a title of some length"}}).print(&out, width); err != nil || out.String() != want {
			t.Errorf("width %d: %v\n%s", width, err, out.String())
		}
	}
}

func TestPendingOfAllAsksTheViews(t *testing.T) {
	arguments := `"arguments":"{}","arguments_bytes":2,"arguments_digest":"` + events.Hash([]byte("{}")) + `"`
	approval := `{"session":"a","tool_call_id":"c1","message_id":"m-c1","kind":"approval","name":"Write","generation":"g",` + arguments + `,"since":"2026-11-30T12:00:00Z","since_seq":7,"age_ms":1,
		"question":{"question":"May it?"},"request":{"permission_type":"write_file","resource":"/x","allowed_decisions":["allow_once","deny_once"]}}`
	large := `{"session":"demo","tool_call_id":"c2","message_id":"m-c2","kind":"approval","name":"Write","omitted":true,"since":"2026-11-30T12:00:01Z","since_seq":3}`
	lost := `{"session":"d","tool_call_id":"u","message_id":"m-u","kind":"unknown","name":"Bash","generation":"g-u",` + arguments + `,"since":"2026-11-30T12:00:02Z","since_seq":2,"question":{"question":"Ran it?"}}`
	f := &fake{
		states: map[string]string{"demo": waits(parked("c1", "{}"), parked("c2", "{}"))},
		views:  map[string][]string{"approvals.list": {answerWithItems("more", approval), answerWithItems("", large, lost)}},
	}
	r := culm(t, f, "pending")
	for _, want := range []string{
		"a  approval of Write, 1 hour ago\n  call      c1\n  asks      May it?\n  wants     write_file /x\n  with      {}\n", // no reason is given, so the question is shown
		"demo  approval of Write, 1 hour ago\n  call      c2\n  wants     write_file /src/a.go\n  because   risk threshold, medium risk, default mode\n",
		"d  unknown outcome of Bash, 59 minutes ago\n  call      u\n  asks      Ran it?\n  with      {}\n  digest    " + events.Hash([]byte("{}")) + ", 2 bytes\n  allowed   allow_once, deny_once\n",
	} {
		if strings.Count(r.out, want) != 1 || r.status != exitOK || r.err != "" {
			t.Errorf("status %d, %s, missing %q in\n%s", r.status, r.err, want, r.out)
		}
	}
	if len(f.asked) != 2 || f.asked[1] != `approvals.list {"limit":500,"cursor":"more"}` {
		t.Errorf("asked %q", f.asked)
	}
	if r := culm(t, &fake{views: map[string][]string{}}, "pending"); r.out != "nothing waits for a person\n" {
		t.Errorf("nothing: %q", r.out)
	}
}

func TestAnItemWithoutAnyReason(t *testing.T) {
	it := item{Kind: kindApproval, Request: &events.PermissionRequest{Risk: "high"}}
	if got := it.because(); got != "high risk" {
		t.Errorf("because %q", got)
	}
	a := &app{now: func() time.Time { return noon }}
	it.Request = &events.PermissionRequest{PermissionType: "read", Resource: "/x"}
	if text := it.block(a, false); strings.Contains(text, "because") {
		t.Errorf("an empty reason is shown:\n%s", text)
	}
}
