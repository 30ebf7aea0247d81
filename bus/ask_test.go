package bus

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/internal/natstest"
)

// askWorld is a connection that asks, and a subject that somebody else answers.
type askWorld struct {
	asks     *asks
	requests chan *nats.Msg
}

func newAskWorld(t *testing.T, wait time.Duration) askWorld {
	t.Helper()
	s := natstest.Start(t, nil)
	other := s.Connect(t)
	w := askWorld{newAsks(s.Connect(t), wait), make(chan *nats.Msg, 64)}
	if _, err := other.ChanSubscribe("q", w.requests); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w askWorld) ask(ctx context.Context, body string) (string, error) {
	m, err := w.asks.RequestMsgWithContext(ctx, &nats.Msg{Subject: "q", Data: []byte(body)})
	if err != nil {
		return "", err
	}
	return string(m.Data), nil
}

// next is the next request.
func (w askWorld) next(t *testing.T) *nats.Msg {
	t.Helper()
	select {
	case m := <-w.requests:
		return m
	case <-time.After(testPatience):
		t.Error("no request came")
		return &nats.Msg{}
	}
}

func respond(t *testing.T, m *nats.Msg, body string) {
	t.Helper()
	if err := m.Respond([]byte(body)); err != nil {
		t.Error(err)
	}
}

// TestAsks_EachItsOwn: of many requests at once each gets its own answer, and
// no more reply subjects are made than there were requests at once.
func TestAsks_EachItsOwn(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, testPatience)
	const users, each = 8, 50
	go func() {
		for range users * each {
			m := w.next(t)
			respond(t, m, "to "+string(m.Data))
		}
	}()
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for n := range each {
				body := strconv.Itoa(u) + "/" + strconv.Itoa(n)
				if got, err := w.ask(t.Context(), body); err != nil || got != "to "+body {
					t.Errorf("%s: %q, %v", body, got, err)
				}
			}
		})
	}
	wg.Wait()
	if w.asks.made > users || len(w.asks.idle) != int(w.asks.made) {
		t.Errorf("%d reply subjects for %d users, %d left", w.asks.made, users, len(w.asks.idle))
	}
}

// TestAsks_LateAnswer: what comes after its request was given up is nobody's.
func TestAsks_LateAnswer(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, 50*time.Millisecond)
	if _, err := w.ask(t.Context(), "first"); !errors.Is(err, nats.ErrTimeout) || !transient(err) {
		t.Fatalf("without an answer: %v", err)
	}
	w.asks.wait = testPatience
	first := w.next(t)
	go func() {
		respond(t, first, "late")
		respond(t, w.next(t), "in time")
	}()
	if got, err := w.ask(t.Context(), "second"); err != nil || got != "in time" {
		t.Errorf("second request: %q, %v", got, err)
	}
}

func TestAsks_Cancelled(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, testPatience)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		w.next(t)
		cancel()
	}()
	for range 2 { // while it waits, and before it began
		if _, err := w.ask(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if len(w.asks.idle) != 0 {
		t.Error("a reply subject that may still be answered was kept")
	}
}

func TestAsks_NobodyThere(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, testPatience)
	if _, err := w.asks.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: "nobody", Data: []byte("x")}); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("%v", err)
	}
}

// TestAsks_Closed: who waits for an answer learns at once that the connection
// is closed.
func TestAsks_Closed(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, testPatience)
	go func() {
		w.next(t)
		w.asks.nc.Close()
	}()
	began := time.Now()
	for range 2 {
		if _, err := w.ask(t.Context(), "x"); !errors.Is(err, nats.ErrConnectionClosed) || time.Since(began) > testPatience/2 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	}
}

// TestAsks_AnsweredTwice: what comes to a reply subject while nobody asks is not
// the answer to the next request, and not to any after it.
func TestAsks_AnsweredTwice(t *testing.T) {
	t.Parallel()
	w := newAskWorld(t, testPatience)
	go func() {
		for m := w.next(t); string(m.Data) != "last"; m = w.next(t) {
			respond(t, m, "to "+string(m.Data))
			respond(t, m, "stray")
		}
	}()
	for _, body := range []string{"first", "second", "third"} {
		if got, err := w.ask(t.Context(), body); err != nil || got != "to "+body {
			t.Errorf("%s: %q, %v", body, got, err)
		}
		for end := time.Now().Add(testPatience); len(w.asks.idle[0].answer) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no second answer came")
			}
		}
	}
	if err := w.asks.nc.Publish("q", []byte("last")); err != nil {
		t.Error(err)
	}
	if n := w.asks.nc.NumSubscriptions(); n != 1 {
		t.Errorf("%d reply subjects are subscribed, one can be used", n)
	}
}
