package aggregate

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"culm/events"
)

// TestHandler_LostAcknowledgement: the event is stored and the answer is
// unavailable; the same command again is answered with the first outcome.
func TestHandler_LostAcknowledgement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	for _, c := range []Request{b.request("s", "session.create", nil), b.request("s", "message.submit", obj{"content": "m"})} {
		b.log.FailAppends(events.FailNth(b.log.Appends()+1, events.FaultAfter))
		if r := e.send(c); r.OK || r.Error.Code != CodeUnavailable {
			t.Fatalf("%s: %+v", c.Name, r)
		}
		if r := e.send(c); !r.OK || !r.Duplicate || r.Event == nil {
			t.Fatalf("%s again: %+v", c.Name, r)
		}
		b.log.FailAppends(events.FailNth(b.log.Appends()+1, events.FaultBefore))
		c.ID += "-other"
		c.Session += "2"
		if c.Name == "session.create" {
			e.send(c)
			if r := e.send(c); !r.OK || r.Duplicate {
				t.Fatalf("%s after nothing was stored: %+v", c.Name, r)
			}
		}
	}
	if got := b.types("s"); got != "session.created message.submitted" {
		t.Errorf("stored: %s", got)
	}
}

// TestHandler_LogDown: while the log is away everything is unavailable, reads
// too, and nothing is remembered of it.
func TestHandler_LogDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	b.log.SetUnavailable(true)
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "m"})
	e.refused(CodeUnavailable, "s", "run.resume", nil)
	e.refused(CodeUnavailable, "new", "session.create", nil)
	for _, q := range []ReadQuery{{}, {Transcript: true}, {Events: &EventsQuery{}}} {
		if r := e.read("s", q); r.OK || r.Error.Code != CodeUnavailable {
			t.Errorf("read: %+v", r)
		}
	}
	if _, err := e.h.Next(context.Background(), "s"); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("next: %v", err)
	}
	b.log.SetUnavailable(false)
	e.must("s", "message.submit", obj{"content": "m"})
	e.refused(CodeSessionNotFound, "new", "run.resume", nil)
}

// TestHandler_LeasesDown: whether the run lives is not known, so nothing is
// decided; a runner's own command must not be judged either.
func TestHandler_LeasesDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	b.leases.fail(errors.New("no bucket"))
	h.refused(CodeUnavailable, "round.start", nil)
	e.refused(CodeUnavailable, "s", "run.request", obj{"prompt": "p"})
	b.leases.fail(nil)
	h.must("round.start", nil)
	if n := b.count("s", "run.interrupted"); n != 0 {
		t.Errorf("%d interruptions", n)
	}
}

// TestHandler_LeaseIsRenewed: any accepted command of the holder renews its
// lease, refused ones and those of others do not.
func TestHandler_LeaseIsRenewed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	h := e.begin("s", obj{"prompt": "p"})
	renewals := func(do func()) int {
		before := b.leases.renewed
		do()
		return b.leases.renewed - before
	}
	for name, c := range map[string]struct {
		do   func()
		want int
	}{
		"round.start":  {func() { h.must("round.start", nil) }, 1},
		"run.renew":    {func() { h.must("run.renew", nil) }, 1},
		"refused":      {func() { h.refused(CodeNoSuchCall, "tool.start", obj{"tool_call_id": "x"}) }, 0},
		"stale":        {func() { e.refused(CodeStaleRun, "s", "run.renew", obj{"run_id": h.id, "fence": 1}) }, 0},
		"of a person":  {func() { e.must("s", "message.submit", obj{"content": "m"}) }, 0},
		"other claim":  {func() { e.refused(CodeAlreadyClaimed, "s", "run.claim", obj{"run_id": h.id, "runner": "r2"}) }, 0},
		"renew result": {func() { wantLease(t, h.must("run.renew", nil)) }, 1},
	} {
		if got := renewals(c.do); got != c.want {
			t.Errorf("%s: %d renewals, want %d", name, got, c.want)
		}
	}
}

func wantLease(t *testing.T, r Reply) {
	t.Helper()
	if got := result(t, r)["lease_ms"]; got != 15000.0 {
		t.Errorf("lease_ms is %v", got)
	}
}

// TestHandler_BarrierFirst: no answer before the sync that began after its
// append, a refusal and a read that rest on it included.
func TestHandler_BarrierFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	barrier := newHeldBarrier()
	b.barrier = barrier
	e := b.engine()
	var answered atomic.Int32
	got := make(chan Reply, 8)
	handle := func(r Request) {
		e.h.Handle(context.Background(), r, func(reply Reply) { answered.Add(1); got <- reply })
		<-barrier.asked
	}
	handle(b.request("s", "session.create", nil))
	handle(b.request("s", "message.submit", obj{"content": "m"}))
	handle(b.request("s", "run.claim", obj{"run_id": "x", "runner": "r"})) // refused
	handle(b.request("s", "message.submit", "nonsense"))                   // refused unread
	e.h.Read(context.Background(), "s", ReadQuery{}, func(r ReadReply) { answered.Add(1); got <- Reply{OK: r.OK} })
	<-barrier.asked
	e.h.Read(context.Background(), "s", ReadQuery{Transcript: true}, func(r ReadReply) { answered.Add(1); got <- Reply{OK: r.OK} })
	<-barrier.asked
	if n := answered.Load(); n != 0 {
		t.Fatalf("%d answers before the sync", n)
	}
	barrier.sync(nil)
	ok := 0
	for range 6 {
		if r := <-got; r.OK {
			ok++
		}
	}
	if ok != 4 {
		t.Errorf("%d of 6 answers are ok, want 4", ok)
	}
}

// TestHandler_BarrierFails: a sync that fails claims nothing: every answer that
// waited is unavailable, and so is every later one.
func TestHandler_BarrierFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	barrier := newHeldBarrier()
	b.barrier = barrier
	e := b.engine()
	got := make(chan Reply, 2)
	e.h.Handle(context.Background(), b.request("s", "session.create", nil), func(r Reply) { got <- r })
	<-barrier.asked
	reads := make(chan ReadReply, 1)
	e.h.Read(context.Background(), "s", ReadQuery{}, func(r ReadReply) { reads <- r })
	<-barrier.asked
	barrier.sync(errors.New("disk on fire"))
	if r := <-got; r.OK || r.Error.Code != CodeUnavailable || r.Event != nil || r.Sequence != 0 {
		t.Errorf("an answer after the failed sync: %+v", r)
	}
	if r := <-reads; r.OK || r.Error.Code != CodeUnavailable || r.State != nil {
		t.Errorf("a read after the failed sync: %+v", r)
	}
	e.refused(CodeUnavailable, "s", "message.submit", obj{"content": "m"})
}

// overtaken is a log in which somebody else's message comes first, once, before
// the next append of the event type.
type overtaken struct {
	*events.Mem
	eventType string
	first     func()
}

func (l *overtaken) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	if first := l.first; eventType == l.eventType && first != nil {
		l.first = nil
		first()
	}
	return l.Mem.Append(ctx, session, expected, eventType, payload)
}

// TestHandler_RuleOfARefusedDecision: a decision for all sessions stores its
// rule first. Where the decision is then refused, however late, nothing is
// allowed by it.
func TestHandler_RuleOfARefusedDecision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   string
		spoil  func(b *bench, l *overtaken, other *engine)
		change obj
		opts   []opt
	}{
		"too large": {CodePayloadTooLarge, func(b *bench, _ *overtaken, _ *engine) { b.log.SetMaxPayload(3000) }, obj{"note": strings.Repeat("x", 3000)}, nil},
		"sequence": {CodeWrongExpectedSequence, func(_ *bench, l *overtaken, other *engine) {
			l.first = func() { other.must("s", "message.submit", obj{"content": "m"}) }
		}, nil, []opt{expecting(6)}},
		"session gone": {CodeSessionNotFound, func(b *bench, l *overtaken, other *engine) {
			birth := b.fold("s").Head.Birth
			l.first = func() { other.must("s", "session.delete", obj{"birth": birth}) }
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			other := b.engine()
			l := &overtaken{Mem: b.log, eventType: "approval.decided"}
			b.opts.Log = l
			e := b.engine()
			h := e.begin("s", obj{"prompt": "p"})
			h.callTools(0, "w")
			decision := obj{
				"tool_call_id": "w", "generation": h.park("w"), "decision": "allow_global", "matcher_id": "exact_resource",
				"expected_policy_revision": 0, "confirm_global": true,
			}
			maps.Copy(decision, c.change)
			c.spoil(b, l, other)
			e.refused(c.code, "s", "approval.decide", decision, c.opts...)
			if got := b.types(SettingsSession); got != "policy.rule_added policy.rule_removed" {
				t.Errorf("the policy's events: %q", got)
			}
		})
	}
}

// TestHandler_RuleOfADecisionCutOff: a crash came between the rule and its
// decision. Where the call was settled otherwise since, the retry is refused and
// takes the rule back; while it waits, and where the decision was made, the rule stays.
func TestHandler_RuleOfADecisionCutOff(t *testing.T) {
	t.Parallel()
	const added, removed = "policy.rule_added", "policy.rule_added policy.rule_removed"
	for name, c := range map[string]struct {
		then func(e *engine, h *hold, decision obj)
		code string // of the retry; "" for accepted
		want string
	}{
		"denied": {func(e *engine, _ *hold, d obj) {
			e.must("s", "approval.decide", obj{"tool_call_id": "w", "generation": d["generation"], "decision": "deny_once"})
		}, CodeAlreadyDecided, removed},
		"allowed for once": {func(e *engine, _ *hold, d obj) {
			e.must("s", "approval.decide", obj{"tool_call_id": "w", "generation": d["generation"], "decision": "allow_once"})
		}, CodeAlreadyDecided, removed},
		"cancelled": {func(e *engine, _ *hold, _ obj) { e.must("s", "run.cancel", nil) }, CodeNoPendingQuestion, removed},
		"closed":    {func(e *engine, _ *hold, _ obj) { e.must("s", "session.close", nil) }, CodeSessionClosed, removed},
		"waits":     {func(*engine, *hold, obj) {}, "", added},
		"decided so": {func(e *engine, _ *hold, d obj) {
			e.must("s", "approval.decide", d)
			e.refused(CodeAlreadyDecided, "s", "approval.decide", with(d, "matcher_id", "path_subtree"))
		}, "", added},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			e := b.engine()
			h := e.begin("s", obj{"prompt": "p"})
			h.callTools(0, "w")
			decision := obj{
				"tool_call_id": "w", "generation": h.park("w"), "decision": "allow_global", "matcher_id": "exact_resource",
				"expected_policy_revision": 0, "confirm_global": true,
			}
			retry := b.request("s", "approval.decide", decision)
			b.log.FailAppends(events.FailNth(b.log.Appends()+2, events.FaultBefore)) // the rule is the first
			if r := e.send(retry); r.OK || r.Error.Code != CodeUnavailable {
				t.Fatalf("the first attempt: %+v", r)
			}
			if got := b.types(SettingsSession); got != added {
				t.Fatalf("the policy's events after the crash: %q", got)
			}
			c.then(e, h, decision)
			r := b.engine().send(retry)
			if code := codeOf(r); code != c.code {
				t.Errorf("the retry: %+v", r)
			}
			if got := b.types(SettingsSession); got != c.want {
				t.Errorf("the policy's events: %q, want %q", got, c.want)
			}
		})
	}
}

// with is o with another value under the key.
func with(o obj, key string, value any) obj {
	out := maps.Clone(o)
	out[key] = value
	return out
}

func codeOf(r Reply) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}
