package bus

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
	"culm/internal/logtest"
	"culm/internal/natstest"
)

// A replicated log: conflicts, a lost acknowledgement, and a leader that goes.
func TestJetStreamLog_replicated(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t)
	newLog := func() *JetStreamLog {
		l, err := NewJetStreamLog(inTime(t), c.Connect(t), LogOptions{Replicas: 3, AckWait: time.Second, RetryFor: testPatience})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := newLog()
	fillLog(t, l, "s", 5)
	wrong := func(expected uint64) {
		t.Helper()
		err := l.Append(t.Context(), "s", expected, noted, []byte(`{"other":1}`))
		if _, ok := errors.AsType[*events.WrongSequenceError](err); !ok {
			t.Errorf("Append at %d: %v, want WrongSequenceError", expected, err)
		}
	}
	wrong(3)
	wrong(9)

	f := &faulty{}
	f.fault = times(1, isAppend, func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		if _, err := l.nc.RequestMsgWithContext(ctx, m); err != nil {
			return nil, err
		}
		return nil, context.DeadlineExceeded
	})
	undo := f.putInto(l)
	fillLog(t, l, "s", 6)
	undo()

	raceWhileLeaderGoes(t, c, []*JetStreamLog{l, newLog(), newLog()})

	if err := l.Delete(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	if expected, err := l.Create(t.Context(), "s"); err != nil || expected < 6 {
		t.Errorf("Create after Delete = %d, %v", expected, err)
	}
}

// raceWhileLeaderGoes lets every log append at every sequence while the
// stream's leader is stopped and comes back: one wins each, none is lost.
func raceWhileLeaderGoes(t *testing.T, c *natstest.Cluster, logs []*JetStreamLog) {
	t.Helper()
	const first, last = 6, 60
	for seq := uint64(first); seq < last; seq++ {
		var down *natstest.Server
		if seq == 20 {
			down = c.Leader(t, "SESSION_s")
			go down.Shutdown()
		}
		errs := make([]error, len(logs))
		var wg sync.WaitGroup
		for i, l := range logs {
			wg.Go(func() {
				errs[i] = l.Append(t.Context(), "s", seq, noted, append(logtest.Payload("s", seq+1), byte('0'+i)))
			})
		}
		wg.Wait()
		winners := 0
		for i, err := range errs {
			if _, lost := errors.AsType[*events.WrongSequenceError](err); err != nil && !lost {
				t.Fatalf("writer %d at %d: %v", i, seq, err)
			}
			if err == nil {
				winners++
			}
		}
		if winners != 1 {
			t.Fatalf("%d winners at %d, want 1", winners, seq)
		}
		if down != nil {
			down.Restart(t)
		}
	}
	if n, err := logs[0].Last(t.Context(), "s"); err != nil || n != last {
		t.Fatalf("Last = %d, %v; want %d", n, err, last)
	}
	next := uint64(1)
	for r, err := range logs[0].Read(t.Context(), "s", 0, 0) {
		if err != nil || r.Seq != next {
			t.Fatalf("read %d, %v; want %d", r.Seq, err, next)
		}
		next++
	}
	if next != last+1 {
		t.Fatalf("read up to %d, want %d", next-1, last)
	}
}
