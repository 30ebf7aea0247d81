package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
	"culm/internal/logtest"
	"culm/internal/natstest"
)

// faulty passes requests on, or does what the test says instead.
type faulty struct {
	nc   *nats.Conn
	acks requester // for appends
	mu   sync.Mutex
	// fault is asked for each request; false passes it on.
	fault func(ctx context.Context, m *nats.Msg) (answer *nats.Msg, err error, handled bool)
	seen  []string // subjects
}

func (f *faulty) RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	f.mu.Lock()
	f.seen = append(f.seen, m.Subject)
	fault := f.fault
	f.mu.Unlock()
	if fault != nil {
		if answer, err, handled := fault(ctx, m); handled {
			return answer, err
		}
	}
	if isAppend(m) {
		return f.acks.RequestMsgWithContext(ctx, m)
	}
	return f.nc.RequestMsgWithContext(ctx, m)
}

// putInto lets the log's requests go through f; undo ends that.
func (f *faulty) putInto(l *JetStreamLog) (undo func()) {
	f.nc, f.acks = l.nc, l.acks
	l.api.req, l.acks = f, f
	return func() { l.api.req, l.acks = f.nc, f.acks }
}

// faultyLog is a log whose requests go through the returned faults.
func faultyLog(t *testing.T, s *natstest.Server) (*JetStreamLog, *faulty) {
	t.Helper()
	l := newTestLog(t, s, LogOptions{AckWait: testPatience / 4, RetryFor: testPatience})
	f := &faulty{}
	f.putInto(l)
	return l, f
}

func isAppend(m *nats.Msg) bool { return strings.HasPrefix(m.Subject, "agent.log.") }

// times limits a fault to the first n requests that match.
func times(n int, matches func(*nats.Msg) bool, fault func(context.Context, *nats.Msg) (*nats.Msg, error)) func(context.Context, *nats.Msg) (*nats.Msg, error, bool) {
	var mu sync.Mutex
	return func(ctx context.Context, m *nats.Msg) (*nats.Msg, error, bool) {
		mu.Lock()
		hit := matches(m) && n > 0
		if hit {
			n--
		}
		mu.Unlock()
		if !hit {
			return nil, nil, false
		}
		answer, err := fault(ctx, m)
		return answer, err, true
	}
}

func TestAppend_lost_acknowledgement(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	// Faults at the append; each must end in success without a second event.
	for name, fault := range map[string]func(nc *nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error){
		"stored, the answer is lost": func(nc *nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
				if _, err := nc.RequestMsgWithContext(ctx, m); err != nil {
					return nil, err
				}
				return nil, context.DeadlineExceeded
			}
		},
		"stored, the answer is garbage": func(nc *nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
				if _, err := nc.RequestMsgWithContext(ctx, m); err != nil {
					return nil, err
				}
				return &nats.Msg{Data: []byte("{")}, nil
			}
		},
		"stored, then sent again": func(nc *nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
				if _, err := nc.RequestMsgWithContext(ctx, m); err != nil {
					return nil, err
				}
				return nc.RequestMsgWithContext(ctx, m) // answers 10071
			}
		},
		"not sent": func(*nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(context.Context, *nats.Msg) (*nats.Msg, error) { return nil, context.DeadlineExceeded }
		},
		"no responders": func(*nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(context.Context, *nats.Msg) (*nats.Msg, error) { return nil, nats.ErrNoResponders }
		},
		"in flight, as replicated streams say": func(*nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(context.Context, *nats.Msg) (*nats.Msg, error) {
				return &nats.Msg{Data: []byte(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"x","seq":0}`)}, nil
			}
		},
		"server not ready": func(*nats.Conn) func(context.Context, *nats.Msg) (*nats.Msg, error) {
			return func(context.Context, *nats.Msg) (*nats.Msg, error) {
				return &nats.Msg{Data: []byte(`{"error":{"code":503,"err_code":10008,"description":"not available"},"stream":"x","seq":0}`)}, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := faultyLog(t, s)
			session := strings.ReplaceAll(strings.ReplaceAll(name, " ", "_"), ",", "")
			fillLog(t, l, session, 2)
			f.mu.Lock()
			f.fault = times(1, isAppend, fault(l.nc))
			f.mu.Unlock()
			if err := l.Append(t.Context(), session, 2, noted, logtest.Payload(session, 3)); err != nil {
				t.Fatalf("Append: %v", err)
			}
			fillLog(t, l, session, 4)
			var last uint64
			for r, err := range l.Read(t.Context(), session, 0, 0) {
				if err != nil || string(r.Payload) != string(logtest.Payload(session, r.Seq)) {
					t.Errorf("event %d: %q, %v", r.Seq, r.Payload, err)
				}
				last = r.Seq
			}
			if last != 4 {
				t.Errorf("last is %d, want 4", last)
			}
		})
	}
}

func TestAppend_lost_acknowledgement_and_another_writer_won(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, f := faultyLog(t, s)
	fillLog(t, l, "s", 2)
	f.fault = times(1, isAppend, func(context.Context, *nats.Msg) (*nats.Msg, error) {
		// The request is lost on the way, and somebody else comes first.
		if err := newTestLog(t, s, LogOptions{}).Append(t.Context(), "s", 2, noted, []byte(`{"other":1}`)); err != nil {
			t.Error(err)
		}
		return nil, context.DeadlineExceeded
	})
	err := l.Append(t.Context(), "s", 2, noted, logtest.Payload("s", 3))
	if wrong, ok := errors.AsType[*events.WrongSequenceError](err); !ok || wrong.Expected != 2 {
		t.Errorf("Append: %v, want WrongSequenceError", err)
	}
}

func TestAppend_outcome_not_learned(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, f := faultyLog(t, s)
	fillLog(t, l, "s", 2)
	f.fault = func(ctx context.Context, _ *nats.Msg) (*nats.Msg, error, bool) {
		<-ctx.Done()
		return nil, ctx.Err(), true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := l.Append(ctx, "s", 2, noted, []byte("{}")); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("Append: %v, want ErrUnavailable", err)
	}
	if _, err := l.Last(ctx, "s"); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("Last: %v, want ErrUnavailable", err)
	}
}

func TestAppend_unhealthy_server_is_not_asked(t *testing.T) {
	t.Parallel()
	sick := errors.Join(events.ErrUnavailable, errors.New("free disk space"))
	l, f := faultyLog(t, natstest.Start(t, nil))
	fillLog(t, l, "s", 1)
	f.seen = nil
	l.opts.Health = func() error { return sick }
	if err := l.Append(t.Context(), "s", 1, noted, []byte("{}")); !errors.Is(err, sick) {
		t.Errorf("Append: %v", err)
	}
	if len(f.seen) > 0 {
		t.Errorf("requests %v", f.seen)
	}
}

func TestAppend_payload_limit(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, f := faultyLog(t, s)
	fillLog(t, l, "s", 8)
	// From 10 on the expected sequence in the header has two digits.
	for expected := uint64(8); expected < 12; expected++ {
		headers := len("NATS/1.0\r\n") + len("Content-Type: application/cloudevents+json\r\n") +
			len("Nats-Expected-Last-Sequence: \r\n") + len(fmt.Sprint(expected)) + len("Nats-Expected-Stream: SESSION_s\r\n") + len("\r\n")
		most := int(l.nc.MaxPayload()) - headers
		f.seen = nil
		if err := l.Append(t.Context(), "s", expected, noted, make([]byte, most+1)); !errors.Is(err, events.ErrTooLarge) {
			t.Errorf("one byte too many at %d: %v, want ErrTooLarge", expected, err)
		}
		if len(f.seen) > 0 {
			t.Errorf("a request was made for an event that is too large: %v", f.seen)
		}
		size := most - int(expected%2) // the limit, and one less
		if err := l.Append(t.Context(), "s", expected, noted, make([]byte, size)); err != nil {
			t.Fatalf("%d of %d bytes at %d: %v", size, most, expected, err)
		}
		for r, err := range l.Read(t.Context(), "s", expected, 0) {
			if err != nil || len(r.Payload) != size {
				t.Errorf("read back %d bytes, %v; want %d", len(r.Payload), err, size)
			}
		}
	}
}

// A deletion between Create's look at the tombstone and the making of the
// stream must not let the numbers begin anew.
func TestCreate_races_with_a_deletion(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	other := newTestLog(t, s, LogOptions{})
	l, f := faultyLog(t, s)
	fillLog(t, other, "s", 3)
	f.fault = times(1, func(m *nats.Msg) bool { return strings.HasPrefix(m.Subject, "$JS.API.STREAM.CREATE.") },
		func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
			if err := other.Delete(ctx, "s", ""); err != nil {
				return nil, err
			}
			return l.nc.RequestMsgWithContext(ctx, m)
		})
	if expected, err := l.Create(t.Context(), "s"); err != nil || expected != 4 {
		t.Errorf("Create = %d, %v; want 4", expected, err)
	}
}

func TestReadOnlyLog(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l := newTestLog(t, s, LogOptions{})
	fillLog(t, l, "s", 2)
	ro := newTestLog(t, s, LogOptions{ReadOnly: true})
	if _, err := ro.Create(t.Context(), "x"); err == nil {
		t.Error("Create succeeded")
	}
	if err := ro.Append(t.Context(), "s", 2, noted, []byte("{}")); err == nil {
		t.Error("Append succeeded")
	}
	if err := ro.Delete(t.Context(), "s", ""); err == nil {
		t.Error("Delete succeeded")
	}
	if last, err := ro.Last(t.Context(), "s"); err != nil || last != 2 {
		t.Errorf("Last = %d, %v", last, err)
	}
}

func TestSessions_pages(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	l, f := faultyLog(t, s)
	want := 300
	for i := range want {
		fillLog(t, l, sessionNumber(i), 1)
	}
	// Two sessions of the first page are deleted between the first and the
	// second page; everything else must still be listed.
	pages := 0
	f.fault = func(ctx context.Context, m *nats.Msg) (*nats.Msg, error, bool) {
		if !strings.HasPrefix(m.Subject, "$JS.API.STREAM.LIST") {
			return nil, nil, false
		}
		if pages++; pages == 2 {
			for _, i := range []int{3, 5} {
				if err := newTestLog(t, s, LogOptions{}).Delete(ctx, sessionNumber(i), ""); err != nil {
					t.Error(err)
				}
			}
		}
		return nil, nil, false
	}
	infos, err := l.Sessions(t.Context())
	if err != nil || len(infos) != want {
		t.Fatalf("%d sessions, %v; want %d", len(infos), err, want)
	}
	for i, info := range infos {
		if info.Session != sessionNumber(i) || info.LastSeq != 1 {
			t.Fatalf("entry %d is %v", i, info)
		}
	}
}

func sessionNumber(i int) string { return fmt.Sprintf("n%03d", i) }
