package bus

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"culm/events"
	"culm/internal/natstest"
)

// fakeDisk is a sync function that a test lets begin and end.
type fakeDisk struct {
	begins chan int   // number of the sync that just began
	ends   chan error // what the running sync returns
	n      int
}

func newFakeDisk() *fakeDisk {
	return &fakeDisk{begins: make(chan int), ends: make(chan error)}
}

func (d *fakeDisk) sync() error {
	d.n++
	d.begins <- d.n
	return <-d.ends
}

// waiterOf returns a channel that gets what the ticket's callback was given.
func waiterOf(b events.Barrier, ticket uint64) <-chan error {
	c := make(chan error, 2) // room to see a second call
	b.Then(ticket, func(err error) { c <- err })
	return c
}

func mustNotBeCalled(t *testing.T, c <-chan error, when string) {
	t.Helper()
	select {
	case err := <-c:
		t.Fatalf("called with %v %s", err, when)
	default:
	}
}

func TestSyncBarrier_only_a_sync_begun_after_mark_counts(t *testing.T) {
	t.Parallel()
	disk := newFakeDisk()
	b := NewSyncBarrier(disk.sync)
	first := waiterOf(b, b.Mark())
	<-disk.begins
	// The first sync runs: what is marked now may have missed it.
	second := waiterOf(b, b.Mark())
	third := waiterOf(b, b.Mark())
	disk.ends <- nil
	if err := <-first; err != nil {
		t.Fatalf("first: %v", err)
	}
	if n := <-disk.begins; n != 2 {
		t.Fatalf("sync %d began, want 2", n)
	}
	mustNotBeCalled(t, second, "before its sync ended")
	disk.ends <- nil
	for name, c := range map[string]<-chan error{"second": second, "third": third} {
		if err := <-c; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A ticket of a sync that has ended is answered at once, without another.
	if err := <-waiterOf(b, 2); err != nil {
		t.Errorf("old ticket: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestSyncBarrier_a_failed_sync_is_final(t *testing.T) {
	t.Parallel()
	disk := newFakeDisk()
	b := NewSyncBarrier(disk.sync)
	well := b.Mark()
	first := waiterOf(b, well)
	<-disk.begins
	disk.ends <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	broken := errors.New("input/output error")
	now := waiterOf(b, b.Mark())
	<-disk.begins
	queued := waiterOf(b, b.Mark())
	disk.ends <- broken
	<-b.Failed()
	later := waiterOf(b, b.Mark())
	for name, c := range map[string]<-chan error{"now": now, "queued": queued, "later": later} {
		if err := <-c; !errors.Is(err, broken) || !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := <-waiterOf(b, well); err != nil {
		t.Errorf("a ticket that was durable before: %v", err)
	}
	select {
	case n := <-disk.begins:
		t.Fatalf("sync %d began after one failed", n)
	default:
	}
	if !errors.Is(b.Err(), broken) {
		t.Errorf("Err() = %v", b.Err())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestSyncBarrier_close_serves_who_waits(t *testing.T) {
	t.Parallel()
	b := NewSyncBarrier(func() error { return nil })
	var called atomic.Int32
	for range 100 {
		b.Then(b.Mark(), func(err error) {
			if err != nil {
				t.Errorf("called with %v", err)
			}
			called.Add(1)
		})
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := called.Load(); n != 100 {
		t.Errorf("%d called, want 100", n)
	}
	if err := <-waiterOf(b, b.Mark()); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}

// A clock counts writes; a sync makes durable what was written when it began.
func TestSyncBarrier_never_answers_before_the_write_is_durable(t *testing.T) {
	t.Parallel()
	var written, durable atomic.Int64
	b := NewSyncBarrier(func() error {
		n := written.Load()
		durable.Store(max(durable.Load(), n))
		return nil
	})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				mine := written.Add(1)
				answered := make(chan struct{})
				b.Then(b.Mark(), func(err error) {
					if err != nil || durable.Load() < mine {
						t.Errorf("write %d answered with %v when %d were durable", mine, err, durable.Load())
					}
					close(answered)
				})
				<-answered
			}
		})
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func startGroupServer(t *testing.T) *natstest.Server {
	t.Helper()
	return natstest.Start(t, func(o *server.Options) { o.ServerName = serverNamePrefix + string(SyncGroup) })
}

func serveBarrier(t *testing.T, nc *nats.Conn, b events.Barrier) {
	t.Helper()
	stop, err := ServeBarrier(nc, Subjects{}, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			t.Error(err)
		}
	})
}

// dial returns the remote barrier of s, whose first request the disk answers.
func dial(t *testing.T, s *natstest.Server, disk *fakeDisk) *RemoteBarrier {
	t.Helper()
	type dialed struct {
		b   events.Barrier
		err error
	}
	c := make(chan dialed, 1)
	go func() {
		b, err := DialBarrier(t.Context(), s.Connect(t), Subjects{})
		c <- dialed{b, err}
	}()
	<-disk.begins
	disk.ends <- nil
	d := <-c
	if d.err != nil {
		t.Fatal(d.err)
	}
	remote, ok := d.b.(*RemoteBarrier)
	if !ok {
		t.Fatalf("DialBarrier = %T", d.b)
	}
	return remote
}

func TestRemoteBarrier(t *testing.T) {
	t.Parallel()
	s := startGroupServer(t)
	disk := newFakeDisk()
	local := NewSyncBarrier(disk.sync)
	serveBarrier(t, s.Connect(t), local)
	remote := dial(t, s, disk)

	first := waiterOf(remote, remote.Mark())
	<-disk.begins
	second := waiterOf(remote, remote.Mark())
	disk.ends <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-disk.begins
	mustNotBeCalled(t, second, "before a sync that began after its mark")
	disk.ends <- errors.New("input/output error")
	if err := <-second; !errors.Is(err, errRemoteFailed) || !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("second: %v", err)
	}
	<-remote.Failed()
	if err := remote.Close(); err != nil {
		t.Error(err)
	}
	if err := local.Close(); err != nil {
		t.Error(err)
	}
}

func TestRemoteBarrier_an_answer_of_another_boot_is_final(t *testing.T) {
	t.Parallel()
	s := startGroupServer(t)
	nc := s.Connect(t)
	boots := make(chan string, 2)
	boots <- "ok a"
	boots <- "ok b"
	if _, err := nc.Subscribe(barrierSubject(Subjects{}), func(m *nats.Msg) { _ = m.Respond([]byte(<-boots)) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b, err := DialBarrier(t.Context(), s.Connect(t), Subjects{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waiterOf(b, b.Mark()); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("after another boot: %v", err)
	}
	<-b.(*RemoteBarrier).Failed()
}

func TestDialBarrier_where_nobody_answers(t *testing.T) {
	t.Parallel()
	t.Run("a plain server needs none", func(t *testing.T) {
		t.Parallel()
		b, err := DialBarrier(t.Context(), natstest.Start(t, nil).Connect(t), Subjects{})
		if _, nop := b.(NopBarrier); err != nil || !nop {
			t.Errorf("DialBarrier = %T, %v", b, err)
		}
	})
	t.Run("an embedded server must answer", func(t *testing.T) {
		t.Parallel()
		nc := startGroupServer(t).Connect(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if b, err := DialBarrier(ctx, nc, Subjects{}); !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("DialBarrier = %T, %v", b, err)
		}
	})
}

func TestRemoteBarrier_no_answer_is_not_final(t *testing.T) {
	t.Parallel()
	fails := make(chan error, 2)
	b := NewSyncBarrier(func() error { return <-fails })
	fails <- errUnanswered
	if err := <-waiterOf(b, b.Mark()); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("unanswered: %v", err)
	}
	fails <- nil
	if err := <-waiterOf(b, b.Mark()); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
