package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/events"
)

// obj is a JSON object in tests.
type obj = map[string]any

// bench is one installation: a log, leases and a barrier that tests control,
// and any number of engines over them.
type bench struct {
	t       testing.TB
	root    testing.TB // ends the engines with the whole test
	log     *events.Mem
	leases  *fakeLeases
	barrier events.Barrier
	clock   *fakeClock
	config  Config
	opts    Options // overrides for new engines
	cmds    atomic.Int64
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return &bench{t: t, root: t, log: events.NewMem(), leases: newLeases(), barrier: instantBarrier{}, clock: &fakeClock{}, opts: Options{Timeout: time.Minute}}
}

// engine starts another handler over the same log.
func (b *bench) engine() *engine {
	b.t.Helper()
	o := b.opts
	o.Log, o.Leases, o.Barrier = events.Log(b.log), b.leases, b.barrier
	if b.opts.Log != nil {
		o.Log = b.opts.Log
	}
	o.Now, o.Entropy = b.clock.now, b.clock.entropy
	o.Config = func() Config { return b.config }
	h := NewHandler(o)
	b.root.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			b.root.Errorf("close: %v", err)
		}
	})
	return &engine{b: b, h: h}
}

// engine is one handler as a client sees it.
type engine struct {
	b *bench
	h *Handler
}

// opt changes a request before it is made.
type opt func(*Request)

func withID(id string) opt     { return func(r *Request) { r.ID = id } }
func expecting(seq uint64) opt { return func(r *Request) { r.Expected = &seq } }
func as(actor string) opt      { return func(r *Request) { r.Actor = actor } }

// request builds a request; body is nil, raw text or a value to marshal.
func (b *bench) request(session, name string, body any, opts ...opt) Request {
	b.t.Helper()
	raw := []byte("{}")
	switch v := body.(type) {
	case nil:
	case string:
		raw = []byte(v)
	default:
		var err error
		if raw, err = json.Marshal(v, json.Deterministic(true)); err != nil {
			b.t.Fatal(err)
		}
	}
	r := Request{Actor: "tester", Session: session, Name: name, ID: fmt.Sprintf("cmd-%d", b.cmds.Add(1)), Body: raw}
	for _, o := range opts {
		o(&r)
	}
	r.Digest = events.CommandDigest("agent.cmd."+r.Actor+"."+session+"."+name, raw)
	return r
}

// send hands a request over and waits for its one answer.
func (e *engine) send(r Request) Reply {
	out := make(chan Reply, 2)
	e.h.Handle(context.Background(), r, func(reply Reply) { out <- reply })
	return <-out
}

func (e *engine) do(session, name string, body any, opts ...opt) Reply {
	e.b.t.Helper()
	return e.send(e.b.request(session, name, body, opts...))
}

// must sends a command that has to be accepted.
func (e *engine) must(session, name string, body any, opts ...opt) Reply {
	e.b.t.Helper()
	r := e.do(session, name, body, opts...)
	if !r.OK {
		e.b.t.Fatalf("%s %s refused: %s %s", session, name, r.Error.Code, r.Error.Message)
	}
	return r
}

// refused sends a command that has to be refused with the code.
func (e *engine) refused(code, session, name string, body any, opts ...opt) Reply {
	e.b.t.Helper()
	r := e.do(session, name, body, opts...)
	if r.OK || r.Error.Code != code {
		e.b.t.Fatalf("%s %s: want refusal %s, got %+v", session, name, code, r)
	}
	return r
}

// read answers a read.
func (e *engine) read(session string, q ReadQuery) ReadReply {
	out := make(chan ReadReply, 2)
	e.h.Read(context.Background(), session, q, func(r ReadReply) { out <- r })
	return <-out
}

// result decodes the result of a reply.
func result(t testing.TB, r Reply) obj {
	t.Helper()
	out := obj{}
	if len(r.Result) > 0 {
		if err := json.Unmarshal(r.Result, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func text(o obj, key string) string { s, _ := o[key].(string); return s }

func eventType(r Reply) string {
	if r.Event == nil {
		return ""
	}
	return r.Event.Type
}

// hold is a run that the test holds as its runner.
type hold struct {
	e       *engine
	session string
	id      string
	fence   float64
}

// begin makes a session, requests a run and claims it.
func (e *engine) begin(session string, request obj) *hold {
	e.b.t.Helper()
	e.must(session, "session.create", obj{"model": obj{"provider": "test", "model": "m1"}})
	return e.start(session, request)
}

// start requests a run and claims it.
func (e *engine) start(session string, request obj) *hold {
	e.b.t.Helper()
	return e.claim(session, text(result(e.b.t, e.must(session, "run.request", request)), "run_id"))
}

func (e *engine) claim(session, run string) *hold {
	e.b.t.Helper()
	r := e.must(session, "run.claim", obj{"run_id": run, "runner": "r1"})
	fence, _ := result(e.b.t, r)["fence"].(float64)
	return &hold{e, session, run, fence}
}

func (h *hold) body(more obj) obj {
	d := obj{"run_id": h.id, "fence": h.fence}
	for k, v := range more {
		d[k] = v
	}
	return d
}

func (h *hold) must(name string, more obj, opts ...opt) Reply {
	h.e.b.t.Helper()
	return h.e.must(h.session, name, h.body(more), opts...)
}

func (h *hold) refused(code, name string, more obj, opts ...opt) Reply {
	h.e.b.t.Helper()
	return h.e.refused(code, h.session, name, h.body(more), opts...)
}

// callTools admits a round and answers it with one call of Write per id.
func (h *hold) callTools(round int, ids ...string) {
	h.e.b.t.Helper()
	h.must("round.start", nil)
	calls := make([]obj, len(ids))
	for i, id := range ids {
		calls[i] = obj{"id": id, "name": "Write", "arguments": `{"path":"` + id + `"}`}
	}
	h.must("round.finish", obj{"round": round, "message": obj{"content": "", "tool_calls": calls}})
}

// park lets a call wait for an approval and returns its generation.
func (h *hold) park(id string) string {
	h.e.b.t.Helper()
	r := h.must("tool.park", obj{"tool_call_id": id, "question": "May it?", "request": obj{"tool_name": "Write", "permission_type": "write_file", "resource": id}})
	return text(result(h.e.b.t, r), "generation")
}

// records are the stored events of a session.
func (b *bench) records(session string) []events.Record {
	b.t.Helper()
	var out []events.Record
	for r, err := range b.log.Read(context.Background(), session, 0, 0) {
		if errors.Is(err, events.ErrNotFound) {
			return nil
		}
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// fold is the fold of the session's log, checked.
func (b *bench) fold(session string) *State {
	b.t.Helper()
	s, err := Fold(b.log.Read(context.Background(), session, 0, 0))
	if err != nil {
		b.t.Fatalf("fold %s: %v", session, err)
	}
	return s
}

func viewJSON(t interface{ Fatal(args ...any) }, s *State) string {
	raw, err := marshal(s.View())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// count counts a session's stored events of a type.
func (b *bench) count(session, eventType string) int {
	n := 0
	for _, r := range b.records(session) {
		if r.Type == eventType {
			n++
		}
	}
	return n
}

func decodeAll(t testing.TB, records []events.Record) []events.Event {
	t.Helper()
	out := make([]events.Event, len(records))
	for i, r := range records {
		var err error
		if out[i], err = events.Decode(r.Payload); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func mustFold(tb testing.TB, records []events.Record) *State {
	tb.Helper()
	s, err := Fold(sequence(records))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
