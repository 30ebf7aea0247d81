package explore

import (
	"os"
	"strings"
	"testing"
)

// That the search finds faults was tried by breaking one guard at a time of the
// rules. Each of these made TestExplore fail, the last because the search did
// not come to an end, the others with a story:
//
//	decideToolStart    without the check of CancelRequested
//	decideToolStart    of a call that is not open
//	decideToolStart    without stillAllowed, which stands for plan mode too
//	decideToolStart    without the check that it was authorized
//	decideReplay       without the check of CancelRequested, or of a stop
//	decideReplay       that does not ask replayBlocked
//	heldRun            that compares neither run nor fence
//	decideApproval     that ignores the generation
//	decideClaim        of a run that is not requested
//	decideFinish       that keeps decisions after a cancel
//	Lapse              that keeps decisions after a cancel, or after a stop
//	evolveCall         of replay.started that leaves the call decided
//	unknownCalls       that lists nothing

// occasions are all that may happen besides ordinary work, one time more each.
var occasions = map[string]func(*Times){
	"gate": func(t *Times) { t.Gates++ }, "crash": func(t *Times) { t.Crash++ }, "lapse": func(t *Times) { t.Lapse++ },
	"lost": func(t *Times) { t.Lost++ }, "stray": func(t *Times) { t.Stray++ }, "give up": func(t *Times) { t.GiveUp++ },
	"hand": func(t *Times) { t.Hand++ }, "wild": func(t *Times) { t.Wild++ }, "cancel": func(t *Times) { t.Cancel++ },
	"stop": func(t *Times) { t.Stop++ }, "close": func(t *Times) { t.Close++ }, "request": func(t *Times) { t.Request++ },
	"plan": func(t *Times) { t.Plan++ }, "mode": func(t *Times) { t.Mode++ }, "deny": func(t *Times) { t.Deny++ },
	"expire": func(t *Times) { t.Expire++ }, "refuse": func(t *Times) { t.Refuse++ },
}

// spell is the bounds of a line: occasions, and the words loop=end, loop=pause,
// free (no enforce_policy) and request (begin before the first claim).
func spell(t *testing.T, line string) Bounds {
	b := Bounds{Enforce: true}
	for word := range strings.SplitSeq(line, ",") {
		switch word = strings.TrimSpace(word); word {
		case "loop=end", "loop=pause":
			b.Loop = strings.TrimPrefix(word, "loop=")
		case "not enforced":
			b.Enforce = false
		case "from the request":
			b.FromRequest = true
		case "":
		default:
			more, ok := occasions[word]
			if !ok {
				t.Fatalf("no occasion %q", word)
			}
			more(&b.Times)
		}
	}
	return b
}

var loops = []string{"", "loop=end", "loop=pause"}

// small are the searches of every test run: each occasion alone, with and
// without a loop, and the pairs and triples that once were, or would be, wrong.
// Under the race detector, which has nothing to find here, only the first.
func small() (lines []string) {
	for name := range occasions {
		lines = append(lines, name)
		if name != "wild" && name != "lapse" && !raceEnabled {
			lines = append(lines, "loop=end,"+name, "loop=pause,"+name)
		}
	}
	if raceEnabled {
		return lines
	}
	return append(lines,
		"from the request", "from the request, cancel", "from the request, lost", "from the request, loop=pause, stop",
		"crash, cancel", "stray, cancel", "lost, cancel", "gate, cancel", "gate, crash", "plan, crash", "mode, mode, deny", "deny, crash",
		"expire, stray", "request, crash", "gate, gate", "loop=pause, crash, stop", "loop=pause, refuse, stop", "not enforced, crash",
	)
}

// large are the searches of make explore: every pair of occasions, with and
// without a loop, and triples around crashes and lost replies.
func large() (lines []string) {
	for a := range occasions {
		for b := range occasions {
			if a <= b {
				for _, loop := range loops {
					lines = append(lines, loop+","+a+","+b)
				}
			}
		}
	}
	for _, more := range []string{"gate", "plan", "deny", "request", "expire", "stray", "wild", "close", "hand"} {
		lines = append(lines, "crash, cancel, "+more, "lost, cancel, "+more, "lapse, cancel, "+more, "loop=pause, crash, stop, "+more)
	}
	return lines
}

// TestExplore: no world within the bounds breaks a rule of the package comment.
// Every search ends by itself; the large ones stop at a number of worlds.
func TestExplore(t *testing.T) {
	t.Parallel()
	lines, limit := small(), 400_000
	if os.Getenv("CULM_EXPLORE") != "" {
		lines, limit = large(), 1_000_000
	}
	worlds := 0
	for _, line := range lines {
		f := Explore(spell(t, line), limit)
		worlds += f.Worlds
		t.Logf("%s: %s", line, f)
		if f.Wrong != "" {
			t.Errorf("%s:\n%s", line, f.Wrong)
		}
		if !f.Complete && f.Wrong == "" && os.Getenv("CULM_EXPLORE") == "" {
			t.Errorf("%s: too many worlds for every test run", line)
		}
	}
	t.Logf("%d searches, %d worlds", len(lines), worlds)
}
