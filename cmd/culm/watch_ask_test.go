package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"culm/aggregate"
)

// A quiet installation shows nothing for long, so it is said what is waited for.
func TestWatchSaysWhatItWaitsFor(t *testing.T) {
	for args, want := range map[string]string{
		"watch":             "culm: watching every session at nats://127.0.0.1:4222; Ctrl-C ends it\n",
		"watch --approvals": "culm: watching every session at nats://127.0.0.1:4222, and asking about what waits; Ctrl-C ends it\n",
	} {
		ctx, stop := context.WithCancel(t.Context())
		said := make(lineWriter, 10)
		ended := make(chan int, 1)
		a := &app{in: strings.NewReader(""), out: io.Discard, errOut: said, now: time.Now, place: time.UTC, dial: func(context.Context, *app) (backend, error) { return &fake{}, nil }}
		go func() { ended <- a.main(ctx, strings.Fields(args)) }()
		if line := said.next(t); line != want {
			t.Errorf("%s says %q", args, line)
		}
		stop()
		wantStatus(t, ended, exitOK)
	}
}

// What says nothing, a mistyped key or an option that is none, is asked again.
func TestWatchAsksAgain(t *testing.T) {
	plan := asksPlan(`"red","blue"`)
	notAnOption := aggregate.Reply{Error: &aggregate.Error{Code: aggregate.CodeOptionNotAllowed, Message: "only an option"}}
	fine := aggregate.Reply{OK: true, Sequence: 10, Event: &aggregate.EventRef{Sequence: 10}, Result: []byte(`{"run_id":"r2"}`)}
	for name, c := range map[string]struct {
		item, in string
		replies  []aggregate.Reply
		prompts  int
		sent     []string // what of each body
		out      string
	}{
		"a mistyped key":     {parked("c1", "{}"), "q\n\x1b[A\na\n", []aggregate.Reply{fine}, 3, []string{`"allow_once"`}, "that is none of the keys\n"},
		"then skipped":       {parked("c1", "{}"), "q\n\n", nil, 2, nil, "skipped; it goes on waiting: culm approve demo c1 or culm deny demo c1"},
		"not an option":      {plan, "green\nblue\n", []aggregate.Reply{notAnOption, fine}, 2, []string{`"green"`, `"blue"`}, "refused, option_not_allowed: only an option"},
		"a key not on offer": {lost(), "s\nd\n", []aggregate.Reply{fine}, 2, []string{`"deny_once"`}, "that is none of the keys\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{state: waits(c.item), replies: c.replies}
			var out strings.Builder
			a := &app{in: strings.NewReader(c.in), out: &out, errOut: io.Discard, now: time.Now, place: time.UTC, globals: globals{Timeout: patience}}
			q := newAsker(a, f, "demo", newScreen(a, a.style()))
			if err := q.askAll(t.Context(), "demo"); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if n := strings.Count(out.String(), "Enter to skip: "); n != c.prompts || !strings.Contains(out.String(), c.out) {
				t.Errorf("%d prompts in\n%s", n, out.String())
			}
			if len(f.sent) != len(c.sent) {
				t.Fatalf("sent %v", f.sent)
			}
			for i, s := range f.sent {
				if !strings.Contains(s.body, c.sent[i]) {
					t.Errorf("sent %s, want %s", s.body, c.sent[i])
				}
			}
			before := out.Len()
			if err := q.askAll(t.Context(), "demo"); err != nil || out.Len() != before {
				t.Errorf("the same item is asked about twice: %v\n%s", err, out.String())
			}
		})
	}
}

// Every event after which a person may be owed a question makes watch look: of
// each type there is a sample. A closed session takes no decision any more.
func TestMayAsk(t *testing.T) {
	samples, err := filepath.Glob("../../events/testdata/golden/*.json")
	if err != nil || len(samples) == 0 {
		t.Fatal(len(samples), err)
	}
	for _, name := range samples {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		eventType, _, _ := strings.Cut(filepath.Base(name), ".v")
		asks := bytes.Contains(b, []byte(`"unknown":[`)) || bytes.Contains(b, []byte(`"arguments_digest":`)) && strings.Contains(eventType, "park")
		asks = asks && eventType != "session.closed"
		if mayAsk(eventType) != asks {
			t.Errorf("%s: watch looks: %t", eventType, !asks)
		}
	}
}
