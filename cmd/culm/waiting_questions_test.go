package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/aggregate"
	"culm/events"
)

// asksTwo is a call with two questions, as the runner parks it.
func asksTwo(second string) string {
	arguments := `{"questions":[{"question":"Which rig?","options":[{"label":"spotter","description":"Use it"},{"label":"No rig"}]},{"question":"` + second + `","options":["credo","sobelow"],"multiSelect":true}]}`
	return fmt.Sprintf(`{"tool_call_id":"q","message_id":"m-q","kind":"question","name":"AskUserQuestion","arguments":%s,"arguments_bytes":%d,"arguments_digest":%q,"sequence":3,"parked_at":"2026-11-30T12:30:00Z",
		"question":{"question":"1. Which rig? (spotter / No rig)\n2. Which tools? (credo / sobelow)","options":["spotter","No rig","credo","sobelow"],"allow_custom":true,"source":"pause_tool"}}`,
		quote(arguments), len(arguments), events.Hash([]byte(arguments)))
}

// Each question of a call stands with its own options, and it is said that one
// answer is for all of them.
func TestSeveralQuestionsInOneCall(t *testing.T) {
	f := &fake{states: map[string]string{"demo": waits(asksTwo("Which tools?"))}, replies: []aggregate.Reply{{OK: true, Event: &aggregate.EventRef{Sequence: 10}, Result: []byte(`{"run_id":"r2"}`)}}}
	want := `  asks      1. Which rig?
               “spotter”  Use it
               “No rig”
            2. Which tools?
               “credo”
               “sobelow”
               several may be chosen
`
	out := culm(t, f, "pending", "demo").out
	_, asks, _ := strings.Cut(out, "  call      q\n")
	asks, _, _ = strings.Cut(asks, "  with ")
	if diff := cmp.Diff(want, asks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(out, "  answers   one text that answers all 2, in this order; any words count\n  decide    culm answer demo q \"1. …; 2. …\"\n") {
		t.Errorf("it ends with\n%s", out)
	}
	if r := culm(t, f, "answer", "demo", "q", "1. No rig; 2. credo"); r.status != exitOK || !strings.Contains(f.sent[0].body, `"answer":"1. No rig; 2. credo"`) {
		t.Errorf("status %d, %q, sent %v", r.status, r.err, f.sent)
	}
	// What is asked otherwise than the arguments say is shown as it is asked.
	f = &fake{states: map[string]string{"demo": waits(asksTwo("Delete all?"))}}
	if out := culm(t, f, "pending", "demo").out; !strings.Contains(out, "asks      1. Which rig? (spotter / No rig)\n          | 2. Which tools? (credo / sobelow)\n") || !strings.Contains(out, "answers   “spotter” / “No rig” / “credo” / “sobelow” / any other words\n") {
		t.Errorf("it says\n%s", out)
	}
}

// What views tell of a replay whose outcome is unknown has no question; it is
// asked all the same.
func TestAnUnknownOutcomeIsAlwaysAskedAbout(t *testing.T) {
	it := item{Session: "demo", ToolCallID: "u", Kind: kindUnknown, Tool: "write_file"}
	if text := it.block(&app{now: time.Now}, true); !strings.Contains(text, "demo  unknown outcome of write_file, ") || !strings.Contains(text, "asks      The outcome of write_file is not known") {
		t.Errorf("it says\n%s", text)
	}
}
