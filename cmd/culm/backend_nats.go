package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
)

// natsBackend is the real outside: one connection to the server.
type natsBackend struct {
	nc       *nats.Conn
	client   *bus.Client
	log      *bus.JetStreamLog
	subjects bus.Subjects
	timeout  time.Duration
}

var _ backend = (*natsBackend)(nil)

// dialNATS connects with the flags of a. The connection reconnects by itself
// and says so on standard error and to a.again.
func dialNATS(ctx context.Context, a *app) (backend, error) {
	again := make(chan struct{}, 1)
	a.again = again
	opts := append(bus.EngineConnOptions(),
		nats.Name("culm"), nats.Timeout(a.Timeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else the connection was closed on purpose
				fmt.Fprintf(a.errOut, "culm: lost %s, trying to come back\n", redacted(a.NATS))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			fmt.Fprintln(a.errOut, "culm: connected again")
			select {
			case again <- struct{}{}:
			default: // it is known already
			}
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // what matters comes back with the call
	)
	if a.Creds != "" {
		opts = append(opts, nats.UserCredentials(a.Creds))
	}
	nc, err := nats.Connect(a.NATS, opts...)
	if err != nil {
		return nil, &unreachable{a.NATS, bus.RedactError(err)}
	}
	b, err := newNATSBackend(ctx, nc, a)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return b, nil
}

func newNATSBackend(ctx context.Context, nc *nats.Conn, a *app) (*natsBackend, error) {
	subjects, err := bus.NewSubjects(a.Prefix)
	if err != nil {
		return nil, err
	}
	b := &natsBackend{nc: nc, subjects: subjects, timeout: a.Timeout}
	if b.client, err = bus.NewClient(nc, subjects, a.Actor); err != nil {
		return nil, err
	}
	b.log, err = bus.NewJetStreamLog(ctx, nc, bus.LogOptions{Subjects: subjects, ReadOnly: true, AckWait: a.Timeout, RetryFor: a.Timeout})
	return b, err
}

// Do makes one attempt: what to do without an answer is for the caller to tell.
func (b *natsBackend) Do(ctx context.Context, session, name string, body any, o sendOptions) (aggregate.Reply, error) {
	opts := []bus.Option{bus.CommandID(o.ID), bus.NoRetry(), bus.AttemptTimeout(b.timeout)}
	if o.Expected != nil {
		opts = append(opts, bus.ExpectedSequence(*o.Expected))
	}
	return b.client.Do(ctx, session, name, body, opts...)
}

func (b *natsBackend) Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	return b.client.Read(ctx, session, q, bus.NoRetry(), bus.AttemptTimeout(b.timeout))
}

func (b *natsBackend) Query(ctx context.Context, view, verb string, request []byte) ([]byte, error) {
	m, err := b.nc.RequestWithContext(ctx, b.subjects.Query(view, verb), request)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func (b *natsBackend) Log() logReader { return b.log }

func (b *natsBackend) Feed() events.Feed {
	return bus.NewFeed(b.nc, b.log, bus.FeedOptions{Subjects: b.subjects})
}

func (b *natsBackend) Deltas(ctx context.Context, session string, handle func(session, run string, delta []byte)) error {
	subject := b.subjects.DeltasAll()
	if session != "" {
		subject = b.subjects.SessionDeltas(session)
	}
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		if session, run, ok := b.subjects.ParseDelta(m.Subject); ok {
			handle(session, run, m.Data)
		}
	})
	if err != nil {
		return fmt.Errorf("subscribe %s: %w", subject, err)
	}
	<-ctx.Done()
	return sub.Unsubscribe()
}

func (b *natsBackend) Close() { b.nc.Close() }
