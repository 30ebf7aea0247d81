package aggregate

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/events"
)

// auditLog is a whole log of ten events, and one of another session.
func auditLog(t *testing.T) (log, other []events.Record) {
	t.Helper()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p", "loop": obj{"max_iterations": 2, "max_total_rounds": 5}})
	for range 2 {
		r := result(t, h.must("round.start", nil))
		h.must("round.finish", obj{"round": r["round"], "message": obj{"content": "answer"}})
	}
	h.must("run.finish", obj{"outcome": "ok"})
	e.must("s", "message.submit", obj{"content": "words"})
	e.must("s", "message.submit", obj{"content": "more words"})
	e.must("t", "session.create", nil)
	e.must("t", "message.submit", obj{"content": "words"})
	return b.records("s"), b.records("t")
}

func found(r AuditReport) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%d %s", f.Seq, f.Kind))
	}
	return out
}

// renumber lays the records one after the other, as a log that was written anew.
func renumber(records []events.Record) []events.Record {
	out := slices.Clone(records)
	for i := range out {
		out[i].Seq = uint64(i + 1)
	}
	return out
}

func at(i int, r events.Record) func([]events.Record) []events.Record {
	return func(log []events.Record) []events.Record { return slices.Insert(log, i, r) }
}

// edit changes text of the event at index i.
func edit(i int, old, replacement string) func([]events.Record) []events.Record {
	return func(log []events.Record) []events.Record {
		text := string(log[i].Payload)
		if !strings.Contains(text, old) {
			panic("the event does not hold " + old)
		}
		log[i].Payload = []byte(strings.Replace(text, old, replacement, 1))
		return log
	}
}

// TestAudit_Findings: each damage has its own kind, at the
// right sequence, and nothing beside it.
func TestAudit_Findings(t *testing.T) {
	t.Parallel()
	log, other := auditLog(t)
	if len(log) != 10 {
		t.Fatalf("%d events", len(log))
	}
	remove := func(i int) func([]events.Record) []events.Record {
		return func(log []events.Record) []events.Record { return slices.Delete(log, i, i+1) }
	}
	swap := func(i, j int) func([]events.Record) []events.Record {
		return func(log []events.Record) []events.Record {
			log[i].Payload, log[j].Payload = log[j].Payload, log[i].Payload
			log[i].Type, log[j].Type = log[j].Type, log[i].Type
			return log
		}
	}
	whole := events.Head{Seq: 10, Hash: events.Hash(log[9].Payload)}
	for name, c := range map[string]struct {
		change func([]events.Record) []events.Record
		head   events.Head
		want   []string
	}{
		"whole":                        {nil, events.Head{}, []string{}},
		"whole with its head":          {nil, whole, []string{}},
		"whole with an earlier head":   {nil, events.Head{Seq: 4, Hash: events.Hash(log[3].Payload)}, []string{}},
		"one doubled":                  {at(5, log[4]), whole, []string{"5 doubled"}},
		"one doubled, laid anew":       {chain(at(5, log[4]), renumber), whole, []string{"6 doubled"}},
		"the last one doubled":         {chain(at(10, log[9]), renumber), whole, []string{"11 doubled"}},
		"one removed":                  {remove(4), whole, []string{"5 missing"}},
		"two removed":                  {chain(remove(4), remove(4)), whole, []string{"5 missing"}},
		"one removed, laid anew":       {chain(remove(4), renumber), whole, []string{"5 missing"}},
		"two removed, laid anew":       {chain(remove(4), remove(4), renumber), whole, []string{"5 missing"}},
		"the last but one, laid anew":  {chain(remove(8), renumber), whole, []string{"9 missing"}},
		"the first removed":            {remove(0), whole, []string{"1 missing"}},
		"two neighbours swapped":       {swap(4, 5), whole, []string{"5 out_of_order", "6 out_of_order"}},
		"the last two swapped":         {swap(8, 9), whole, []string{"9 out_of_order", "10 out_of_order"}},
		"words changed":                {edit(8, `"words"`, `"swords"`), whole, []string{"9 changed"}},
		"one byte changed":             {edit(3, `"iteration":1`, `"iteration":2`), whole, []string{"4 changed"}},
		"the last changed":             {edit(9, "more", "less"), whole, []string{"10 changed"}},
		"the last changed, no head":    {edit(9, "more", "less"), events.Head{}, []string{}},
		"an event changed to no event": {edit(4, `{"specversion"`, `["specversion"`), whole, []string{"5 malformed", "5 changed"}},
		"the first is no event":        {edit(0, `{"specversion"`, `["specversion"`), whole, []string{"1 malformed", "1 changed"}},
		"cut off":                      {func(l []events.Record) []events.Record { return l[:7] }, whole, []string{"8 cut_off"}},
		"cut off, no head":             {func(l []events.Record) []events.Record { return l[:7] }, events.Head{}, []string{}},
		"empty with a head":            {func([]events.Record) []events.Record { return nil }, whole, []string{"1 cut_off"}},
		"another lifetime":             {edit(4, `"birth":"01`, `"birth":"02`), whole, []string{"5 foreign", "5 changed"}},
		"another session put in":       {chain(at(5, other[1]), renumber), whole, []string{"6 foreign"}},
		"another session in its place": {func(l []events.Record) []events.Record {
			l[4].Payload, l[4].Type = other[1].Payload, other[1].Type
			return l
		}, whole, []string{"5 foreign", "5 changed"}},
		"garbage put in":                {chain(at(5, events.Record{Payload: []byte("garbage")}), renumber), whole, []string{"6 malformed"}},
		"an unknown type":               {edit(8, "message.submitted\",\"subject", "message.uttered\",\"subject"), whole, []string{"9 malformed", "9 changed"}},
		"a newer version":               {edit(8, "submitted:1", "submitted:2"), whole, []string{"9 unknown_event", "9 changed"}},
		"the subject of another type":   {func(l []events.Record) []events.Record { l[4].Type = "run.finished"; return l }, whole, []string{"5 malformed"}},
		"changed, and one removed":      {chain(edit(2, `"runner":"r1"`, `"runner":"r2"`), remove(7)), whole, []string{"3 changed", "8 missing"}},
		"the noted head was another":    {nil, events.Head{Seq: 4, Hash: events.Hash(nil)}, []string{"4 changed"}},
		"the noted head without a hash": {nil, events.Head{Seq: 4}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := slices.Clone(log)
			if c.change != nil {
				records = c.change(records)
			}
			report, err := Audit(sequence(records), AuditOptions{Session: "s", Head: c.head})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, found(report)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, report.Findings)
			}
			if report.OK() != (len(c.want) == 0) || report.Events != uint64(len(records)) {
				t.Errorf("ok %t, %d events of %d", report.OK(), report.Events, len(records))
			}
		})
	}
	t.Run("other sessions are fine", func(t *testing.T) {
		t.Parallel()
		report, err := Audit(sequence(other), AuditOptions{})
		if err != nil || !report.OK() || report.Session != "t" || report.First != 1 || report.Head.Seq != 2 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// chain applies changes one after the other.
func chain(changes ...func([]events.Record) []events.Record) func([]events.Record) []events.Record {
	return func(log []events.Record) []events.Record {
		for _, change := range changes {
			log = change(log)
		}
		return log
	}
}

// forge writes the log anew with the data of one event changed, its chain whole:
// what only the rules can find.
func forge(t *testing.T, log []events.Record, i int, change func(events.Data) events.Data) []events.Record {
	t.Helper()
	out := slices.Clone(log)
	for n := range out {
		e, err := events.Decode(out[n].Payload)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			e.Prevhash = events.Hash(out[n-1].Payload)
		}
		if n == i {
			e.Data = change(e.Data)
		}
		if out[n].Payload, err = events.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestAudit_BrokenInvariant: a log that is chained well and tells what cannot
// have happened is found at the event that says so.
func TestAudit_BrokenInvariant(t *testing.T) {
	t.Parallel()
	log, _ := auditLog(t)
	forged := forge(t, log, 4, func(d events.Data) events.Data {
		f, _ := d.(events.RoundFinished)
		l := *f.Loop
		l.IterationsCompleted = 5
		f.Loop = &l
		return f
	})
	report, err := Audit(sequence(forged), AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"5 invariant"}, found(report)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if _, err := Fold(sequence(forged)); !errors.Is(err, ErrMalformedState) || !errors.Is(err, ErrInvariant) {
		t.Errorf("fold: %v", err)
	}
}

// TestAudit_ReadError: an audit that cannot read on says so, and how far it came.
func TestAudit_ReadError(t *testing.T) {
	t.Parallel()
	log, _ := auditLog(t)
	broken := errors.New("no connection")
	var records iter.Seq2[events.Record, error] = func(yield func(events.Record, error) bool) {
		for _, r := range log[:3] {
			if !yield(r, nil) {
				return
			}
		}
		yield(events.Record{}, broken)
	}
	report, err := Audit(records, AuditOptions{})
	if !errors.Is(err, broken) || report.Events != 3 || report.Head.Seq != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestState_Validate_Calls: logs whose calls rest on nothing are malformed, not
// a panic of whoever shows them.
func TestState_Validate_Calls(t *testing.T) {
	t.Parallel()
	ref := events.CallRef{ToolCallID: "a", MessageID: "m.0", Name: "Write"}
	for name, d := range map[string]events.Data{
		"replayed without approval":   events.ReplayStarted{CallRef: ref, Generation: testGeneration},
		"parked under no generation":  events.ToolParked{CallRef: ref, Parked: events.Parked{Kind: itemApproval, Request: &events.PermissionRequest{}}},
		"unknown under no generation": events.RunInterrupted{RunID: "r", Unknown: []events.UnknownCall{{ToolCallID: "a"}}},
		"suspended and nothing waits": events.ToolFinished{CallRef: ref, Suspends: true},
	} {
		s := &State{Run: &Run{ID: "r", Status: runLive, Fence: 3}, Calls: []Call{{ToolCall: events.ToolCall{ID: "a"}, MessageID: "m.0", Status: CallOpen}}}
		Evolve(s, &events.Event{Type: d.EventType(), Seq: 9, Data: d})
		if err := s.Validate(); !errors.Is(err, ErrInvariant) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
