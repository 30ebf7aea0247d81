package aggregate

import (
	"fmt"
	"strings"
	"testing"

	"culm/aggregate/routing"
	"culm/events"
)

// keptRow is one line of the table of what an approval's steps keep and clear:
// what stands of the call after the lines, which begin with it waiting.
type keptRow struct {
	name  string
	lines string
	// after: status; approval (it is to be replayed under it); receipt (its
	// decision is answered again); one more in the ledger; the same request
	// still waits; the transcript has its result.
	status                                              CallStatus
	approval, receipt, moreLedger, sameRequest, outcome bool
}

const replayed = "approve a\nclaim\nreplay.start\n"

var keptRows = []keptRow{
	{name: "decision refused: scope", lines: `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_global"}`, status: CallParked, sameRequest: true},
	{name: "decision refused: other generation", lines: `approval.decide {"tool_call_id":"a","generation":"other","decision":"allow_once"}`, status: CallParked, sameRequest: true},
	{name: "decision refused: words", lines: `question.answer {"answer":"Approve"}`, status: CallParked, sameRequest: true},
	{name: "denied", lines: "deny a", status: CallSettled, receipt: true, outcome: true},
	{name: "allowed", lines: "approve a", status: CallDecided, approval: true, receipt: true, sameRequest: true},
	{name: "provider unavailable", lines: "approve a\nconfig\nclaim", status: CallDecided, approval: true, receipt: true, sameRequest: true},
	{name: "restore fails", lines: `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_workspace","expected_policy_revision":0}
session.configure {"workspace":"/elsewhere"}
claim
replay.start`, status: CallDecided, approval: true, receipt: true, sameRequest: true},
	{name: "refused by the runner", lines: "approve a\nclaim\nrun.refuse {\"code\":\"x\"}", status: CallDecided, approval: true, receipt: true, sameRequest: true},
	{name: "runner dies before the replay", lines: "approve a\nclaim\ncrash", status: CallDecided, approval: true, receipt: true, sameRequest: true},
	{name: "plan block", lines: "approve a\nsession.enter_plan\nclaim\nreplay.start", status: CallSettled, receipt: true, outcome: true},
	{name: "replay under way", lines: replayed, status: CallStarted, approval: true, receipt: true, sameRequest: true},
	{name: "tool error", lines: replayed + "failed a", status: CallSettled, receipt: true, outcome: true},
	{name: "tool ok", lines: replayed + "done a", status: CallSettled, receipt: true, outcome: true},
	{name: "second gate", lines: replayed + "gate a", status: CallParked, receipt: true, moreLedger: true},
	{name: "no second gate: question", lines: replayed + "ask a A B", status: CallStarted, approval: true, receipt: true, sameRequest: true},
	{name: "runner dies in the replay", lines: replayed + "crash", status: CallUnknown, receipt: true, sameRequest: true},
	{name: "runner fails in the replay", lines: replayed + "finish error", status: CallUnknown, receipt: true, sameRequest: true},
	{name: "cancelled while it waits", lines: "run.cancel", status: CallSettled, outcome: true},
	{name: "cancelled when allowed", lines: "approve a\nrun.cancel", status: CallSettled, receipt: true, outcome: true},
	{name: "cancelled after the claim", lines: "approve a\nclaim\nrun.cancel\nreplay.start\nfinish cancelled", status: CallSettled, receipt: true, outcome: true},
	{name: "closed", lines: "approve a\nsession.close", status: CallSettled, receipt: true, outcome: true},
}

// TestKeptAndCleared goes through every row for a call that has met its first
// gate and one that has met two, in a plain run and in loops of both kinds of
// on_park.
func TestKeptAndCleared(t *testing.T) {
	t.Parallel()
	for _, row := range keptRows {
		for gates := 1; gates <= 2; gates++ {
			for _, loop := range []string{"", onParkEnd, onParkPause} {
				t.Run(fmt.Sprintf("%s/%d gates/%s", row.name, gates, loop), func(t *testing.T) {
					t.Parallel()
					row.check(t, gates, loop)
				})
			}
		}
	}
}

func (row keptRow) check(t *testing.T, gates int, loop string) {
	s := newScript(t)
	request := `run.request {"prompt":"p"}`
	if loop != "" {
		request = `run.request {"prompt":"p","loop":{"max_iterations":2,"max_total_rounds":4,"on_park":"` + loop + `"}}`
	}
	s.all(t, `session.create {"model":{"provider":"test","model":"m1"},"workspace":"/w"}`, request, "claim", "round.start", "call a Write", "gate a")
	if gates == 2 {
		s.all(t, "approve a", "claim", "replay.start", "gate a")
	}
	before := *s.b.fold("s").call("a")
	s.all(t, strings.Split(row.lines, "\n")...)
	st := s.b.fold("s")
	c := st.call("a")
	_, receipt := st.Decided[before.Generation]
	ledger := len(before.Ledger)
	if row.moreLedger {
		ledger++
	}
	if c.Status == CallSettled {
		ledger = 0 // the log has it
	}
	tr := Transcript{}
	for _, r := range s.b.records("s") {
		e, err := events.Decode(r.Payload)
		if err != nil {
			t.Fatal(err)
		}
		tr.Evolve(&e)
	}
	last := tr.Messages[len(tr.Messages)-1]
	got := keptRow{
		name: row.name, lines: row.lines, status: c.Status, approval: c.Approval != nil, receipt: receipt, moreLedger: row.moreLedger,
		sameRequest: c.Parked != nil && c.Parked.Request.Generation == before.Generation, outcome: last.MessageID == c.MessageID && last.Success != nil,
	}
	if got != row || len(c.Ledger) != ledger {
		t.Errorf("ledger %d, want %d\n got %+v\nwant %+v", len(c.Ledger), ledger, got, row)
	}
	if want := row.status == CallDecided; (st.replays() == 1) != want {
		t.Errorf("%d replays", st.replays())
	}
	if want := row.status.Waiting(); (st.Waiting() == 1) != want {
		t.Errorf("%d wait", st.Waiting())
	}
}

// all plays lines, whatever they lead to; config takes the provider away.
func (s *script) all(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		switch line {
		case "":
		case "crash":
			s.b.leases.expire("s")
			if err := s.engines[0].h.Sweep(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		case "config":
			s.b.config.Routing.Instances = []routing.Instance{{ID: "other", Type: routing.TypeRecorded, Enabled: true}}
		default:
			s.play(t, line)
		}
	}
}
