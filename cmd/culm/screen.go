package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
	"culm/internal/show"
)

// screen prints events and deltas as they come, from any goroutine.
type screen struct {
	app     *app
	mu      sync.Mutex
	printer *show.Printer
	open    string // whose delta text was printed last, "" for none
	midLine bool   // the cursor stands behind it, in the same line
	asking  bool   // a person is being asked: lines wait
	held    []string
}

// hold keeps what comes from now on for release.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endText()
	s.asking = true
}

// release prints what was held.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.held {
		fmt.Fprintln(s.app.out, line)
	}
	s.asking, s.held = false, nil
}

// note says something on standard error, between the lines.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endText()
	s.app.complain(text, "")
}

func newScreen(a *app, style show.Style) *screen {
	return &screen{app: a, printer: show.NewPrinter(style)}
}

// learn asks for the bounds of the session's loop, for a watcher who comes in
// the middle. Without an answer the lines say less, nothing else.
func (s *screen) learn(ctx context.Context, b backend, session string) {
	if session == "" || s.app.JSON {
		return
	}
	r, err := s.app.read(ctx, b, session, aggregate.ReadQuery{})
	if err != nil {
		return
	}
	if v, err := viewOf(r); err == nil && v.Loop != nil {
		s.printer.Know(session, v.Loop.Generation, v.Loop.MaxIterations, v.Loop.MaxTotalRounds)
	}
}

// record prints one stored event.
func (s *screen) record(r events.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app.JSON {
		return s.app.printRaw(r.Payload)
	}
	if s.asking {
		s.held = append(s.held, s.app.wrapped(s.printer.Record(r)))
		return nil
	}
	s.endText()
	_, err := fmt.Fprintln(s.app.out, s.app.wrapped(s.printer.Record(r)))
	return err
}

// delta prints the text of a delta behind the text before it; with --json the
// delta as it came, in an object that no event looks like.
func (s *screen) delta(session, run string, raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app.JSON {
		if v := jsontext.Value(raw); v.IsValid() {
			_ = s.app.printJSON(data{"session": session, "run": run, "delta": v})
		}
		return
	}
	var d bus.Delta
	if json.Unmarshal(raw, &d) != nil || d.Text == "" || s.asking {
		return
	}
	kind := d.Kind
	if d.Attempt > 1 { // what stands above of this round is void
		kind = fmt.Sprintf("%s, attempt %d", kind, d.Attempt)
	}
	if who := session + " " + run + " " + kind; who != s.open {
		s.endText()
		fmt.Fprintf(s.app.out, "  %s %s: ", show.Clean(session), show.Clean(kind))
		s.open = who
	}
	fmt.Fprint(s.app.out, show.CleanBlock(d.Text))
	s.midLine = !strings.HasSuffix(d.Text, "\n")
}

// endText begins a new line after delta text, if there was any.
func (s *screen) endText() {
	if s.open != "" && s.midLine {
		fmt.Fprintln(s.app.out)
	}
	s.open = ""
}
