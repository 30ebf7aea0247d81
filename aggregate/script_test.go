package aggregate

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/go-json-experiment/json"

	"culm/aggregate/routing"
	"culm/events"
)

// TestScenarios plays the stories of testdata/scenarios over the real handler
// and the log in memory; script tells what a story can say. Regenerate with
// -rewrite, and commit only what you can explain.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := newScript(t)
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				s.b.t = t
				return s.directive(t, d)
			})
		})
	}
}

// script plays one story. Directives:
//
//	play       one command a line; prints what each led to
//	state      run, loop, waiting items and replays of the fold
//	transcript the messages
//	log        the types of the stored events
//	next       what the outside owes the session
//	crash      the runner dies: its lease runs out
//	sweep      the engine looks after its sessions
//	restart    a new engine over the same log
//	config     configuration: mode=… providers=a,b policy=N
//	fault      the next append fails: before or after it was stored
//	audit      the findings
//	session    the session that the following lines speak of
//
// A line of play is: options, then a command name and its JSON body, or one of
// the short forms of sugar. Options: id=, as=, expect=, hold=N (an earlier
// claim), engine=N, cmd=ID of an earlier line. $run, $gen(call), $loop and $birth
// stand for what the session holds. UUIDs are printed as #1, #2 in order of
// appearance.
type script struct {
	b       *bench
	engines []*engine
	session string
	holds   map[string][]obj
	names   map[string]string
	last    map[string]Request // by command id, to send again
	lines   int
}

func newScript(t *testing.T) *script {
	b := newBench(t)
	return &script{b: b, engines: []*engine{b.engine()}, session: "s", holds: map[string][]obj{}, names: map[string]string{}, last: map[string]Request{}}
}

func (s *script) directive(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "play":
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			if line = strings.TrimSpace(line); line != "" {
				out.WriteString(s.play(t, line) + "\n")
			}
		}
		return out.String()
	case "state":
		return s.name(s.state())
	case "transcript":
		return s.name(s.transcript(t))
	case "log":
		return s.types()
	case "next":
		return s.name(s.next(t))
	case "crash":
		s.b.leases.expire(s.session)
	case "sweep":
		if err := s.engines[0].h.Sweep(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
	case "restart":
		s.engines = append([]*engine{s.b.engine()}, s.engines...)
	case "session":
		s.session = d.CmdArgs[0].Key
	case "config":
		s.configure(t, d)
	case "fault":
		fault := events.FaultBefore
		if d.CmdArgs[0].Key == "after" {
			fault = events.FaultAfter
		}
		s.b.log.FailAppends(events.FailNth(s.b.log.Appends()+1, fault))
	case "audit":
		return s.audit(t)
	default:
		t.Fatalf("no directive %q", d.Cmd)
	}
	return ""
}

func (s *script) configure(t *testing.T, d *datadriven.TestData) {
	s.b.config = Config{}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "mode":
			s.b.config.Mode = a.Vals[0]
		case "providers":
			s.b.config.Routing = routing.Config{}
			for _, id := range a.Vals {
				s.b.config.Routing.Instances = append(s.b.config.Routing.Instances, routing.Instance{ID: id, Type: routing.TypeRecorded, Enabled: true})
			}
		default:
			t.Fatalf("no setting %q", a.Key)
		}
	}
}

// play sends one line's command and says what it led to.
func (s *script) play(t *testing.T, line string) string {
	var opts []opt
	e, holdNo, again := s.engines[0], 0, ""
	s.lines++
	id := fmt.Sprintf("line-%d", s.lines)
	for {
		word, rest, _ := strings.Cut(line, " ")
		key, value, isOption := strings.Cut(word, "=")
		if !isOption || strings.ContainsAny(key, ".{") {
			break
		}
		line = strings.TrimSpace(rest)
		switch key {
		case "id":
			id = value
		case "as":
			opts = append(opts, as(value))
		case "expect":
			n, _ := strconv.ParseUint(value, 10, 64)
			opts = append(opts, expecting(n))
		case "hold":
			holdNo, _ = strconv.Atoi(value)
		case "engine":
			n, _ := strconv.Atoi(value)
			for len(s.engines) < n {
				s.engines = append(s.engines, s.b.engine())
			}
			e = s.engines[n-1]
		case "cmd":
			again = value
		default:
			t.Fatalf("no option %q", key)
		}
	}
	if again != "" {
		return s.tell(e.send(s.last[again]))
	}
	name, body := s.sugar(t, line)
	body = s.expand(body)
	if body == "" {
		body = "{}"
	}
	if isRunner(name) {
		body = s.hold(t, body, holdNo, name)
	}
	r := s.b.request(s.session, name, body, append(opts, withID(id))...)
	s.last[id] = r
	reply := e.send(r)
	if name == "run.claim" && reply.OK {
		o := result(t, reply)
		s.holds[s.session] = append(s.holds[s.session], obj{"run_id": s.b.fold(s.session).Run.ID, "fence": o["fence"]})
	}
	return s.tell(reply)
}

func isRunner(name string) bool {
	c, ok := commandTypes[name]
	if !ok {
		return false
	}
	cmd, _ := c([]byte("{}"))
	_, is := cmd.(runnerCommand)
	return is
}

// hold adds run, fence and the open round to a runner's body.
func (s *script) hold(t *testing.T, body string, n int, name string) string {
	o := obj{}
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return body
	}
	held := s.holds[s.session]
	if n == 0 {
		n = len(held)
	}
	if n > 0 {
		for k, v := range held[n-1] {
			if _, given := o[k]; !given {
				o[k] = v
			}
		}
	}
	if _, given := o["round"]; !given && (name == "round.finish" || name == "round.fail") {
		o["round"] = 0
		if run := s.b.fold(s.session).Run; run != nil && run.Rounds > 0 {
			o["round"] = run.Rounds - 1
		}
	}
	return string(rawJSON(t, o))
}

// sugar spells short forms out:
//
//	claim                     run.claim of the requested run
//	answer TEXT, answer+ TEXT round.finish with a final answer, + with admit_next
//	call ID NAME …            round.finish with calls whose arguments are {"n":ID}
//	done ID, failed ID        tool.finish
//	gate ID [NAME]            tool.park with a typed request
//	ask ID A B …              tool.park with a question and its options
//	approve ID, deny ID       approval.decide of the call's generation
//	finish OUTCOME [REASON]   run.finish
func (s *script) sugar(t *testing.T, line string) (name, body string) {
	name, body, _ = strings.Cut(line, " ")
	body = strings.TrimSpace(body)
	words := strings.Fields(body)
	spell := func(v any) string { return string(rawJSON(t, v)) }
	switch name {
	case "claim":
		return "run.claim", `{"run_id":"$run","runner":"r1"}`
	case "answer", "answer+":
		return "round.finish", spell(obj{"message": obj{"content": body}, "admit_next": name == "answer+"})
	case "call":
		var calls []obj
		for i := 0; i+1 < len(words); i += 2 {
			calls = append(calls, obj{"id": strings.Trim(words[i], `"`), "name": words[i+1], "arguments": `{"n":"` + strings.Trim(words[i], `"`) + `"}`})
		}
		return "round.finish", spell(obj{"message": obj{"content": "", "tool_calls": calls}})
	case "done", "failed":
		return "tool.finish", spell(obj{"tool_call_id": words[0], "success": name == "done", "content": name + " " + words[0]})
	case "use":
		return "tool.start", spell(obj{"tool_call_id": words[0]})
	case "gate":
		tool := append(words, "Write")[1]
		return "tool.park", spell(obj{"tool_call_id": words[0], "question": "May " + words[0] + " run?", "request": obj{"tool_name": tool, "permission_type": "write_file", "resource": words[0]}})
	case "ask":
		return "tool.park", spell(obj{"tool_call_id": words[0], "question": "Which?", "options": words[1:], "allow_custom": len(words) == 1})
	case "approve", "deny":
		kind := map[string]string{"approve": allowOnce, "deny": denyOnce}[name]
		return "approval.decide", spell(obj{"tool_call_id": words[0], "generation": "$gen(" + words[0] + ")", "decision": kind})
	case "finish":
		o := obj{"outcome": words[0]}
		if len(words) > 1 {
			o["completion_reason"] = words[1]
		}
		if words[0] == "error" {
			o["error"] = obj{"code": "model", "message": "it broke"}
		}
		return "run.finish", spell(o)
	}
	return name, body
}

var variable = regexp.MustCompile(`\$(run|loop|birth|gen\(([^)]*)\)|#\d+)`)

// expand puts in what the session holds.
func (s *script) expand(body string) string {
	if !strings.Contains(body, "$") {
		return body
	}
	state := s.b.fold(s.session)
	return variable.ReplaceAllStringFunc(body, func(v string) string {
		switch {
		case v == "$run" && state.Run != nil:
			return state.Run.ID
		case v == "$loop" && state.Loop != nil:
			return state.Loop.Generation
		case v == "$birth":
			return state.Head.Birth
		case strings.HasPrefix(v, "$gen("):
			if c := state.call(v[len("$gen(") : len(v)-1]); c != nil {
				return c.Generation
			}
		case strings.HasPrefix(v, "$#"):
			for uuid, name := range s.names {
				if name == v[1:] {
					return uuid
				}
			}
		}
		return v
	})
}

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
