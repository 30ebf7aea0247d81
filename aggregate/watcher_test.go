package aggregate

import (
	"pgregory.net/rapid"

	"culm/events"
)

// watcher knows what was said of each run, call and loop so far, and fails the
// test over what must never be said after it.
type watcher struct {
	ended     map[string]string // run -> how it ended
	started   map[string]bool
	toolStart map[string]int // by occurrence
	replays   map[string]int
	allowed   map[string]int
	results   map[string]bool
	loop      events.Loop
	caps      map[string]uint32 // by loop generation
	cancelled map[string]bool   // runs
	stopped   map[string]bool   // loop generations
}

func newWatcher() watcher {
	return watcher{
		ended: map[string]string{}, started: map[string]bool{}, toolStart: map[string]int{}, replays: map[string]int{},
		allowed: map[string]int{}, results: map[string]bool{}, caps: map[string]uint32{},
		cancelled: map[string]bool{}, stopped: map[string]bool{},
	}
}

func (w *watcher) event(t *rapid.T, e *events.Event, after *State) {
	switch d := e.Data.(type) {
	case events.RunStarted:
		if w.started[d.RunID] || w.ended[d.RunID] != "" {
			t.Fatalf("run %s started again, ended: %q", d.RunID, w.ended[d.RunID])
		}
		w.started[d.RunID] = true
		if d.Loop != nil {
			w.caps[d.Loop.Generation] = d.Loop.MaxTotalRounds
		}
	case events.RunFinished:
		if was := w.ended[d.RunID]; was != "" && (was != "suspended" || d.Outcome != outcomeRunCancelled) {
			t.Fatalf("run.finished of a run that ended as %s", was)
		}
		w.ended[d.RunID] = "finished"
	case events.RunRefused:
		w.end(t, d.RunID, "refused")
	case events.RunInterrupted:
		w.end(t, d.RunID, "interrupted")
	case events.RoundStarted:
		w.running(t, d.RunID)
	case events.RoundFinished:
		w.running(t, d.RunID)
	case events.ToolStarted:
		if w.toolStart[d.MessageID]++; w.toolStart[d.MessageID] > 1 {
			t.Fatalf("call %s started twice", d.MessageID)
		}
		w.open(t, d.MessageID)
	case events.ReplayStarted:
		if w.replays[d.MessageID]++; w.replays[d.MessageID] > w.allowed[d.MessageID] {
			t.Fatalf("call %s replayed %d times with %d approvals", d.MessageID, w.replays[d.MessageID], w.allowed[d.MessageID])
		}
		w.open(t, d.MessageID)
	case events.ApprovalDecided:
		if isAllow(d.Decision) {
			w.allowed[d.MessageID]++
		}
	}
	w.braked(t, e, after)
	tr := Transcript{}
	tr.Evolve(e)
	for _, m := range tr.Messages {
		if m.Role == roleTool {
			w.open(t, m.MessageID)
			w.results[m.MessageID] = true
		}
	}
	if after.Run != nil && after.Run.Status == runSuspended {
		if after.Run.CancelRequested {
			t.Fatalf("%s suspends a run that was asked to cancel", e.Type)
		}
		w.ended[after.Run.ID] = "suspended"
	}
	w.loops(t, e, after)
}

// braked: after a cancel nothing of the run starts; after a stop no round and no
// replay of the loop; a round only once every call has its outcome.
func (w *watcher) braked(t *rapid.T, e *events.Event, after *State) {
	round, replay, call := false, false, false
	switch d := e.Data.(type) {
	case events.RunCancelRequested:
		w.cancelled[d.RunID] = true
	case events.LoopStopRequested:
		if d.Loop != nil {
			w.stopped[d.Loop.Generation] = true
		}
	case events.RoundStarted:
		round = true
	case events.RoundFinished:
		round = d.Next != nil && d.Next.Admitted
	case events.ReplayStarted:
		replay = true
	case events.ToolStarted:
		call = true
	}
	if !round && !replay && !call {
		return
	}
	if w.cancelled[e.Run] {
		t.Fatalf("%s after the run was cancelled", e.Type)
	}
	if l := after.loopOf(after.Run); l != nil && w.stopped[l.Generation] && (round || replay) {
		t.Fatalf("%s after the loop was stopped", e.Type)
	}
	if n := after.count(unsettled); round && n > 0 {
		t.Fatalf("%s while %d calls have no outcome", e.Type, n)
	}
}

func (w *watcher) end(t *rapid.T, run, how string) {
	if was := w.ended[run]; was != "" {
		t.Fatalf("run %s is %s after it was %s", run, how, was)
	}
	w.ended[run] = how
}

func (w *watcher) running(t *rapid.T, run string) {
	if !w.started[run] || w.ended[run] != "" {
		t.Fatalf("run %s works: started %t, ended %q", run, w.started[run], w.ended[run])
	}
}

func (w *watcher) open(t *rapid.T, occurrence string) {
	if w.results[occurrence] {
		t.Fatalf("call %s has its result already", occurrence)
	}
}

// loops: the revision moves on by one for every event that changes the loop, by
// two where the next round is admitted in the same event; rounds keep the cap.
func (w *watcher) loops(t *rapid.T, e *events.Event, after *State) {
	l := after.Loop
	if l == nil {
		return
	}
	now := *l.wire()
	if now == w.loop {
		return
	}
	steps := now.Revision - w.loop.Revision
	finished, isAnswer := e.Data.(events.RoundFinished)
	switch {
	case now.Generation != w.loop.Generation:
		if _, isStart := e.Data.(events.RunStarted); !isStart || now.Revision != 2 || now.RoundsStarted != 0 {
			t.Fatalf("%s began a loop as %+v", e.Type, now)
		}
	case steps == 2 && isAnswer && finished.Next != nil:
	case steps != 1:
		t.Fatalf("%s moved the loop from %+v to %+v", e.Type, w.loop, now)
	}
	if limit := w.caps[now.Generation]; now.RoundsStarted > limit {
		t.Fatalf("%d rounds, the cap is %d", now.RoundsStarted, limit)
	}
	w.loop = now
}
