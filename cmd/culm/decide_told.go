package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/internal/show"
)

var past = map[string]string{
	allowOnce: "allowed once", allowSession: "allowed for this session", allowWorkspace: "allowed in this workspace", allowGlobal: "allowed everywhere",
	denyOnce: "denied", denySession: "denied for this session",
}

func (v *verdict) told(it *item) string {
	text := fmt.Sprintf("%s: %s (call %s)", past[v.decision], show.Clip(show.Clean(it.Tool), 40), it.name())
	if m := v.remembers(it); m != nil {
		text += ", and from now on " + v.scope(it)
	}
	return text
}

// decided tells what became of an accepted decision or answer.
func (a *app) decided(ctx context.Context, b backend, it *item, r aggregate.Reply, text string, follow bool) error {
	var out struct {
		Replayed bool   `json:"replayed"`
		RunID    string `json:"run_id"`
		Blocked  string `json:"blocked"`
	}
	if len(r.Result) > 0 {
		if err := json.Unmarshal(r.Result, &out); err != nil {
			return fmt.Errorf("result of the decision: %w", err)
		}
	}
	switch {
	case out.Replayed:
		text = "nothing changes, the same was decided before"
		if before := a.became(ctx, b, it); before != "" {
			text += ": " + before
		}
	case out.Blocked != "":
		text += fmt.Sprintf("; it is stored, and waits for what becomes of the loop, which is blocked: culm loop continue %[1]s --ack or culm loop abandon %[1]s --ack", it.Session)
	case out.RunID != "" && follow && r.Event != nil:
		if !a.JSON {
			fmt.Fprintln(a.out, text+"; the run goes on")
		}
		return a.follow(ctx, b, it.Session, out.RunID, r.Event.Sequence-1)
	case out.RunID != "":
		text += fmt.Sprintf("; the run goes on, culm watch %s shows it", it.Session)
	default:
		text += "; other calls are under way or still wait: culm pending " + it.Session
	}
	return a.tell(r, "%s", text)
}
