package routing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"culm/aggregate/routing"
)

// world is one cell of the routing table.
type world struct {
	cfg  routing.Config
	live routing.Live
	name string
}

func (w world) String() string {
	return fmt.Sprintf("name %q, instances %+v, live %v", w.name, w.cfg.Instances, w.live)
}

// answer is a key, or the reason for none.
type answer struct {
	key    string
	reason routing.Reason
}

// cellIDs hold a plain id, a second one that sorts before it, and one that is
// spelled like a type.
var cellIDs = []string{"openai-work", "openai-a", "openai"}

// eachInstances yields every list over cellIDs: each id is absent, or there
// with one of two types, enabled or not; and none or one of them is marked.
func eachInstances(yield func([]routing.Instance)) {
	const shapes = 5 // absent, openai on, openai off, recorded on, recorded off
	for n := range shapes * shapes * shapes {
		var list []routing.Instance
		for i, id := range cellIDs {
			shape := n
			for range i {
				shape /= shapes
			}
			switch shape % shapes {
			case 1, 2:
				list = append(list, routing.Instance{ID: id, Type: "openai", Enabled: shape%shapes == 1})
			case 3, 4:
				list = append(list, routing.Instance{ID: id, Type: "recorded", Enabled: shape%shapes == 3})
			}
		}
		yield(list)
		for i := range list {
			marked := slices.Clone(list)
			marked[i].Default = true
			yield(marked)
		}
	}
}

// eachLive yields every subset of the keys that could be live: the ids, a type
// as a key of its own, and a key that is configured nowhere.
func eachLive(yield func(routing.Live)) {
	keys := append(slices.Clone(cellIDs), "recorded", "elsewhere")
	for bits := range 1 << len(keys) {
		live := routing.Live{}
		for i, k := range keys {
			if bits>>i&1 == 1 {
				live[k] = ""
			}
		}
		yield(live)
	}
}

var cellNames = []string{
	"", " \t", "openai-work", " openai-a ", "openai", "recorded", "elsewhere", "anthropic", "opnai", "OpenAI", "openai-", "penai-work",
}

// oracle answers a cell by the sentences of the rules, written as filters over
// what is there rather than as steps: it shares no code with Resolve.
func oracle(w world) answer {
	name := strings.Trim(w.name, " \t\r\n")
	isLive := func(k string) bool { return slices.Contains(slices.Collect(keysOf(w.live)), k) }
	var sameID, sameType, onOfType, markedOfType []routing.Instance
	for _, i := range w.cfg.Instances {
		if i.ID == name {
			sameID = append(sameID, i)
		}
		if i.Type == name {
			sameType = append(sameType, i)
		}
	}
	for _, i := range sameType {
		if i.Enabled {
			onOfType = append(onOfType, i)
		}
		if i.Default {
			markedOfType = append(markedOfType, i)
		}
	}
	pick := func(i routing.Instance, off, dead routing.Reason) answer {
		if !i.Enabled {
			return answer{reason: off}
		}
		if !isLive(i.ID) {
			return answer{reason: dead}
		}
		return answer{key: i.ID}
	}
	known := map[string]bool{"anthropic": true, "gemini": true, "openai": true, "recorded": true}
	if name == "" {
		return answer{reason: routing.ReasonBlank}
	}
	if len(sameID) > 0 {
		return pick(sameID[0], routing.ReasonDisabled, routing.ReasonNotLive)
	}
	if isLive(name) {
		return answer{key: name}
	}
	if !known[name] {
		return answer{reason: routing.ReasonUnknown}
	}
	if len(markedOfType) > 0 {
		return pick(markedOfType[0], routing.ReasonDefaultDisabled, routing.ReasonDefaultNotLive)
	}
	if len(onOfType) == 0 {
		return answer{reason: routing.ReasonNoInstance}
	}
	least := onOfType[0]
	for _, i := range onOfType {
		if i.ID < least.ID {
			least = i
		}
	}
	return pick(least, "", routing.ReasonFirstNotLive)
}

func keysOf(l routing.Live) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range l {
			if !yield(k) {
				return
			}
		}
	}
}

func resolveCell(t *testing.T, w world) answer {
	t.Helper()
	key, err := routing.Resolve(w.name, w.cfg, w.live)
	if err == nil {
		return answer{key: key}
	}
	e, ok := errors.AsType[*routing.Error](err)
	switch {
	case !ok:
		t.Fatalf("%v: error %v is no *routing.Error", w, err)
	case key != "" || e.Code != routing.CodeUnavailable || len(e.Message) < 20:
		t.Fatalf("%v: key %q with %+v", w, key, e)
	}
	return answer{reason: e.Reason}
}

// TestResolve_AllCells goes through every cell of the table, some 200 000, and
// compares with the oracle; every answer must occur.
func TestResolve_AllCells(t *testing.T) {
	t.Parallel()
	seen := map[answer]int{}
	cells := 0
	eachInstances(func(list []routing.Instance) {
		eachLive(func(live routing.Live) {
			for _, name := range cellNames {
				w := world{routing.Config{Instances: list}, live, name}
				got, want := resolveCell(t, w), oracle(w)
				if got != want {
					t.Fatalf("%v:\ngot  %+v\nwant %+v", w, got, want)
				}
				seen[got]++
				cells++
			}
		})
	})
	for _, want := range []answer{
		{"openai-work", ""}, {"openai-a", ""}, {"openai", ""}, {"recorded", ""}, {"elsewhere", ""},
		{"", routing.ReasonBlank}, {"", routing.ReasonDisabled}, {"", routing.ReasonNotLive}, {"", routing.ReasonUnknown},
		{"", routing.ReasonDefaultDisabled}, {"", routing.ReasonDefaultNotLive}, {"", routing.ReasonFirstNotLive}, {"", routing.ReasonNoInstance},
	} {
		if seen[want] == 0 {
			t.Errorf("no cell has the answer %+v", want)
		}
	}
	t.Logf("%d cells, %d answers", cells, len(seen))
}

func TestProviderType_IsDeclaredElseRegisteredElseTheKey(t *testing.T) {
	t.Parallel()
	for _, declared := range []string{"", "openai"} {
		for _, configured := range []bool{false, true} {
			for _, registered := range []string{"", "gemini"} {
				for _, live := range []bool{false, true} {
					var c routing.Config
					if configured {
						c.Instances = []routing.Instance{{ID: "k", Type: declared}}
					}
					l := routing.Live{}
					if live {
						l["k"] = registered
					}
					want := "k"
					if live && registered != "" {
						want = registered
					}
					if configured && declared != "" {
						want = declared
					}
					if got := routing.ProviderType("k", c, l); got != want {
						t.Errorf("declared %q (%t), registered %q (%t): %q, want %q", declared, configured, registered, live, got, want)
					}
				}
			}
		}
	}
}
