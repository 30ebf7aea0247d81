package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/aggregate"
	"culm/internal/natstest"
)

// firsts are rules that remember what they have accepted, by command id, and the
// order in which it came for the first time.
type firsts struct {
	mu   sync.Mutex
	seen map[string]bool
	got  map[string][]string // session -> bodies
	want int
	all  chan struct{}
}

func (f *firsts) rules() *fakeRules {
	return &fakeRules{handle: func(r aggregate.Request, done func(aggregate.Reply)) {
		f.mu.Lock()
		if !f.seen[r.ID] {
			f.seen[r.ID] = true
			f.got[r.Session] = append(f.got[r.Session], string(r.Body))
			if len(f.seen) == f.want {
				close(f.all)
			}
		}
		f.mu.Unlock()
		done(acceptedReply(r, 1))
	}}
}

// TestLater_ReplicatedQueue: a queue on three servers, two engines. The leader of
// the queue goes while commands come in, and then the engine that holds it.
// Every command that was acknowledged is handled, those of a session in order,
// and nothing is left.
func TestLater_ReplicatedQueue(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t)
	const sessions, each = 3, 60
	f := &firsts{seen: map[string]bool{}, got: map[string][]string{}, want: sessions * each, all: make(chan struct{})}
	engine := func() *Later {
		l, err := StartLater(inTime(t), LaterOptions{Conn: c.Connect(t), Handler: f.rules(), Replicas: 3, Takeover: 2 * time.Second, RedeliverAfter: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	engines := []*Later{engine(), engine()}
	js, err := jetstream.New(c.Connect(t), jetstream.WithDefaultTimeout(testPatience))
	if err != nil {
		t.Fatal(err)
	}
	// put returns when the queue has acknowledged the command. Until then it is
	// sent again, under its id.
	put := func(session string, n int) error {
		m := &nats.Msg{Subject: "agent.later.alice." + session + ".n.v", Header: nats.Header{HeaderLaterID: {fmt.Sprint(session, "-", n)}}, Data: bodyOf(n)}
		for end := time.Now().Add(testPatience); ; {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := js.PublishMsg(ctx, m)
			cancel()
			if err == nil || time.Now().After(end) {
				return err
			}
		}
	}
	var senders sync.WaitGroup
	third, sent := make(chan struct{}, sessions), make(chan error, sessions)
	for s := range sessions {
		senders.Go(func() {
			for n := range each {
				if err := put(fmt.Sprint("S", s), n); err != nil {
					sent <- fmt.Errorf("session %d, command %d: %w", s, n, err)
					return
				}
				if n == each/3 {
					third <- struct{}{}
				}
			}
		})
	}
	awaitValue(t, third)
	down := c.Leader(t, LaterStream)
	down.Stop()
	c.Leader(t, LaterStream)
	down.Restart(t)
	engines[0].o.Conn.Close() // crashes, perhaps with a command in hand
	senders.Wait()
	close(sent)
	for err := range sent {
		t.Fatal(err)
	}
	select {
	case <-f.all:
	case <-time.After(testPatience):
		f.mu.Lock()
		t.Fatalf("%d of %d commands were handled", len(f.seen), f.want)
	}
	for s := range sessions {
		for n, body := range f.got[fmt.Sprint("S", s)] {
			if body != string(bodyOf(n)) {
				t.Fatalf("session %d: command %d is %s", s, n, body)
			}
		}
	}
	awaitEmpty(t, js)
	for _, l := range engines {
		if err := l.Stop(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Stop: %v", err)
		}
	}
}

// awaitEmpty waits until the queue holds nothing.
func awaitEmpty(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	var left uint64
	for end := time.Now().Add(testPatience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := js.Stream(t.Context(), LaterStream)
		if err != nil {
			continue
		}
		if left = s.CachedInfo().State.Msgs; left == 0 {
			return
		}
	}
	t.Errorf("%d commands are left in the queue", left)
}
