package aggregate

import (
	"math"
	"testing"
)

// TestHandler_ReadAfterTheEnd: whoever asks for events after the end is told
// where the session ends, not the sequence that it named.
func TestHandler_ReadAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.engine()
	e.must("s", "session.create", nil)
	e.must("s", "message.submit", obj{"content": "m"})
	head := b.fold("s").Head
	for _, after := range []uint64{head.Seq, head.Seq + 1, math.MaxUint64} {
		r := e.read("s", ReadQuery{Events: &EventsQuery{After: after}})
		if !r.OK || r.Sequence != head.Seq || r.Birth != head.Birth || r.HeadHash != head.Hash || r.Events == nil || len(r.Events) != 0 || r.Next != nil {
			t.Errorf("after %d: %+v", after, r)
		}
	}
}
