package projection

import (
	"context"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"culm/events"
)

// gatedLog keeps readers waiting while it is shut, and says that they came.
type gatedLog struct {
	*events.Mem

	shut atomic.Pointer[chan struct{}] // closed when it opens again; nil is open
	came chan string                   // names of sessions whose readers wait
}

func (g *gatedLog) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	if shut := g.shut.Load(); shut != nil {
		select {
		case g.came <- session:
		default:
		}
		select {
		case <-*shut:
		case <-ctx.Done():
			return func(yield func(events.Record, error) bool) { yield(events.Record{}, ctx.Err()) }
		}
	}
	return g.Mem.Read(ctx, session, after, through)
}

// heard is a log of the program in which a line can be waited for.
type heard struct {
	slog.Handler

	words string
	once  chan struct{}
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.words) {
		select {
		case h.once <- struct{}{}:
		default:
		}
	}
	return nil
}

func within[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal(what)
	}
}

// TestSwitch_ToLess: the rebuilt database holds less than the one it replaces,
// which was behind the log. Nothing of the old one is believed any more: what is
// waited for is not there yet, and the lag is that of the new one.
func TestSwitch_ToLess(t *testing.T) {
	t.Parallel()
	mem := events.NewMem()
	h := newHistory(t, mem, 91)
	say := func(n int) {
		for range n {
			h.give("s", "message.submit", fields{"content": "more"})
		}
	}
	h.give("s", "session.create", fields{"title": "x"})
	say(2)
	o := options(t, mem)
	rebuilt := o
	rebuilt.File, rebuilt.Feed = o.File+buildingSuffix, idleFeed{}
	if err := build(t.Context(), rebuilt); err != nil {
		t.Fatal(err)
	}
	say(3)
	log, switched := &gatedLog{Mem: mem, came: make(chan string, 1)}, make(chan struct{}, 1)
	o.Log, o.Feed, o.Sweep = log, idleFeed{}, 10*time.Millisecond
	o.Logger = slog.New(heard{slog.DiscardHandler, "switched to", switched})
	r := start(t, o).awaitReady()
	at := func(seq uint64) (Page[SessionItem], error) {
		return r.Session(t.Context(), SessionQuery{Session: "s", Wait: Wait{MinSequence: map[string]uint64{"s": seq}, WaitMS: ptr(int64(1))}})
	}
	if page, err := at(6); err != nil || page.AsOf.Sequence != 6 {
		t.Fatalf("before the switch: %+v, %v", page, err)
	}
	shut := make(chan struct{})
	log.shut.Store(&shut)
	say(3)
	within(t, log.came, "nobody reads what is new")
	if st, err := r.Stats(t.Context()); err != nil || st.Views[0].LagEvents == 0 {
		t.Errorf("before the switch the lag is %+v, %v", st.Views, err)
	}
	if err := os.Rename(rebuilt.File, o.File+builtSuffix); err != nil {
		t.Fatal(err)
	}
	within(t, switched, "no switch")
	if page, err := at(6); err == nil || AsError(err).Code != CodeNotYet || AsError(err).Details["sequence"] != uint64(3) {
		t.Errorf("asked for 6 of 3: %+v, %v", page.AsOf, err)
	}
	close(shut)
	r.await(mem)
	if page, err := at(9); err != nil || page.AsOf.Sequence != 9 {
		t.Errorf("after the switch: %+v, %v", page, err)
	}
	if st, err := r.Stats(t.Context()); err != nil || st.Views[0].LagEvents != 0 || st.Views[0].Lag != 0 {
		t.Errorf("after the switch the lag is %+v, %v", st.Views, err)
	}
	check(t, o.File, mem)
}

// TestSwitch_ToNoDatabase: what stands in place of a rebuilt database cannot be
// opened. The projector ends with that, and a query that still comes is refused.
func TestSwitch_ToNoDatabase(t *testing.T) {
	t.Parallel()
	o := options(t, events.NewMem())
	o.Sweep = 10 * time.Millisecond
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(o.File+builtSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context()); err == nil {
		t.Error("it runs without a database")
	}
	if _, err := p.Session(t.Context(), SessionQuery{Session: "s"}); err == nil || AsError(err).Code != CodeUnavailable {
		t.Errorf("a query: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefresh_SessionGone: a session that is gone when a view is computed anew
// is not waited for as if it were there.
func TestRefresh_SessionGone(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	fill(t, log, "s", 6)
	fill(t, log, "stays", 2)
	o := options(t, log)
	r := start(t, o).awaitReady()
	if _, err := r.db.write.ExecContext(t.Context(), "UPDATE views SET version = 0 WHERE name = 'tools'"); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := log.Delete(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	o.Logger = slog.New(slog.DiscardHandler) // it is told of
	r = start(t, o).awaitReady()
	_, err := r.Sessions(t.Context(), SessionsQuery{Wait: Wait{MinSequence: map[string]uint64{"s": 6}, WaitMS: ptr(int64(1))}})
	if err == nil || AsError(err).Code != CodeNotYet {
		t.Errorf("a session that is gone was waited for: %v", err)
	}
	check(t, o.File, log)
}
