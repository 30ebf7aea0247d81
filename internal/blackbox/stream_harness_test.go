package blackbox

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/aggregate"
	"culm/events"
)

// stored is one event as it lies in the session's stream.
type stored struct {
	ID, Type, Session, Birth, Actor, Command, Run, Prevhash string
	Specversion, Source, Subject, Time, Dataschema          string
	Datacontenttype, Traceparent                            string
	Seq                                                     uint64
	Data                                                    obj

	payload   []byte
	subject   string
	streamSeq uint64
	header    nats.Header
}

// patient lets a fetch wait; a server whose heartbeats are late is no failure.
var patient = []jetstream.FetchOpt{jetstream.FetchMaxWait(patience), jetstream.FetchHeartbeat(patience / 4)}

// stream reads a session's stream as any JetStream client can.
func (c *client) stream(session string) []stored {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.js.Stream(ctx, "SESSION_"+session)
	must(c.t, err)
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	must(c.t, err)
	defer c.drop(session, consumer)
	var out []stored
	for {
		m, err := consumer.Next(patient...)
		must(c.t, err)
		out = append(out, storedEvent(c.t, m))
		if out[len(out)-1].streamSeq >= state.LastSeq {
			return out
		}
	}
}

// drop removes a consumer that would else burden the server for minutes.
func (c *client) drop(session string, consumer jetstream.Consumer) {
	if info := consumer.CachedInfo(); info != nil {
		_ = c.nc.Publish("$JS.API.CONSUMER.DELETE.SESSION_"+session+"."+info.Name, nil)
	}
}

func storedEvent(t testing.TB, m jetstream.Msg) stored {
	t.Helper()
	meta, err := m.Metadata()
	must(t, err)
	e := stored{}
	if err := json.Unmarshal(m.Data(), &e); err != nil {
		t.Fatalf("event %d is no JSON: %v\n%s", meta.Sequence.Stream, err, m.Data())
	}
	e.payload, e.subject, e.streamSeq, e.header = m.Data(), m.Subject(), meta.Sequence.Stream, m.Headers()
	return e
}

// types lists the types of a session's events.
func (c *client) types(session string) string {
	c.t.Helper()
	var types []string
	for _, e := range c.stream(session) {
		types = append(types, e.Type)
	}
	return strings.Join(types, " ")
}

// count is how many events of the type a session has.
func (c *client) count(session, eventType string) int {
	c.t.Helper()
	n := 0
	for _, e := range c.stream(session) {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

// last is the session's newest event of the type.
func (c *client) last(session, eventType string) stored {
	c.t.Helper()
	for _, e := range slices.Backward(c.stream(session)) {
		if e.Type == eventType {
			return e
		}
	}
	c.t.Fatalf("%s has no %s: %s", session, eventType, c.types(session))
	return stored{}
}

// await waits until the session has an event of the type.
func (c *client) await(session, eventType string) stored {
	c.t.Helper()
	return c.awaitMany(session, eventType, 1)
}

// awaitMany waits until the session has as many events of the type, and returns
// the last of them.
func (c *client) awaitMany(session, eventType string, many int) (last stored) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	consumer, err := c.js.OrderedConsumer(ctx, "SESSION_"+session, jetstream.OrderedConsumerConfig{FilterSubjects: []string{"agent.log." + session + "." + eventType}})
	must(c.t, err)
	defer c.drop(session, consumer)
	for n := range many {
		m, err := consumer.Next(patient...)
		if err != nil {
			c.t.Fatalf("%d of %d %s in %s: %v; it has: %s", n, many, eventType, session, err, c.types(session))
		}
		last = storedEvent(c.t, m)
	}
	return last
}

// audit folds the raw stream and fails on anything that is wrong with it.
func (c *client) audit(session string) []stored {
	c.t.Helper()
	list := c.stream(session)
	report, err := aggregate.Audit(records(session, list), aggregate.AuditOptions{Session: session})
	must(c.t, err)
	if !report.OK() {
		c.t.Errorf("audit of %s: %+v", session, report.Findings)
	}
	return list
}

func records(session string, list []stored) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, e := range list {
			name := strings.TrimPrefix(e.subject, "agent.log."+session+".")
			if !yield(events.Record{Session: session, Seq: e.streamSeq, Type: name, Payload: e.payload}, nil) {
				return
			}
		}
	}
}

// listen collects the messages of a subject; it is subscribed once it returns.
func (c *client) listen(subject string) <-chan *nats.Msg {
	c.t.Helper()
	got := make(chan *nats.Msg, 64<<10)
	sub, err := c.nc.ChanSubscribe(subject, got)
	must(c.t, err)
	c.t.Cleanup(func() { _ = sub.Unsubscribe() })
	must(c.t, c.nc.FlushTimeout(patience))
	return got
}

// next is the next message of a listener.
func next(t testing.TB, got <-chan *nats.Msg) *nats.Msg {
	t.Helper()
	select {
	case m := <-got:
		return m
	case <-time.After(patience):
		t.Fatal("no message came")
		return nil
	}
}
