package aggregate

import (
	"errors"
	"fmt"
	"iter"

	"culm/events"
)

// Kinds of audit findings.
const (
	FindingChanged      = "changed"       // a payload is not the one its successor was chained to
	FindingMissing      = "missing"       // a sequence was passed over, or lost at the end
	FindingDoubled      = "doubled"       // an event stands there twice
	FindingOutOfOrder   = "out_of_order"  // events changed places
	FindingForeign      = "foreign"       // an event of another session or lifetime
	FindingMalformed    = "malformed"     // bytes that are no event
	FindingUnknownEvent = "unknown_event" // a type or version newer than this program
	FindingInvariant    = "invariant"     // a state that no accepted commands lead to
	FindingCutOff       = "cut_off"       // the log ends before the head that was noted down
)

// Finding is one thing that is wrong with a log.
type Finding struct {
	Seq    uint64 `json:"seq"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// AuditOptions say what the auditor knows besides the log.
type AuditOptions struct {
	// Session that the log must be of; "" takes that of the first event.
	Session string
	// Head that was noted down earlier; the log must contain it. Seq 0 for none.
	Head events.Head
}

// AuditReport is the result of an audit.
type AuditReport struct {
	Session  string      `json:"session"`
	Birth    string      `json:"birth"`
	Events   uint64      `json:"events"` // events read
	First    uint64      `json:"first"`  // sequence of the first one, 0 for none
	Head     events.Head `json:"head"`   // of the last event that could be chained
	Findings []Finding   `json:"findings"`
}

// OK says that nothing was found.
func (r *AuditReport) OK() bool { return len(r.Findings) == 0 }

// Audit reads a log raw, as it is stored: checks the chain, decodes, folds step
// by step, checks the invariants after each event, and names what is wrong and
// where. After a finding it goes on from the event found, to name further
// damage, but folds no more. A read error is returned as it is; the report then
// says how far it came.
func Audit(records iter.Seq2[events.Record, error], opts AuditOptions) (AuditReport, error) {
	a := &auditor{opts: opts, state: &State{Head: events.Head{Session: opts.Session}}, report: AuditReport{Session: opts.Session, Findings: []Finding{}}}
	for r, err := range records {
		if lost, ok := errors.AsType[*events.LostError](err); ok {
			a.lost = lost
			break
		}
		if err != nil {
			return a.report, err
		}
		a.record(r)
	}
	a.end()
	return a.report, nil
}

type auditor struct {
	opts   AuditOptions
	state  *State
	broken bool // the fold has stopped
	report AuditReport
	noted  bool // the noted head was met
	// shift is how much further events lie than they should, because others
	// were put in (or taken out, then it wraps around).
	shift  uint64
	ahead  *link   // an event that stood too early
	before *passed // what was passed over last
	lost   *events.LostError
}

func (a *auditor) find(seq uint64, kind string, err error) {
	a.broken = true
	a.report.Findings = append(a.report.Findings, Finding{Seq: seq, Kind: kind, Detail: err.Error()})
}

func (a *auditor) record(r events.Record) {
	a.report.Events++
	if a.report.First == 0 {
		a.report.First = r.Seq
	}
	e, err := events.Decode(r.Payload)
	if err == nil && r.Type != "" && r.Type != e.Type {
		err = fmt.Errorf("%w: %s is stored under the subject of %s", events.ErrMalformed, e.Type, r.Type)
	}
	switch {
	case errors.Is(err, events.ErrUnknownEvent):
		a.find(r.Seq, FindingUnknownEvent, err)
	case err != nil:
		a.find(r.Seq, FindingMalformed, err)
		a.skip(r.Seq, r.Seq-a.shift, r.Payload)
		return
	}
	a.name(&e)
	a.place(link{e: e, stored: r.Payload, at: r.Seq - a.shift, seq: r.Seq})
	a.report.Head = a.state.Head
}

// name takes session and birth from the first event that can be read.
func (a *auditor) name(e *events.Event) {
	if a.report.Session == "" {
		a.report.Session = e.Session
	}
	if a.report.Birth == "" {
		a.report.Birth = e.Birth
	}
	if h := &a.state.Head; h.Hash != "" && h.Birth == "" { // what came before could not be read
		h.Birth = e.Birth
	}
}

// note compares with the head that was noted down.
func (a *auditor) note(h events.Head) {
	if a.opts.Head.Seq != h.Seq || h.Seq == 0 || a.noted {
		return
	}
	a.noted = true
	if a.opts.Head.Hash != "" && a.opts.Head.Hash != h.Hash {
		a.find(h.Seq, FindingChanged, fmt.Errorf("event %d is not the one whose hash was noted down", h.Seq))
	}
}

func (a *auditor) end() {
	if held := a.ahead; held != nil { // the last event, and those before it are gone
		a.find(a.state.Head.Seq+1, FindingMissing, fmt.Errorf("event %d follows %d", held.e.Seq, a.state.Head.Seq))
		a.advance(*held)
	}
	if a.lost != nil {
		a.find(a.lost.First, FindingMissing, a.lost)
	}
	if last := a.state.Head.Seq; a.opts.Head.Seq > last {
		a.find(last+1, FindingCutOff, fmt.Errorf("the log ends at %d; it once reached %d", last, a.opts.Head.Seq))
	}
	a.report.Head = a.state.Head
}
