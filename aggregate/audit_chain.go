package aggregate

import (
	"errors"
	"fmt"

	"culm/events"
)

// link is one stored event as the auditor compares it.
type link struct {
	e      events.Event
	stored []byte
	at     uint64 // where it lies, as long as nothing was put in or taken out
	seq    uint64 // where it lies really
}

// place follows the chain over one event. An event that stands where an earlier
// one is due is held back: the next one shows whether the two changed places or
// whether what lies between them is gone.
func (a *auditor) place(l link) {
	if a.ahead != nil {
		held := *a.ahead
		a.ahead = nil
		if a.settle(held, l) {
			return
		}
		l.at = l.seq - a.shift
	}
	if a.insertion(l) {
		a.shift++
		a.state.Head, a.before = a.before.head, nil
		l.at = l.seq - a.shift
	}
	a.before = nil
	err := a.state.Head.Check(&l.e, l.at)
	switch {
	case errors.Is(err, events.ErrOrder) && l.at == a.state.Head.Seq+1 && l.e.Seq > l.at:
		a.ahead = &l
		return
	case errors.Is(err, events.ErrDoubled):
		a.find(l.seq, FindingDoubled, err)
		if l.at != l.e.Seq { // put in between: what follows lies one further
			a.shift++
		}
		return
	case errors.Is(err, events.ErrBirth):
		a.find(l.seq, FindingForeign, err)
		a.skip(l.seq, l.at, l.stored)
		return
	case err != nil:
		kind, seq := chainFinding(err, a.state.Head.Seq, l.seq)
		a.find(seq, kind, err)
		a.shift = l.seq - l.e.Seq
	}
	a.advance(l)
}

// settle judges an event that stood too early by the one after it; done says
// that both are accounted for.
func (a *auditor) settle(held, next link) (done bool) {
	due := a.state.Head.Seq + 1
	switch {
	case next.e.Seq == due: // the two changed places
		a.find(held.seq, FindingOutOfOrder, fmt.Errorf("event %d stands in the place of %d", held.e.Seq, due))
		a.find(next.seq, FindingOutOfOrder, fmt.Errorf("event %d stands in the place of %d", due, held.e.Seq))
		a.advance(next)
		if held.e.Seq == due+1 {
			a.advance(held)
		}
		return true
	case next.e.Prevhash == events.Hash(held.stored): // what lies between is gone, the rest moved up
		a.find(due, FindingMissing, fmt.Errorf("event %d follows %d", held.e.Seq, due-1))
		a.shift = held.seq - held.e.Seq
		a.advance(held)
	default:
		a.find(held.seq, FindingOutOfOrder, fmt.Errorf("event %d stands in the place of %d", held.e.Seq, due))
		a.skip(held.seq, held.at, held.stored)
	}
	return false
}

// insertion says that the event goes on from before what was passed over last:
// that had been put in, it replaced nothing.
func (a *auditor) insertion(l link) bool {
	b := a.before
	return b != nil && b.head.Hash != "" && l.e.Prevhash == b.head.Hash && l.e.Seq == b.head.Seq+1 && l.seq == b.seq+1
}

// advance takes the event as the next of the log.
func (a *auditor) advance(l link) {
	if l.e.Data == nil || a.broken {
		a.state.Head = a.state.Head.Next(&l.e, l.stored)
	} else {
		a.state.apply(&l.e, l.stored)
		if err := a.state.Validate(); err != nil {
			a.find(l.seq, FindingInvariant, err)
		}
	}
	a.note(a.state.Head)
}

// passed is what the auditor went over without taking it for an event of the log.
type passed struct {
	head events.Head // before it
	seq  uint64
}

// skip passes over bytes that are no event of the log: the chain goes on from
// their hash.
func (a *auditor) skip(seq, at uint64, stored []byte) {
	a.before = &passed{head: a.state.Head, seq: seq}
	a.state.Head.Seq, a.state.Head.Hash = at, events.Hash(stored)
	a.note(a.state.Head)
}

// chainFinding says what kind of damage a chain fault is, and at which event.
func chainFinding(err error, head, at uint64) (kind string, seq uint64) {
	switch {
	case errors.Is(err, events.ErrGap):
		return FindingMissing, head + 1
	case errors.Is(err, events.ErrHash):
		return FindingChanged, head
	}
	return FindingOutOfOrder, at
}
