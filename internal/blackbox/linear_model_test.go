package blackbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// linearInput is one operation on a session.
type linearInput struct {
	kind     string // submit, request, both also with an expected sequence (at), claim, renew, finish, read
	id       string // of the command
	at       uint64 // expected sequence
	run      string // of claim, renew and finish
	who      string // claimer
	remember bool   // the command is sent once more later
	messages bool   // of read: with the last message
}

// linearOutput is what the client saw; the mark of a duplicate is left out.
type linearOutput struct {
	ok       bool
	code     string
	event    bool
	sequence uint64
	run      string // of request; of a read the run in the state
	status   string // of that run, of a read
	runner   string // of a read
	last     string // of a read: content of the last message
}

// linearState is the model of a session: where it ends, its run with who holds
// it, the last message, and the answers to commands that are sent once more.
type linearState struct {
	sequence uint64
	run      string
	status   string // requested, live or ""
	runner   string
	last     string
	receipts map[string]linearOutput
}

// sessionModel says which answers the rules allow. Sessions begin with
// session.created.
var sessionModel = porcupine.Model{
	Init: func() any { return linearState{sequence: 1} },
	Step: func(state, input, output any) (bool, any) {
		return linearStep(state.(linearState), input.(linearInput), output.(linearOutput)) //nolint:forcetypeassert // ours
	},
	Equal: func(x, y any) bool {
		a, b := x.(linearState), y.(linearState) //nolint:forcetypeassert // ours
		return a.sequence == b.sequence && a.run == b.run && a.status == b.status && a.runner == b.runner && a.last == b.last && maps.Equal(a.receipts, b.receipts)
	},
}

func linearStep(s linearState, in linearInput, out linearOutput) (bool, linearState) {
	if first, ok := s.receipts[in.id]; ok {
		return out == first, s
	}
	want, next := decide(s, in, out)
	return out == want, next
}

// decide is the answer that the rules give and the state after it. The id of a
// new run is taken from the answer.
func decide(s linearState, in linearInput, out linearOutput) (linearOutput, linearState) {
	refuse := func(code string) (linearOutput, linearState) {
		return linearOutput{code: code, sequence: s.sequence}, s
	}
	nothing := func(run string) (linearOutput, linearState) {
		return linearOutput{ok: true, sequence: s.sequence, run: run}, s
	}
	accept := func(next linearState, run string) (linearOutput, linearState) {
		next.sequence++
		want := linearOutput{ok: true, event: true, sequence: next.sequence, run: run}
		if in.remember {
			next.receipts = maps.Clone(s.receipts)
			if next.receipts == nil {
				next.receipts = map[string]linearOutput{}
			}
			next.receipts[in.id] = want
		}
		return want, next
	}
	next := s
	switch in.kind {
	case "read":
		want := linearOutput{ok: true, sequence: s.sequence, run: s.run, status: s.status, runner: s.runner}
		if in.messages {
			want.last = s.last
		}
		return want, s
	case "submit at":
		if in.at != s.sequence {
			return refuse("wrong_expected_sequence")
		}
		fallthrough
	case "submit":
		next.last = in.id
		return accept(next, "")
	case "request at":
		if in.at != s.sequence {
			return refuse("wrong_expected_sequence")
		}
		fallthrough
	case "request":
		if s.status != "" {
			return nothing(s.run)
		}
		next.run, next.status, next.runner, next.last = out.run, "requested", "", in.id
		return accept(next, out.run)
	case "claim":
		switch {
		case s.status == "" || in.run != s.run:
			return refuse("no_such_run")
		case s.status == "live":
			return refuse("already_claimed")
		}
		next.status, next.runner = "live", in.who
		return accept(next, "")
	case "renew":
		if s.status != "live" || in.run != s.run {
			return refuse("stale_run")
		}
		return nothing("")
	case "finish":
		if s.status != "live" || in.run != s.run {
			return refuse("stale_run")
		}
		next.run, next.status, next.runner = "", "", ""
		return accept(next, "")
	}
	panic(in.kind)
}

// describe lists a history by start, shortened.
func describe(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range ops[:min(len(ops), 60)] {
		fmt.Fprintf(&b, "%d %9d..%9d µs %+v -> %+v\n", op.ClientId, op.Call/1000, op.Return/1000, op.Input, op.Output)
	}
	return b.String()
}
