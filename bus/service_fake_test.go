package bus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"culm/aggregate"
)

// testPatience bounds every wait for an event; reaching it fails the test. It is long
// because the race detector and other tests share the processors.
const testPatience = 2 * time.Minute

// inTime is a context for a start that makes streams: where none has a deadline,
// JetStream's client gives up soon.
func inTime(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(cancel)
	return ctx
}

// fakeRules is an aggregate.Service whose answers the test gives.
type fakeRules struct {
	// handle answers a command; nil accepts everything. It may keep done.
	handle func(r aggregate.Request, done func(aggregate.Reply))
	read   func(session string, q aggregate.ReadQuery, done func(aggregate.ReadReply))

	mu   sync.Mutex
	got  []aggregate.Request
	came chan aggregate.Request // each request, in order, if not nil
}

func (f *fakeRules) Handle(_ context.Context, r aggregate.Request, done func(aggregate.Reply)) {
	f.mu.Lock()
	f.got = append(f.got, r)
	n := uint64(len(f.got))
	f.mu.Unlock()
	if f.came != nil {
		f.came <- r
	}
	if f.handle != nil {
		f.handle(r, done)
		return
	}
	done(acceptedReply(r, n))
}

func (f *fakeRules) Read(_ context.Context, session string, q aggregate.ReadQuery, done func(aggregate.ReadReply)) {
	if f.read != nil {
		f.read(session, q, done)
		return
	}
	done(aggregate.ReadReply{OK: true, Session: session, Sequence: 1})
}

func (f *fakeRules) requests() []aggregate.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]aggregate.Request(nil), f.got...)
}

func acceptedReply(r aggregate.Request, seq uint64) aggregate.Reply {
	return aggregate.Reply{OK: true, Session: r.Session, Command: r.ID, Sequence: seq, Event: &aggregate.EventRef{Sequence: seq, Type: r.Name}}
}

func refusedReply(r aggregate.Request, code string) aggregate.Reply {
	return aggregate.Reply{Session: r.Session, Command: r.ID, Error: &aggregate.Error{Code: code, Message: "because: " + code}}
}

// awaitValue takes one value from c in time.
func awaitValue[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testPatience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func bodyOf(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }
