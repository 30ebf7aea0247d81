package projection

import (
	"fmt"
	"strings"
	"testing"
)

// TestApplier_KeepsABoundedAmount: however many sessions there are and whatever
// they hold, the rows that stay in memory are bounded, and the newest stay.
func TestApplier_KeepsABoundedAmount(t *testing.T) {
	t.Parallel()
	a := &applier{p: &Projector{opts: Options{Sessions: 5000}}, all: map[string]*tracked{}}
	note := func(session string, bytes int) *tracked {
		s := a.track(session)
		s.live = newLive(session)
		s.live.row.Title = strings.Repeat("x", bytes)
		if !s.cached {
			s.cached = true
			a.cached = append(a.cached, s)
		}
		a.keep(s)
		a.letGo()
		return s
	}
	for n := range 3000 {
		note(fmt.Sprint("s-", n), 50<<10)
	}
	if huge := note("huge", maxKept); huge.live != nil || huge.kept != 0 {
		t.Error("a huge session stays in memory")
	}
	last := note("s-0", 50<<10) // again, and not twice
	sum, in := 0, map[string]bool{}
	for _, s := range a.cached {
		if in[s.session] {
			t.Errorf("%s is kept twice", s.session)
		}
		in[s.session] = true
		sum += s.kept
	}
	if sum != a.kept || sum > maxKeptAll || sum < maxKeptAll*9/10 {
		t.Errorf("%d bytes are kept, counted as %d", sum, a.kept)
	}
	if last.live == nil || !in["s-2999"] {
		t.Error("the newest are not kept")
	}
	if a.track("s-1").live != nil {
		t.Error("the oldest are kept")
	}
	for n := range 6000 {
		note(fmt.Sprint("t-", n), 0)
	}
	if n := len(a.cached); n > 5000 || a.kept > maxKeptAll {
		t.Errorf("%d sessions, %d bytes", n, a.kept)
	}
}
