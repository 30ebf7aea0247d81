package explore

import (
	"fmt"

	"culm/events"
)

// ledger is what really happened, beside the state: what was allowed, started
// and run. Sets are bits, by the ordinal of a run or a generation.
type ledger struct {
	Started, Ended, Suspended, Cancelled uint16 // runs
	Approved, Replayed, Ran              uint32 // generations
	Dead                                 uint32 // generations approved before a cancel or stop was accepted
	Plain, RanPlain                      [2]bool
	DeadCall                             [2]bool // not started when a cancel was accepted
	Stopped                              bool    // the loop was asked to stop
	Closed                               bool
}

// sees takes an event into account; it returns what is wrong with it, or "".
func (l *ledger) sees(w *world, e *engine, f fact, before *node) string {
	run := uint16(1) << f.run
	if l.Closed {
		return "an event after session.closed"
	}
	switch d := f.Data.(type) {
	case events.RunStarted:
		return l.runStarts(e, d)
	case events.RunFinished:
		return l.runEnds(e, d.RunID)
	case events.RunRefused:
		return l.runEnds(e, d.RunID)
	case events.RunInterrupted:
		return l.runEnds(e, d.RunID)
	case events.SessionClosed:
		l.Closed = true
		if d.RunID != "" {
			return l.runEnds(e, d.RunID)
		}
	case events.RunCancelRequested:
		l.Cancelled |= run
		l.kill(before)
	case events.LoopStopRequested:
		l.Stopped = true
		l.Dead |= l.Approved
	case events.ApprovalDecided:
		if it := (item{call: callOf(d.ToolCallID), gen: e.gens.number(d.Generation)}); !before.waits(it) {
			return "it does not wait under that generation"
		}
		if d.Decision == "allow_once" {
			l.Approved |= 1 << e.gens.number(d.Generation)
		}
	case events.RoundStarted, events.ToolStarted, events.ReplayStarted:
		if l.Cancelled&run != 0 {
			return "it starts after the cancel of its run"
		}
		return l.starts(w, e, f, before)
	}
	return ""
}

func (l *ledger) runStarts(e *engine, d events.RunStarted) string {
	run := uint16(1) << e.runs.number(d.RunID)
	switch {
	case l.Started&run != 0:
		return "the run has started before"
	case l.Started&^l.Ended&^l.Suspended != 0:
		return "another run lives"
	}
	l.Started |= run
	return ""
}

func (l *ledger) runEnds(e *engine, id string) string {
	run := uint16(1) << e.runs.number(id)
	if l.Ended&run != 0 {
		return "the run has ended before"
	}
	l.Ended |= run
	return ""
}

// kill: what is not started when a cancel is accepted never starts.
func (l *ledger) kill(n *node) {
	l.Dead |= l.Approved
	for i := range n.s.Calls {
		if c := &n.s.Calls[i]; c.Status == "open" || c.Status == "parked" || c.Status == "decided" {
			l.DeadCall[callOf(c.ID)] = true
		}
	}
}

// starts judges what may begin.
func (l *ledger) starts(w *world, e *engine, f fact, before *node) string {
	switch d := f.Data.(type) {
	case events.RoundStarted:
		if l.Stopped && d.Iteration > 0 {
			return "a round of the loop after its stop"
		}
	case events.ToolStarted:
		c := callOf(d.ToolCallID)
		switch {
		case c == 0 && before.s.Session.Mode != "auto":
			return "the policy asks about it, and nobody was asked"
		case l.Plain[c]:
			return "it has started before"
		case l.DeadCall[c]:
			return "it was not started when the cancel was accepted"
		}
		l.Plain[c] = true
		return l.mayMutate(w, before)
	case events.ReplayStarted:
		g, c := uint32(1)<<e.gens.number(d.Generation), callOf(d.ToolCallID)
		switch {
		case l.Approved&g == 0:
			return "nobody has approved it"
		case l.Replayed&g != 0:
			return "its approval was used before"
		case l.Dead&g != 0, l.DeadCall[c]:
			return "a cancel or a stop came first"
		}
		l.Replayed |= g
		return l.mayMutate(w, before)
	}
	return ""
}

func (l *ledger) mayMutate(w *world, before *node) string {
	switch {
	case before.s.Session.Plan != nil:
		return "the session is in plan mode"
	case w.At.denies:
		return "the policy denies it"
	}
	return ""
}

// runs notes that a call really runs, as it was started with the generation, 0
// for none; it returns what is wrong with that, or "".
func (l *ledger) runs(call, gen uint8) string {
	if gen == 0 {
		switch {
		case l.RanPlain[call]:
			return fmt.Sprintf("%s runs a second time for one start", callName(call))
		case !l.Plain[call]:
			return fmt.Sprintf("%s runs without a start", callName(call))
		}
		l.RanPlain[call] = true
		return ""
	}
	g := uint32(1) << gen
	switch {
	case l.Ran&g != 0:
		return fmt.Sprintf("%s runs a second time for generation %d", callName(call), gen)
	case l.Approved&g == 0 || l.Replayed&g == 0:
		return fmt.Sprintf("%s runs for generation %d, approved %t, started %t", callName(call), gen, l.Approved&g != 0, l.Replayed&g != 0)
	}
	l.Ran |= g
	return ""
}
