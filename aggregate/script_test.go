package aggregate

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/go-json-experiment/json"

	"culm/aggregate/policy"
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
//	config     configuration: mode=… providers=a,b gold=true|false threshold=RISK
//	fault      the next append fails: before or after it was stored
//	audit      the findings
//	fields     TYPE FIELD: what the events of a type hold under a name
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
	reply   Reply              // to the last line
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
	case "fields":
		return s.name(s.fields(t, d.CmdArgs[0].Key, d.CmdArgs[1].Key))
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
		case "gold":
			s.b.config.Routing.Gold = []byte(`{"enabled":` + a.Vals[0] + `}`)
		case "threshold":
			p, err := policy.New(policy.Config{RiskThreshold: a.Vals[0]})
			if err != nil {
				t.Fatal(err)
			}
			s.b.config.Policy = p
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
		s.reply = e.send(s.last[again])
		return s.tell(s.reply)
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
	s.reply = reply
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
