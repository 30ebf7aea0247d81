package aggregate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"culm/aggregate/policy"
	"culm/events"
)

const testGeneration = "7d5f2c1e-9b7a-4c59-8d2e-3f4a5b6c7d8e"

// aLoop is a valid loop of 3 iterations and 9 rounds in the given state.
func aLoop(status events.LoopStatus, started, completed, rounds uint32) Loop {
	return Loop{
		Generation: testGeneration, Revision: 5, Owner: "run-1", Objective: "P", MaxIterations: 3, MaxTotalRounds: 9,
		IterationsStarted: started, IterationsCompleted: completed, RoundsStarted: rounds, Status: status, OnPark: onParkEnd,
	}
}

var allStatuses = []events.LoopStatus{
	events.StatusRunning, events.StatusFinalizing, events.StatusPaused, events.StatusCompleted, events.StatusStopped,
	events.StatusCancelled, events.StatusBudgetExhausted, events.StatusFailed, events.StatusRecoveryUnsupported,
}

// TestFinish_Table is every cell of docs/rules.md#loop-t7.
func TestFinish_Table(t *testing.T) {
	t.Parallel()
	const (
		run, fin, pau, com, sto = events.StatusRunning, events.StatusFinalizing, events.StatusPaused, events.StatusCompleted, events.StatusStopped
		can, bud, fai, rec      = events.StatusCancelled, events.StatusBudgetExhausted, events.StatusFailed, events.StatusRecoveryUnsupported
	)
	results := []runResult{resultOK, resultSuspended, resultBudget, resultOther, resultCancelled, resultError}
	table := map[events.LoopStatus][6]events.LoopStatus{
		run: {fai, rec, bud, rec, can, fai},
		fin: {com, rec, bud, rec, can, fai},
		pau: {pau, pau, pau, pau, can, fai},
		com: {com, com, com, com, can, fai},
		sto: {sto, sto, sto, sto, can, fai},
		bud: {bud, bud, bud, bud, can, fai},
		fai: {fai, fai, fai, fai, can, fai},
		can: {can, can, can, can, can, can},
		rec: {rec, rec, rec, rec, can, rec},
	}
	if len(table) != len(allStatuses) {
		t.Fatalf("the table has %d rows, there are %d statuses", len(table), len(allStatuses))
	}
	for before, row := range table {
		for i, want := range row {
			t.Run(fmt.Sprintf("%s/%d", before, results[i]), func(t *testing.T) {
				t.Parallel()
				l := aLoop(before, 2, 1, 4)
				if before == fin || before == com {
					l = aLoop(before, 3, 3, 4)
				}
				l.Reason = "earlier"
				got := l.finish(results[i])
				if got.Status != want || got.Revision != l.Revision+1 {
					t.Errorf("got %s at revision %d, want %s at %d", got.Status, got.Revision, want, l.Revision+1)
				}
				if got.Status == before && got.Reason != "earlier" {
					t.Errorf("the status stays and its reason became %q", got.Reason)
				}
				if got.Status != before && (got.Reason == "earlier" || got.Reason == "" && want != com) {
					t.Errorf("the status changed and the reason is %q", got.Reason)
				}
				if got.IterationsStarted != l.IterationsStarted || got.IterationsCompleted != l.IterationsCompleted || got.RoundsStarted != l.RoundsStarted {
					t.Error("a finish changed the counters")
				}
				if err := got.Validate(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestBudgetReasons: the completion reasons of a run that end its loop as
// budget_exhausted; every other one is no proof of anything.
func TestBudgetReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]runResult{
		"": resultOK, "counted_loop_round_limit": resultBudget, "counted_loop_budget_exhausted": resultBudget,
		"budget_exceeded": resultBudget, "max_rounds_reached": resultBudget, "stop_hook_continuation_cap": resultBudget,
		"awaiting_clarification": resultOther, "Budget_exceeded": resultOther, " ": resultOther,
	} {
		if got := okResult(reason); got != want {
			t.Errorf("%q: got %d, want %d", reason, got, want)
		}
	}
}

// TestAdmitRound_Guards is docs/rules.md#loop-t3: for every status, stop, cap
// and counter the first guard that holds decides.
func TestAdmitRound_Guards(t *testing.T) {
	t.Parallel()
	for _, status := range allStatuses {
		for _, stop := range []bool{false, true} {
			for _, atCap := range []bool{false, true} {
				for _, continued := range []bool{false, true} {
					for _, c := range [][2]uint32{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}} {
						checkAdmission(t, status, stop, atCap, continued, c[0], c[1])
					}
				}
			}
		}
	}
}

func checkAdmission(t *testing.T, status events.LoopStatus, stop, atCap, continued bool, started, completed uint32) {
	t.Helper()
	l := aLoop(status, started, completed, 4)
	l.StopRequested, l.Continued = stop, continued
	if atCap {
		l.RoundsStarted = l.MaxTotalRounds
	}
	if l.Validate() != nil {
		return // no such state
	}
	name := fmt.Sprintf("%s stop=%t cap=%t continued=%t %d/%d", status, stop, atCap, continued, started, completed)
	next, a := l.admitRound()
	want, wantA := l, admission{}
	switch {
	case status != events.StatusRunning && status != events.StatusFinalizing:
		wantA.reason = "not_live"
	case stop:
		want.Status, want.Reason, want.Revision = events.StatusStopped, "stop_requested", l.Revision+1
		wantA = admission{reason: "stopped", changed: true}
	case atCap:
		want.Status, want.Reason, want.Revision = events.StatusBudgetExhausted, "counted_loop_round_limit", l.Revision+1
		wantA = admission{reason: "budget_exhausted", changed: true}
	case status == events.StatusRunning && started == completed:
		want.IterationsStarted, want.RoundsStarted, want.Revision = started+1, l.RoundsStarted+1, l.Revision+1
		wantA = admission{admitted: true, repeat: started > 0 || continued}
	default:
		want.RoundsStarted, want.Revision = l.RoundsStarted+1, l.Revision+1
		wantA = admission{admitted: true}
	}
	if next != want || a != wantA {
		t.Errorf("%s:\ngot  %+v %+v\nwant %+v %+v", name, next, a, want, wantA)
	}
	if err := next.Validate(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestTerminal_Guards is docs/rules.md#loop-t5.
func TestTerminal_Guards(t *testing.T) {
	t.Parallel()
	for _, status := range allStatuses {
		for _, stop := range []bool{false, true} {
			for started := range uint32(4) {
				for _, completed := range []uint32{started, max(started, 1) - 1} {
					l := aLoop(status, started, completed, 6)
					l.StopRequested = stop
					if l.Validate() == nil {
						checkTerminal(t, l)
					}
				}
			}
		}
	}
}

func checkTerminal(t *testing.T, l Loop) {
	t.Helper()
	name := fmt.Sprintf("%s stop=%t %d/%d", l.Status, l.StopRequested, l.IterationsStarted, l.IterationsCompleted)
	next, decision, changed, r := l.terminal()
	want, wantDecision, wantCode := l, "", ""
	want.Revision++
	switch {
	case l.Status == events.StatusFinalizing:
		want, wantDecision = l, "finalize"
	case l.Status != events.StatusRunning:
		want, wantDecision = l, "stop"
	case l.IterationsStarted != l.IterationsCompleted+1:
		want, wantCode = l, "terminal_without_iteration"
	case l.StopRequested:
		want.IterationsCompleted++
		want.Status, want.Reason, wantDecision = events.StatusStopped, "stop_requested", "stop"
	case l.IterationsCompleted+1 == l.MaxIterations:
		want.IterationsCompleted++
		want.Status, wantDecision = events.StatusFinalizing, "finalize"
	default:
		want.IterationsCompleted++
		wantDecision = "continue"
	}
	code := ""
	if r != nil {
		code = r.Code
	}
	if next != want || decision != wantDecision || code != wantCode || changed != (next != l) {
		t.Errorf("%s: got %+v %q %t %q, want %+v %q %q", name, next, decision, changed, code, want, wantDecision, wantCode)
	}
	if err := next.Validate(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestPark_Table: how a loop ends or waits by a park, and how a pause goes on.
func TestPark_Table(t *testing.T) {
	t.Parallel()
	for _, status := range allStatuses {
		for _, onPark := range []string{onParkEnd, onParkPause} {
			l := aLoop(status, 2, 1, 4)
			if status == events.StatusFinalizing || status == events.StatusCompleted {
				l = aLoop(status, 3, 3, 4)
			}
			l.OnPark = onPark
			want := status
			switch {
			case !status.Live():
			case onPark == onParkPause:
				want = events.StatusPaused
			default:
				want = events.StatusRecoveryUnsupported
			}
			got := l.park()
			if got.Status != want || got.Revision != l.Revision+1 || status.Live() && got.Reason != "parked" {
				t.Errorf("%s %s: got %+v, want %s", status, onPark, got, want)
			}
			if got.Status != events.StatusPaused {
				continue
			}
			back := got.resume("run-2")
			if wantBack := status; status.Live() && (back.Status != wantBack || back.Owner != "run-2" || back.Revision != got.Revision+1 || back.Reason != "") {
				t.Errorf("%s after its pause: %+v", status, back)
			}
		}
	}
}

// TestCheckBounds: the sizes at the borders.
func TestCheckBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", MaxObjectiveBytes/2)
	for _, c := range []struct {
		iterations, rounds uint32
		objective          string
		ok                 bool
	}{
		{1, 1, "p", true}, {100, 100, "p", true}, {100, 1000, long, true}, {1, 1000, " p ", true},
		{0, 5, "p", false}, {101, 500, "p", false}, {math.MaxUint32, math.MaxUint32, "p", false},
		{5, 4, "p", false}, {5, 0, "p", false}, {5, 1001, "p", false},
		{2, 5, "", false}, {2, 5, "  \n", false}, {2, 5, "\u00a0\u2003", false},
		{2, 5, long + "x", false},
	} {
		r := checkBounds(c.iterations, c.rounds, c.objective)
		if (r == nil) != c.ok || r != nil && r.Code != CodeInvalidBounds {
			t.Errorf("%d/%d %.10q (%d bytes): got %v, want ok=%t", c.iterations, c.rounds, c.objective, len(c.objective), r, c.ok)
		}
	}
}

// TestLoopValidate_BrokenInvariants: states that break one rule each.
func TestLoopValidate_BrokenInvariants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status events.LoopStatus
		change func(*Loop)
	}{
		"completed over started":              {events.StatusRunning, func(l *Loop) { l.IterationsStarted, l.IterationsCompleted = 1, 2 }},
		"two open iterations":                 {events.StatusRunning, func(l *Loop) { l.IterationsStarted, l.IterationsCompleted = 2, 0 }},
		"fewer rounds than iterations":        {events.StatusRunning, func(l *Loop) { l.RoundsStarted = 1 }},
		"rounds over the cap":                 {events.StatusRunning, func(l *Loop) { l.RoundsStarted = 10 }},
		"iterations over the bound":           {events.StatusStopped, func(l *Loop) { l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted = 4, 4, 9 }},
		"finalizing before the end":           {events.StatusFinalizing, func(*Loop) {}},
		"completed before the end":            {events.StatusCompleted, func(*Loop) {}},
		"running at the end":                  {events.StatusRunning, func(l *Loop) { l.IterationsStarted, l.IterationsCompleted = 3, 3 }},
		"revision 0":                          {events.StatusRunning, func(l *Loop) { l.Revision = 0 }},
		"revision exhausted":                  {events.StatusRunning, func(l *Loop) { l.Revision = math.MaxUint64 }},
		"no owner":                            {events.StatusRunning, func(l *Loop) { l.Owner = "" }},
		"owner too long":                      {events.StatusRunning, func(l *Loop) { l.Owner = strings.Repeat("x", 129) }},
		"generation is no UUID":               {events.StatusRunning, func(l *Loop) { l.Generation = "x" }},
		"generation in another UUID spelling": {events.StatusRunning, func(l *Loop) { l.Generation = "urn:uuid:" + testGeneration }},
		"unknown status":                      {"sleeping", func(*Loop) {}},
		"no iterations":                       {events.StatusRunning, func(l *Loop) { l.MaxIterations = 0 }},
		"cap over the bound":                  {events.StatusRunning, func(l *Loop) { l.MaxTotalRounds = 1001 }},
		"blank objective":                     {events.StatusRunning, func(l *Loop) { l.Objective = " " }},
	} {
		l := aLoop(c.status, 2, 1, 4)
		c.change(&l)
		if l.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, l)
		}
	}
	for _, status := range []events.LoopStatus{events.StatusStopped, events.StatusCancelled, events.StatusBudgetExhausted, events.StatusFailed, events.StatusRecoveryUnsupported, events.StatusPaused} {
		l := aLoop(status, 3, 3, 3)
		if err := l.Validate(); err != nil {
			t.Errorf("%s may have all iterations completed: %v", status, err)
		}
	}
}

// TestRevision_HappyPath: K iterations of one round end at revision 2K+3.
func TestRevision_HappyPath(t *testing.T) {
	t.Parallel()
	for _, k := range []uint32{1, 2, 3, 10, 100} {
		l := beginLoop(testGeneration, "run-1", &events.LoopRequest{Objective: "P", MaxIterations: k, MaxTotalRounds: k, OnPark: onParkEnd})
		for i := uint32(1); i <= k; i++ {
			var a admission
			if l, a = l.admitRound(); !a.admitted || a.repeat != (i > 1) || l.IterationsStarted != i {
				t.Fatalf("K=%d iteration %d: %+v %+v", k, i, a, l)
			}
			var decision string
			if l, decision, _, _ = l.terminal(); (decision == decisionFinalize) != (i == k) {
				t.Fatalf("K=%d iteration %d: %s", k, i, decision)
			}
		}
		l = l.finish(resultOK)
		if l.Status != events.StatusCompleted || l.Revision != uint64(2*k+3) {
			t.Errorf("K=%d: %s at revision %d, want completed at %d", k, l.Status, l.Revision, 2*k+3)
		}
	}
}

// TestEffectiveMode is docs/rules.md#effective-mode, all cells.
func TestEffectiveMode(t *testing.T) {
	t.Parallel()
	requested := []string{modeDefault, policy.ModeBypass, policy.ModeAuto}
	for configured, row := range map[string][3]string{
		"":                           {modeDefault, policy.ModeBypass, policy.ModeAuto},
		modeDefault:                  {modeDefault, policy.ModeBypass, policy.ModeAuto},
		policy.ModePlan:              {policy.ModePlan, policy.ModePlan, policy.ModePlan},
		policy.ModeAcceptEdits:       {policy.ModeAcceptEdits, policy.ModeBypass, policy.ModeAuto},
		policy.ModeDontAsk:           {policy.ModeDontAsk, policy.ModeBypass, policy.ModeAuto},
		policy.ModeBypassPermissions: {policy.ModeBypass, policy.ModeBypass, policy.ModeAuto},
		policy.ModeAuto:              {policy.ModeAuto, policy.ModeBypass, policy.ModeAuto},
	} {
		for i, want := range row {
			if got := policy.EffectiveMode(configured, requested[i], false); got != want {
				t.Errorf("configured %q, requested %q: %q, want %q", configured, requested[i], got, want)
			}
			if got := policy.EffectiveMode(configured, requested[i], true); got != policy.ModePlan {
				t.Errorf("configured %q, requested %q with the plan overlay: %q", configured, requested[i], got)
			}
		}
	}
}

// A refusal says why the loop blocks, and nothing that did not happen: only an
// interrupted run leaves work without a known end.
func TestRecoveryRefused_SaysWhatHappened(t *testing.T) {
	t.Parallel()
	const interrupted, parked, other = "was interrupted", "had to wait for a person", "does not say how"
	for _, c := range []struct {
		status events.LoopStatus
		reason string
		want   string
	}{
		{events.StatusRunning, "", interrupted},
		{events.StatusFinalizing, "", interrupted},
		{events.StatusRecoveryUnsupported, reasonOwnerLost, interrupted},
		{events.StatusRecoveryUnsupported, reasonParked, parked},
		{events.StatusRecoveryUnsupported, reasonUnknownOutcome, other},
	} {
		l := aLoop(c.status, 1, 1, 1)
		l.Reason = c.reason
		r := (&State{Loop: &l}).recoveryRefused()
		for _, said := range []string{interrupted, parked, other} {
			if strings.Contains(r.Message, said) != (said == c.want) {
				t.Errorf("%s %q: %s", c.status, c.reason, r.Message)
			}
		}
		if r.Code != CodeRecoveryUnsupported || r.Details["generation"] != testGeneration || !strings.Contains(r.Message, "(1 of 3 iterations completed)") {
			t.Errorf("%s %q: %+v", c.status, c.reason, r)
		}
	}
}
