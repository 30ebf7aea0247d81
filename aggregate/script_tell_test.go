package aggregate

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// tell says in one line what a command led to.
func (s *script) tell(r Reply) string {
	var b strings.Builder
	switch {
	case !r.OK:
		b.WriteString("refused " + r.Error.Code)
		if last := s.b.records(s.session); r.Sequence > 0 && len(last) > 0 {
			if e := last[len(last)-1]; e.Seq == r.Sequence && s.marks(e) && !r.Duplicate && e.Seq > s.seen() {
				fmt.Fprintf(&b, ", %d %s", e.Seq, e.Type)
			}
		}
	case r.Event == nil:
		b.WriteString("ok")
	default:
		fmt.Fprintf(&b, "%d %s", r.Event.Sequence, r.Event.Type)
	}
	if r.Duplicate {
		fmt.Fprintf(&b, " (duplicate, at %d)", r.Sequence)
	}
	if len(r.Result) > len("{}") {
		b.WriteString(" " + dull.ReplaceAllString(string(r.Result), "$1"))
	}
	s.names["\x00seen"] = strconv.FormatUint(s.head(), 10)
	return s.name(b.String())
}

// dull is what every claim says in the same words.
var dull = regexp.MustCompile(`"lease_ms":15000,|"roster":\{"primary":\{[^}]*\}\},|,"owner":"[^"]*","objective":"[^"]*"|"generation":"[^"]*",("revision")`)

func (s *script) head() uint64 {
	if all := s.b.records(s.session); len(all) > 0 {
		return all[len(all)-1].Seq
	}
	return 0
}

// seen is the head after the line before.
func (s *script) seen() uint64 {
	n, _ := strconv.ParseUint(s.names["\x00seen"], 10, 64)
	return n
}

// marks says that the event goes with a refusal.
func (s *script) marks(e events.Record) bool {
	return e.Type == "run.refused" || e.Type == "loop.recovery_refused"
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// name replaces UUIDs by short names.
func (s *script) name(out string) string {
	return uuidPattern.ReplaceAllStringFunc(out, func(id string) string {
		if _, known := s.names[id]; !known {
			s.names[id] = fmt.Sprintf("#%d", len(s.names)+1-s.hidden())
		}
		return s.names[id]
	})
}

func (s *script) hidden() int {
	if _, ok := s.names["\x00seen"]; ok {
		return 1
	}
	return 0
}

func (s *script) state() string {
	st := s.b.fold(s.session)
	var b strings.Builder
	if r := st.Run; r != nil {
		fmt.Fprintf(&b, "run %s %s cause=%s rounds=%d", r.ID, r.Status, r.Cause, r.Rounds)
		if r.CancelRequested {
			b.WriteString(" cancel_requested")
		}
		b.WriteString("\n")
	} else {
		b.WriteString("no run\n")
	}
	if l := st.Loop; l != nil {
		fmt.Fprintf(&b, "loop %s %s %d/%d/%d of %d/%d rev %d", l.Generation, l.Status, l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted, l.MaxIterations, l.MaxTotalRounds, l.Revision)
		if l.Reason != "" {
			b.WriteString(" reason=" + l.Reason)
		}
		if l.StopRequested {
			b.WriteString(" stop_requested")
		}
		if l.Abandoned {
			b.WriteString(" abandoned")
		}
		b.WriteString("\n")
	}
	for i := range st.Calls {
		c := &st.Calls[i]
		fmt.Fprintf(&b, "call %s %s", c.ID, c.Status)
		if c.Generation != "" {
			b.WriteString(" generation=" + c.Generation)
		}
		if len(c.Ledger) > 0 {
			fmt.Fprintf(&b, " ledger=%d", len(c.Ledger))
		}
		b.WriteString("\n")
	}
	if p := st.Spent; p != (Spent{}) {
		fmt.Fprintf(&b, "spent rounds=%d tokens=%d tool_calls=%d", p.Rounds, p.Tokens, p.ToolCalls)
		if p.Exhausted != "" {
			fmt.Fprintf(&b, " exhausted=%s summary_used=%t", p.Exhausted, p.SummaryUsed)
		}
		b.WriteString("\n")
	}
	if st.Session.Closed {
		b.WriteString("closed\n")
	}
	return b.String()
}

func (s *script) transcript(t *testing.T) string {
	r := s.engines[0].read(s.session, ReadQuery{Transcript: true})
	if !r.OK {
		return "refused " + r.Error.Code
	}
	var v struct {
		Messages []TranscriptMessage `json:"messages"`
	}
	if err := json.Unmarshal(r.State, &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range v.Messages {
		fmt.Fprintf(&b, "%d %s (%s) %q", m.Seq, m.Role, m.Origin, m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " %s:%s", c.ID, c.Name)
		}
		if m.Success != nil {
			fmt.Fprintf(&b, " of %s success=%t", m.ToolCallID, *m.Success)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *script) types() string {
	var b strings.Builder
	for _, r := range s.b.records(s.session) {
		fmt.Fprintf(&b, "%d %s\n", r.Seq, r.Type)
	}
	return b.String()
}

// fields is one field of the data of every event of a type.
func (s *script) fields(t *testing.T, kind, field string) string {
	var b strings.Builder
	for _, r := range s.b.records(s.session) {
		if r.Type != kind {
			continue
		}
		var e struct {
			Data map[string]jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal(r.Payload, &e); err != nil {
			t.Fatal(err)
		}
		value := e.Data[field]
		if value == nil {
			value = jsontext.Value("absent")
		}
		fmt.Fprintf(&b, "%d %s %s\n", r.Seq, e.Data["tool_call_id"], value)
	}
	return b.String()
}

func (s *script) next(t *testing.T) string {
	n, err := s.engines[0].h.Next(context.Background(), s.session)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(string(n.Kind))
	switch n.Kind {
	case StepModel:
		fmt.Fprintf(&b, " round=%d iteration=%d summary=%t", n.Round, n.Iteration, n.Summary)
	case StepFinish:
		b.WriteString(" " + n.Outcome)
	}
	for _, c := range n.Calls {
		b.WriteString(" start=" + c.ID)
	}
	for _, c := range n.Running {
		b.WriteString(" running=" + c.ID)
	}
	return b.String()
}

func (s *script) audit(t *testing.T) string {
	report, err := Audit(s.b.log.Read(context.Background(), s.session, 0, 0), AuditOptions{Session: s.session})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK() {
		return fmt.Sprintf("clean, %d events", report.Events)
	}
	var b strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%d %s\n", f.Seq, f.Kind)
	}
	return b.String()
}
