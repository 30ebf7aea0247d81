package show

import (
	"fmt"
	"strings"

	"culm/events"
)

// learn keeps the bounds that an event tells of.
func (p *Printer) learn(e *events.Event) {
	if d, ok := e.Data.(events.RunStarted); ok && d.Loop != nil {
		p.Know(e.Session, d.Loop.Generation, d.Loop.MaxIterations, d.Loop.MaxTotalRounds)
	}
}

func (p *Printer) loopWords(e *events.Event) (tone, string) {
	switch d := e.Data.(type) {
	case events.LoopStopRequested:
		if d.Loop == nil {
			return plain, "stop requested before the loop began: its run will not start" + leftOver(d.Voided, nil)
		}
		return plain, "stop requested: the round that is under way may end, none after it starts"
	case events.LoopStopped:
		return good, p.ended(e.Session, d.Loop)
	case events.LoopBudgetExhausted:
		return bad, p.ended(e.Session, d.Loop) + because(Clean(strings.ReplaceAll(d.Kind, "_", " ")))
	case events.LoopRecoveryRefused:
		return bad, fmt.Sprintf("loop is not continued by itself, its runner was lost after %s; a person continues or abandons it", p.counts(e.Session, d.Loop))
	case events.LoopAbandoned:
		return plain, "loop abandoned after " + p.counts(e.Session, d.Loop)
	}
	return plain, Clean(e.Type)
}

// ended tells how a loop stands at an end: "loop completed 3/3 in 5 rounds".
func (p *Printer) ended(session string, l events.Loop) string {
	status := strings.ReplaceAll(string(l.Status), "_", " ")
	if l.Status == events.StatusBudgetExhausted {
		status = "out of budget"
	}
	done := fmt.Sprintf("%d", l.IterationsCompleted)
	if b, ok := p.of(session, &l); ok {
		done += fmt.Sprintf("/%d", b.iterations)
	}
	return fmt.Sprintf("loop %s, %s in %s", Clean(status), done, Count(l.RoundsStarted, "round")) + because(Clip(Clean(l.Reason), p.style.Width))
}

// counts is how far a loop came: "1 of 3 iterations and 2 of 10 rounds".
func (p *Printer) counts(session string, l events.Loop) string {
	b, ok := p.of(session, &l)
	if !ok {
		return fmt.Sprintf("%s and %s", Count(l.IterationsCompleted, "iteration"), Count(l.RoundsStarted, "round"))
	}
	return fmt.Sprintf("%d of %s and %d of %s", l.IterationsCompleted, Count(b.iterations, "iteration"), l.RoundsStarted, Count(b.maxRounds, "round"))
}

// of finds the bounds of this very loop; without them they are zero.
func (p *Printer) of(session string, l *events.Loop) (bounds, bool) {
	if b := p.bounds[session]; b.generation == l.Generation {
		return b, true
	}
	return bounds{}, false
}

func (p *Printer) iteration(session string, l *events.Loop) string {
	b, _ := p.of(session, l)
	return Progress("iteration", l.IterationsStarted, b.iterations)
}

func (p *Printer) round(session string, l *events.Loop) string {
	b, _ := p.of(session, l)
	return Progress("round", l.RoundsStarted, b.maxRounds)
}

// Progress is "iteration 2 of 5", or "iteration 2" where the bound is not known.
func Progress(noun string, n, bound uint32) string {
	if bound == 0 {
		return fmt.Sprintf("%s %d", noun, n)
	}
	return fmt.Sprintf("%s %d of %d", noun, n, bound)
}
