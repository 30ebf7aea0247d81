package projection

import (
	"testing"

	"culm/events"
)

// TestHistory_HoldsEveryEvent: the random histories of these tests hold every
// type of event, and every view is asked about all of them.
func TestHistory_HoldsEveryEvent(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 91).run(40, 12_000)
	never := map[string]bool{"question.expired": true} // no command leads to it yet
	for _, d := range events.Definitions() {
		if h.types[d.Type] == 0 && !never[d.Type] {
			t.Errorf("no %s among %d types", d.Type, len(h.types))
		}
	}
	o := options(t, log)
	start(t, o).awaitReady()
	t.Logf("%+v", check(t, o.File, log))
}
