package show

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"culm/events"
)

// Style says how lines look. The zero value is plain text in UTC.
type Style struct {
	Color bool
	Place *time.Location // nil is UTC
	Dates bool           // the date before the time
	Width int            // of quoted text, in characters; 0 means 100
}

// tone is what a line is about; it becomes its colour.
type tone int

const (
	plain   tone = iota
	faint        // bookkeeping
	good         // something ended well
	bad          // something failed, was refused or is not known
	waiting      // a person is asked
	heard        // somebody said something
)

// Printer turns events into lines. It remembers the bounds of each session's
// loop, so that later events can be told as "iteration 2 of 3"; where it did
// not see the loop begin it says "iteration 2". Of calls it remembers what they
// wanted, so that a decision can be told with it. Not safe for concurrent use.
type Printer struct {
	style  Style
	bounds map[string]bounds          // by session
	calls  map[string]map[string]call // by session and id
}

// bounds are what a loop's later events do not repeat.
type bounds struct {
	generation            string
	iterations, maxRounds uint32
}

// NewPrinter returns a printer that has seen no event.
func NewPrinter(style Style) *Printer {
	if style.Place == nil {
		style.Place = time.UTC
	}
	if style.Width == 0 {
		style.Width = 100
	}
	return &Printer{style: style, bounds: map[string]bounds{}, calls: map[string]map[string]call{}}
}

// Know tells the printer the bounds of a loop whose begin it will not see.
func (p *Printer) Know(session, generation string, maxIterations, maxRounds uint32) {
	p.bounds[session] = bounds{generation, maxIterations, maxRounds}
}

// Record tells one stored event as a line without a line feed. Bytes that are
// no event, and events of unknown types, are told as such.
func (p *Printer) Record(r events.Record) string {
	e, err := events.Decode(r.Payload)
	switch {
	case errors.Is(err, events.ErrUnknownEvent):
		return p.line(&e, bad, fmt.Sprintf("unknown event %s version %d: a newer culm wrote it", Clean(e.Type), e.Version))
	case err != nil:
		return p.line(&events.Event{Session: r.Session, Seq: r.Seq}, bad, "can not be read: "+Clip(Clean(err.Error()), p.style.Width))
	}
	return p.Event(&e)
}

// Event tells one event as a line without a line feed.
func (p *Printer) Event(e *events.Event) string {
	p.learn(e)
	p.remember(e)
	t, text := p.sentence(e)
	return p.line(e, t, text)
}

// line sets the columns: time, session, sequence, actor, sentence.
func (p *Printer) line(e *events.Event, t tone, text string) string {
	layout := "15:04:05"
	if p.style.Dates {
		layout = "2006-01-02 15:04:05"
	}
	clock := strings.Repeat(" ", len(layout))
	if !e.Time.IsZero() {
		clock = e.Time.In(p.style.Place).Format(layout)
	}
	return fmt.Sprintf("%s  %s %s  %s  %s",
		p.paint(faint, clock), p.session(e.Session), p.paint(faint, fmt.Sprintf("%4d", e.Seq)),
		p.paint(faint, fmt.Sprintf("%-10s", Clean(e.Actor))), p.paint(t, text))
}

const (
	reset = "\x1b[0m"
	cyan  = "\x1b[36m"
)

var colours = map[tone]string{faint: "\x1b[2m", good: "\x1b[32m", bad: "\x1b[31m", waiting: "\x1b[33m", heard: "\x1b[1m"}

// paint colours text that is clean already.
func (p *Printer) paint(t tone, text string) string {
	c, ok := colours[t]
	if !p.style.Color || !ok {
		return text
	}
	return c + text + reset
}

func (p *Printer) session(name string) string {
	name = fmt.Sprintf("%-10s", Clean(name))
	if !p.style.Color {
		return name
	}
	return cyan + name + reset
}

// quote shows text from outside, clipped to the width of the style.
func (p *Printer) quote(s string) string { return Quote(s, p.style.Width) }

// sentence finds the words for the event by the noun of its type.
func (p *Printer) sentence(e *events.Event) (tone, string) {
	if e.Data == nil {
		return faint, fmt.Sprintf("%s: a type this culm does not know, to be passed over", Clean(e.Type))
	}
	noun, _, _ := strings.Cut(e.Type, ".")
	switch noun {
	case "session":
		return p.sessionWords(e.Data)
	case "message", "note":
		return p.messageWords(e.Data)
	case "run":
		return p.runWords(e)
	case "round":
		return p.roundWords(e)
	case "loop":
		return p.loopWords(e)
	case "tool":
		return p.toolWords(e)
	case "approval", "question":
		return p.decisionWords(e)
	case "replay":
		return p.replayWords(e)
	case "policy":
		return p.policyWords(e.Data)
	}
	return plain, Clean(e.Type)
}
