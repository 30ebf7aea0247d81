package aggregate

import (
	"testing"
	"time"
)

// parkedFor is a session whose call a waits, for at most ttl.
func parkedFor(t *testing.T, ttl time.Duration) (*bench, *script) {
	t.Helper()
	s := newScript(t)
	s.b.config.QuestionTTL = ttl
	s.all(t, `session.create {"model":{"provider":"test","model":"m1"}}`, `run.request {"prompt":"p"}`, "claim", "round.start", "call a Write", "gate a")
	return s.b, s
}

// What nobody decided in time is no approval and no denial, over
// a restart too, and runs nothing; the round goes on with a failed result.
func TestExpiry_IsNeitherApprovalNorDenial(t *testing.T) {
	t.Parallel()
	b, s := parkedFor(t, time.Second)
	b.clock.advance(time.Hour)
	s.engines = append([]*engine{b.engine()}, s.engines...)
	if got := s.play(t, "run.resume"); b.count("s", "question.expired") != 1 {
		t.Errorf("resume: %s", got)
	}
	s.all(t, "claim", "replay.start", "round.start")
	for _, kind := range []string{"approval.decided", "replay.started", "tool.started"} {
		if n := b.count("s", kind); n != 0 {
			t.Errorf("%d %s", n, kind)
		}
	}
	if st := b.fold("s"); st.Waiting() != 0 || len(st.Decided) != 0 || b.count("s", "round.started") != 2 {
		t.Errorf("%d wait, %d decided, %d rounds", st.Waiting(), len(st.Decided), b.count("s", "round.started"))
	}
}

// Of a decision and the expiry, whatever is stored first stays.
func TestExpiry_AtTheVeryMoment(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"in time": -time.Minute, "too late": time.Minute} {
		for _, decision := range []string{"approve", "deny"} {
			t.Run(decision+" "+name, func(t *testing.T) {
				t.Parallel()
				b, s := parkedFor(t, time.Hour)
				generation := b.fold("s").call("a").Generation
				b.clock.advance(time.Hour + late)
				kind := map[string]string{"approve": allowOnce, "deny": denyOnce}[decision]
				decide := `approval.decide {"tool_call_id":"a","generation":"` + generation + `","decision":"` + kind + `"}`
				first := s.play(t, decide)
				b.clock.advance(time.Hour)
				s.all(t, "run.resume")
				decided, expired := b.count("s", "approval.decided"), b.count("s", "question.expired")
				if inTime := late < 0; decided+expired != 1 || (decided == 1) != inTime || (first == "refused no_pending_question") == inTime {
					t.Errorf("%s; %d decided, %d expired", first, decided, expired)
				}
			})
		}
	}
}

// advance lets time pass at once.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += uint64(d.Milliseconds()) //nolint:gosec // positive
}
