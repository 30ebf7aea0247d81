package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
	"culm/internal/logtest"
	"culm/internal/natstest"
)

const noted = "note.appended"

// following is a Follow under way; got brings what it hands over.
type following struct {
	got    chan events.Record
	caught chan struct{}
	ended  chan error
	cancel context.CancelFunc
}

func follow(t *testing.T, f *Feed, opts events.FollowOptions) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &following{got: make(chan events.Record, 4096), caught: make(chan struct{}), ended: make(chan error, 1), cancel: cancel}
	opts.CaughtUp = func() { close(w.caught) }
	go func() {
		w.ended <- f.Follow(ctx, opts, func(r events.Record) error {
			w.got <- r
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-w.ended
	})
	return w
}

func (w *following) awaitCaughtUp(t *testing.T) {
	t.Helper()
	select {
	case <-w.caught:
	case err := <-w.ended:
		w.ended <- err
		t.Fatalf("Follow ended: %v", err)
	case <-time.After(testPatience):
		t.Fatal("never caught up")
	}
}

// want takes the next events, which must be first to last of the session.
func (w *following) want(t *testing.T, session string, first, last uint64) {
	t.Helper()
	for seq := first; seq <= last; seq++ {
		select {
		case r := <-w.got:
			if r.Session != session || r.Seq != seq || r.Type != noted || !bytes.Equal(r.Payload, logtest.Payload(session, seq)) {
				t.Fatalf("got %s %d %s %q, want %s %d", r.Session, r.Seq, r.Type, r.Payload, session, seq)
			}
		case <-time.After(testPatience):
			t.Fatalf("no event, want %s %d", session, seq)
		}
	}
}

func (w *following) wantNone(t *testing.T) {
	t.Helper()
	select {
	case r := <-w.got:
		t.Fatalf("got %s %d, want nothing", r.Session, r.Seq)
	default:
	}
}

// fill makes the session if need be and appends events up to last.
func fillLog(t *testing.T, l events.Log, session string, last uint64) {
	t.Helper()
	seq, err := l.Create(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Last(t.Context(), session); err == nil {
		seq = n
	}
	for ; seq < last; seq++ {
		if err := l.Append(t.Context(), session, seq, noted, logtest.Payload(session, seq+1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFeed(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	fillLog(t, l, "a", 3)
	fillLog(t, l, "b", 30)

	feed := NewFeed(s.Connect(t), l, FeedOptions{})
	all := follow(t, feed, events.FollowOptions{All: true, From: map[string]uint64{"b": 28}})
	all.awaitCaughtUp(t)
	all.want(t, "a", 1, 3)
	all.want(t, "b", 29, 30)

	news := follow(t, feed, events.FollowOptions{From: map[string]uint64{"a": 1}})
	news.awaitCaughtUp(t)
	news.want(t, "a", 2, 3)

	one := follow(t, feed, events.FollowOptions{Session: "b", From: map[string]uint64{"b": 29, "a": 0}})
	one.awaitCaughtUp(t)
	one.want(t, "b", 30, 30)

	fillLog(t, l, "a", 4)
	fillLog(t, l, "b", 31)
	fillLog(t, l, "c", 2) // not known to anybody
	all.want(t, "a", 4, 4)
	all.want(t, "b", 31, 31)
	all.want(t, "c", 1, 2)
	news.want(t, "a", 4, 4)
	news.want(t, "b", 31, 31)
	news.want(t, "c", 1, 2)
	one.want(t, "b", 31, 31)
	one.wantNone(t)
}

func TestFeed_a_session_made_again_goes_on_above(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	fillLog(t, l, "a", 3)
	w := follow(t, NewFeed(s.Connect(t), l, FeedOptions{}), events.FollowOptions{All: true})
	w.want(t, "a", 1, 3)
	if err := l.Delete(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	fillLog(t, l, "a", 6)
	w.want(t, "a", 5, 6)
	// The follower that knew less of the first life gets what there is.
	behind := follow(t, NewFeed(s.Connect(t), l, FeedOptions{}), events.FollowOptions{From: map[string]uint64{"a": 1}})
	behind.want(t, "a", 5, 6)
}

func TestFeed_reads_after_a_restart_what_was_stored_meanwhile(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	fillLog(t, l, "a", 2)
	w := follow(t, NewFeed(s.Connect(t), l, FeedOptions{Compare: time.Hour}), events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	w.want(t, "a", 1, 2)
	s.Restart(t)
	fillLog(t, l, "a", 6)
	w.want(t, "a", 3, 6)
}

func TestFeed_ends(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	nc := s.Connect(t)
	w := follow(t, NewFeed(nc, l, FeedOptions{}), events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	nc.Close()
	err := <-w.ended
	w.ended <- err
	if !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("connection closed: %v", err)
	}
	fillLog(t, l, "a", 1)
	stop := errors.New("stop")
	err = NewFeed(s.Connect(t), l, FeedOptions{}).Follow(t.Context(), events.FollowOptions{All: true}, func(events.Record) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("handler's error: %v", err)
	}
}

// forged publishes live events as the server would, with any fault.
type forged struct {
	t  *testing.T
	nc *nats.Conn
}

func (f forged) event(session string, seq uint64) {
	f.t.Helper()
	m := nats.NewMsg(Subjects{}.Event(session, noted))
	m.Data = logtest.Payload(session, seq)
	m.Header.Set("Nats-Stream", streamPrefix+session)
	m.Header.Set("Nats-Sequence", strconv.FormatUint(seq, 10))
	if err := f.nc.PublishMsg(m); err != nil {
		f.t.Fatal(err)
	}
}

// silentLog stores without a live feed: its streams are under other subjects.
func silentFeed(t *testing.T, compare time.Duration) (*JetStreamLog, *Feed, forged) {
	t.Helper()
	s := natstest.Start(t, nil)
	quiet, err := NewSubjects("quiet")
	if err != nil {
		t.Fatal(err)
	}
	l := newTestLog(t, s, LogOptions{Subjects: quiet})
	return l, NewFeed(s.Connect(t), l, FeedOptions{Compare: compare}), forged{t, s.Connect(t)}
}

func TestFeed_faults_of_the_live_feed(t *testing.T) {
	t.Parallel()
	l, feed, live := silentFeed(t, time.Hour)
	fillLog(t, l, "a", 1)
	w := follow(t, feed, events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	w.want(t, "a", 1, 1)
	fillLog(t, l, "a", 40)
	fillLog(t, l, "b", 3)

	live.event("a", 2)
	live.event("a", 5) // 3 and 4 were dropped
	w.want(t, "a", 2, 5)
	live.event("a", 5) // doubled
	live.event("a", 3) // late
	live.event("b", 3) // the first that is seen of it
	w.want(t, "b", 1, 3)
	live.event("a", 40) // a gap too large for single reads
	w.want(t, "a", 6, 40)
	if err := live.nc.Publish(Subjects{}.Event("a", noted), []byte("no header")); err != nil {
		t.Fatal(err)
	}
	fillLog(t, l, "a", 41)
	live.event("a", 41)
	w.want(t, "a", 41, 41)
	w.wantNone(t)
}

func TestFeed_notices_a_lost_end(t *testing.T) {
	t.Parallel()
	l, feed, _ := silentFeed(t, 50*time.Millisecond)
	w := follow(t, feed, events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	fillLog(t, l, "a", 3)
	w.want(t, "a", 1, 3)
	fillLog(t, l, "a", 4)
	w.want(t, "a", 4, 4)
}

func TestFeed_a_slow_follower_loses_nothing(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	feed := NewFeed(s.Connect(t), l, FeedOptions{Buffer: 4, Compare: time.Hour})
	const last = 300
	resume, done := make(chan struct{}), make(chan error, 1)
	caught := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		next := uint64(1)
		done <- feed.Follow(ctx, events.FollowOptions{All: true, CaughtUp: func() { close(caught) }}, func(r events.Record) error {
			if r.Seq != next {
				return fmt.Errorf("sequence %d, want %d", r.Seq, next)
			}
			if next++; r.Seq == 1 {
				<-resume // the rest overflows the buffer
			}
			if r.Seq == last {
				cancel()
			}
			return nil
		})
	}()
	<-caught
	fillLog(t, l, "a", last)
	close(resume)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// failingLog is a log that can not be read for a while.
type failingLog struct {
	events.Log
	fails chan struct{} // one listing fails for each token
}

func (l failingLog) Sessions(ctx context.Context) ([]events.Info, error) {
	select {
	case <-l.fails:
		return nil, events.ErrUnavailable
	default:
		return l.Log.Sessions(ctx)
	}
}

func TestFeed_begins_when_the_log_can_be_listed(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	fillLog(t, l, "a", 2)
	fails := make(chan struct{}, 1)
	fails <- struct{}{}
	w := follow(t, NewFeed(s.Connect(t), failingLog{l, fails}, FeedOptions{Compare: 50 * time.Millisecond}), events.FollowOptions{All: true})
	w.awaitCaughtUp(t)
	w.want(t, "a", 1, 2)
}
