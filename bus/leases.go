package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/aggregate"
	"culm/events"
)

const leaseBucket = "culm_leases"

// LeaseOptions configure Leases.
type LeaseOptions struct {
	// Duration of a lease, at least a second; 0 is 15 s. The time to live of the
	// bucket follows from it, so engines of one installation should agree on it:
	// the one started last decides.
	Duration time.Duration
	Replicas int // of the bucket; 0 is 1
	Logger   *slog.Logger
}

// unwritten is how long after a written renewal others are not written.
func (o LeaseOptions) unwritten() time.Duration { return o.Duration / 3 }

// Leases keeps one entry for each session in the bucket culm_leases, whose
// time to live is the lease and the part of it that is spent before a renewal is
// written: a run has at least the whole lease from its last sign. The server's clock alone says when an entry is
// gone, so an entry may linger for a moment. Here only spans of this process's
// monotonic clock are measured: no wall clocks are compared.
//
// After its start, and after each time the server was away, an engine takes
// every run that was not released for alive for one Duration: the runner could
// not have renewed meanwhile.
type Leases struct {
	nc   *nats.Conn
	api  jsAPI
	opts LeaseOptions

	mu         sync.Mutex
	written    map[string]leaseWrite // session -> newest renewal by this engine
	sweepAt    int                   // size of written at which old ones are dropped
	grace      time.Time             // every run is alive until then
	reconnects uint64                // of nc, when grace was set
}

// leaseWrite is one renewal: at is before the request was sent, so that the
// entry lives longer than what is remembered here.
type leaseWrite struct {
	run string
	at  time.Time
}

var _ aggregate.Leases = (*Leases)(nil)

// NewLeases makes or adapts the bucket. The connection stays the caller's.
func NewLeases(ctx context.Context, nc *nats.Conn, opts LeaseOptions) (*Leases, error) {
	if opts.Duration == 0 {
		opts.Duration = 15 * time.Second
	}
	if opts.Duration < time.Second {
		return nil, fmt.Errorf("leases: %s is shorter than a second", opts.Duration)
	}
	if opts.Replicas == 0 {
		opts.Replicas = 1
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("leases: %w", err)
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: leaseBucket, Description: "which run of a session is alive",
		History: 1, TTL: opts.Duration + opts.unwritten(), Storage: jetstream.FileStorage, Replicas: opts.Replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("leases: bucket %s: %w", leaseBucket, err)
	}
	return &Leases{
		nc: nc, opts: opts,
		api:     jsAPI{req: nc, wait: min(2*time.Second, opts.Duration/3), retry: opts.Duration},
		written: map[string]leaseWrite{}, sweepAt: minSweep,
		grace: time.Now().Add(opts.Duration), reconnects: nc.Stats().Reconnects,
	}, nil
}

// Duration implements aggregate.Leases.
func (l *Leases) Duration() time.Duration { return l.opts.Duration }

// Renew implements aggregate.Leases. The bucket is written only when a third
// of the lease is spent, or another run had it. It returns
// events.ErrUnavailable if the server did not take it.
func (l *Leases) Renew(ctx context.Context, session, run string) error {
	if !ValidToken(session) {
		return fmt.Errorf("renew lease of %q: %w", session, events.ErrNotFound)
	}
	if l.fresh(session, run) {
		return nil
	}
	at := time.Now()
	if err := l.put(ctx, &nats.Msg{Subject: leaseSubject(session), Data: []byte(run)}); err != nil {
		return fmt.Errorf("renew lease of %s: %w", session, err)
	}
	l.remember(session, leaseWrite{run: run, at: at})
	return nil
}

// Alive implements aggregate.Leases.
func (l *Leases) Alive(ctx context.Context, session, run string) (bool, error) {
	if l.fresh(session, run) {
		return true, nil
	}
	entry, err := l.entry(ctx, session)
	switch {
	case err != nil:
		return false, fmt.Errorf("lease of %s: %w", session, err)
	case entry.released:
		return false, nil
	}
	return entry.run == run || l.inGrace(), nil
}

// Release implements aggregate.Leases.
func (l *Leases) Release(ctx context.Context, session string) error {
	l.forget(session)
	entry, err := l.entry(ctx, session)
	if err == nil && entry.run != "" {
		err = l.put(ctx, &nats.Msg{Subject: leaseSubject(session), Header: nats.Header{kvOperation: {kvDelete}}})
	}
	if err != nil {
		return fmt.Errorf("release lease of %s: %w", session, err)
	}
	return nil
}

const (
	kvOperation = "KV-Operation"
	kvDelete    = "DEL"
)

func leaseSubject(session string) string { return "$KV." + leaseBucket + "." + session }

// leaseEntry is what the bucket says of a session: a run, or that its lease was
// released; the zero value if it says nothing (any more).
type leaseEntry struct {
	run      string
	released bool
}

// entry asks the bucket's leader.
func (l *Leases) entry(ctx context.Context, session string) (leaseEntry, error) {
	if !ValidToken(session) {
		return leaseEntry{}, events.ErrNotFound
	}
	msg, err := l.api.getMsg(ctx, "KV_"+leaseBucket, `{"last_by_subj":"`+leaseSubject(session)+`"}`)
	if errCode(err) == codeNoMessage {
		return leaseEntry{}, nil
	}
	if err != nil {
		return leaseEntry{}, unanswered(err)
	}
	return leaseEntry{run: string(msg.Data), released: len(msg.Data) == 0}, nil
}

// put stores a message in the bucket, again until it is acknowledged.
func (l *Leases) put(ctx context.Context, msg *nats.Msg) error {
	err := l.api.repeat(ctx, func() error {
		answer, err := l.api.once(ctx, msg)
		if err == nil {
			_, err = parseAck(answer.Data, "KV_"+leaseBucket)
		}
		return err
	})
	if err != nil {
		return unanswered(err)
	}
	return nil
}
