package aggregate

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"culm/events"
)

// Arguments that were changed where they are stored, after a person approved
// them, do not run. Changed alone, they break the chain: the session is refused
// as a whole, and the audit says which event was changed. Changed by somebody
// who has forged the chain as well, they are not what the digest of the approval
// says: the run is refused, which everybody sees.
func TestApproval_OfBytesThatAreChangedAfterwards(t *testing.T) {
	t.Parallel()
	approved := func(t *testing.T) *script {
		s := newScript(t)
		s.all(t, `session.create {"model":{"provider":"test","model":"m1"},"workspace":"/w"}`)
		s.all(t, strings.Split(parkedStory, "\n")...)
		s.all(t, "approve a", "claim")
		return s
	}
	t.Run("the chain breaks", func(t *testing.T) {
		t.Parallel()
		s := approved(t)
		s.b.log.Rewrite("s", edit(4, `{\"n\":\"a\"}`, `{\"n\":\"b\"}`))
		e := s.b.engine()
		e.refused(CodeMalformedState, "s", "replay.start", s.holds["s"][1])
		if got := s.audit(t); !strings.Contains(got, "5 changed\n") {
			t.Errorf("the audit finds %q", got)
		}
		if n := s.b.count("s", "replay.started"); n != 0 {
			t.Errorf("%d replays", n)
		}
	})
	t.Run("the chain is forged", func(t *testing.T) {
		t.Parallel()
		s := approved(t)
		s.tamper(t)
		if got := s.play(t, "replay.start"); !strings.HasPrefix(got, "refused replay_target_missing") || s.b.count("s", "run.refused") != 1 {
			t.Errorf("%s", got)
		}
		s.all(t, "run.resume", "claim")
		if got := s.play(t, "replay.start"); !strings.HasPrefix(got, "refused replay_target_missing") || s.b.count("s", "replay.started") != 0 {
			t.Errorf("again: %s", got)
		}
	})
}

// Whoever hands a command over may use its memory again: what is stored, and
// what the engine keeps, is a copy.
func TestHandler_KeepsNothingOfTheCallersMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	given := func(name string, body obj) {
		t.Helper()
		r := b.request("s", name, body)
		reply := e.send(r)
		if !reply.OK {
			t.Fatalf("%s: %+v", name, reply.Error)
		}
		for i := range r.Body {
			r.Body[i] = 'X'
		}
	}
	given("session.create", obj{"title": "title", "model": obj{"provider": "test", "model": "m1"}, "gold": obj{"goal": "g", "big": 1}, "metadata": obj{"k": "v"}})
	given("note.append", obj{"kind": "k", "data": obj{"n": 1}})
	given("run.request", obj{"prompt": "prompt"})
	run := b.fold("s").Run.ID
	given("run.claim", obj{"run_id": run, "runner": "r1"})
	hold := obj{"run_id": run, "fence": b.fold("s").Run.Fence}
	with := func(more obj) obj {
		for k, v := range hold {
			more[k] = v
		}
		return more
	}
	given("round.start", with(obj{}))
	given("round.finish", with(obj{"round": 0, "message": obj{"content": "c", "tool_calls": []obj{{"id": "a", "name": "Write", "arguments": `{"path":"/w/a"}`}}}}))
	given("tool.park", with(obj{
		"tool_call_id": "a", "question": "may it?", "options": []string{"yes", "no"},
		"request": obj{"tool_name": "Write", "permission_type": "write_file", "resource": "/w/a", "suggested_matchers": []obj{{"id": "m", "kind": "exact_resource", "pattern": "/w/a"}}},
	}))
	kept, stored := e.read("s", ReadQuery{Transcript: true}), b.engine().read("s", ReadQuery{Transcript: true})
	if diff := cmp.Diff(string(stored.State), string(kept.State)); diff != "" || strings.Contains(string(kept.State), "XX") {
		t.Errorf("an engine keeps what is not stored (-stored +kept):\n%s", diff)
	}
	if c := b.fold("s").call("a"); c.Arguments != `{"path":"/w/a"}` || c.Digest != events.Hash([]byte(c.Arguments)) {
		t.Errorf("%q has digest %s", c.Arguments, c.Digest)
	}
	if report, err := Audit(b.log.Read(t.Context(), "s", 0, 0), AuditOptions{Session: "s"}); err != nil || !report.OK() {
		t.Errorf("%+v %v", report, err)
	}
}

// readCount counts the events that are read.
type readCount struct {
	events.Log
	n atomic.Int64
}

func (l *readCount) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, session, after, through) {
			if err == nil {
				l.n.Add(1)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A decision costs the same in a session of 5 MB as in a small one: nothing of
// it is read again, and the event holds the decision alone. What is too large
// was refused when it was written.
func TestApproval_InALargeSession(t *testing.T) {
	t.Parallel()
	sizes := map[int]int{}
	for _, messages := range []int{0, 50} {
		b := newBench(t)
		b.log.SetMaxPayload(1 << 20)
		log := &readCount{Log: b.log}
		b.opts.Log = log
		e := b.engine()
		h := e.begin("s", obj{"prompt": "p"})
		for range messages {
			e.must("s", "message.submit", obj{"content": strings.Repeat("x", 100<<10)})
		}
		e.refused(CodePayloadTooLarge, "s", "message.submit", obj{"content": strings.Repeat("x", 1<<20)})
		h.callTools(0, "a")
		generation := h.park("a")
		before := log.n.Load()
		e.must("s", "approval.decide", obj{"tool_call_id": "a", "generation": generation, "decision": "allow_once"})
		if read := log.n.Load() - before; read != 0 {
			t.Errorf("with %d messages the decision reads %d events", messages, read)
		}
		all := b.records("s")
		sizes[messages] = len(all[len(all)-1].Payload)
	}
	if d := sizes[50] - sizes[0]; d < -64 || d > 64 {
		t.Errorf("the event's sizes: %v", sizes)
	}
}

// A stored decision that lacks everything that it may, note, result and matcher, folds,
// and is answered again like any other.
func TestFold_DecisionWithoutOptionalFields(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{allowOnce, denyOnce} {
		s := newScript(t)
		s.all(t, `session.create {"model":{"provider":"test","model":"m1"},"workspace":"/w"}`)
		s.all(t, strings.Split(parkedStory, "\n")...)
		generation := s.b.fold("s").call("a").Generation
		s.all(t, fmt.Sprintf(`approval.decide {"tool_call_id":"a","generation":%q,"decision":%q,"note":"because"}`, generation, decision))
		s.b.log.Rewrite("s", func(log []events.Record) []events.Record {
			last := len(log) - 1
			e, err := events.Decode(log[last].Payload)
			if err != nil {
				t.Fatal(err)
			}
			d := e.Data.(events.ApprovalDecided)
			e.Data, e.Traceparent = events.ApprovalDecided{CallRef: d.CallRef, Generation: d.Generation, Decision: d.Decision, RunID: d.RunID}, ""
			if log[last].Payload, err = events.Encode(e); err != nil {
				t.Fatal(err)
			}
			return log
		})
		s.engines = append([]*engine{s.b.engine()}, s.engines...)
		want := map[string]CallStatus{allowOnce: CallDecided, denyOnce: CallSettled}[decision]
		if c := s.b.fold("s").call("a"); c.Status != want {
			t.Errorf("%s: the call is %s", decision, c.Status)
		}
		if got := s.play(t, fmt.Sprintf(`approval.decide {"tool_call_id":"a","generation":%q,"decision":%q}`, generation, decision)); got != `ok {"replayed":true}` {
			t.Errorf("%s again: %s", decision, got)
		}
		if r := s.engines[0].read("s", ReadQuery{Transcript: true}); !r.OK {
			t.Errorf("%s: %+v", decision, r.Error)
		}
	}
}

// Two answers under one name come in the same millisecond, the reply to one is
// lost and it is given again, and no wake-up reaches a runner: both are stored,
// once each, and a sweep finds the run that they ask for.
func TestAnswers_InOneMillisecondWithoutAWakeUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	h.callTools(0, "q1", "q2")
	for _, id := range []string{"q1", "q2"} {
		h.must("tool.park", obj{"tool_call_id": id, "question": "Which?"})
	}
	b.clock.stop()
	first := b.request("s", "question.answer", obj{"tool_call_id": "q1", "answer": "yes"}, withID("answer-1"), as("ann"))
	second := b.request("s", "question.answer", obj{"tool_call_id": "q2", "answer": "yes"}, withID("answer-2"), as("ann"))
	b.log.FailAppends(events.FailNth(b.log.Appends()+1, events.FaultAfter))
	replies := make(chan Reply, 2)
	for _, r := range []Request{first, second} {
		e.h.Handle(t.Context(), r, func(reply Reply) { replies <- reply })
	}
	<-replies
	<-replies
	b.log.FailAppends(nil)
	for _, r := range []Request{first, second, first} {
		if reply := e.send(r); !reply.OK || reply.Event == nil || reply.Event.Type != "question.answered" {
			t.Errorf("%s: %+v %+v", r.ID, reply, reply.Error)
		}
	}
	if n := b.count("s", "question.answered"); n != 2 {
		t.Errorf("%d answers are stored", n)
	}
	times := map[string]bool{}
	for _, ev := range decodeAll(t, b.records("s")) {
		if ev.Type == "question.answered" {
			times[ev.Time.String()] = true
		}
	}
	if len(times) != 1 {
		t.Errorf("not in one millisecond: %v", times)
	}
	var owed []StepKind
	if err := b.engine().h.Survey(t.Context(), func(st Step) { owed = append(owed, st.Kind) }); err != nil || len(owed) != 1 || owed[0] != StepClaim {
		t.Errorf("owed %v, %v", owed, err)
	}
}
