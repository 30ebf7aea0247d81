package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/events"
)

const (
	streamPrefix    = "SESSION_"
	tombstoneBucket = "culm_tombstones"

	headerContentType = "Content-Type"
	headerExpectedSeq = "Nats-Expected-Last-Sequence"
	headerExpectedStr = "Nats-Expected-Stream"
)

// LogOptions configure a JetStreamLog.
type LogOptions struct {
	Subjects Subjects
	Replicas int // of each stream, 1 to 5; 0 is 1
	// ReadOnly logs never write: Create, Append and Delete are refused, and
	// half deleted sessions are passed over instead of being removed.
	ReadOnly bool
	// Embedded says that the server is a Server of this package, which mends at
	// its start what a kill left half made.
	Embedded bool
	// Barrier makes a deletion's tombstone durable before its stream goes;
	// nil where the server syncs by itself.
	Barrier events.Barrier
	// Health, if not nil, is asked before each append (Server.Healthy); its
	// error is returned at once.
	Health func() error
	// AckWait is the time for one answer of the server; 0 is two seconds.
	AckWait time.Duration
	// RetryFor bounds all attempts of one call whose context ends later; 0 is
	// thirty seconds.
	RetryFor time.Duration
	Logger   *slog.Logger
}

// JetStreamLog keeps each session in a stream SESSION_<session> of its own, in
// file storage and without limits. Its promises are those of events.Log.
//
// The expected sequence that the server checks is the only thing that makes an
// append safe: no message ids (their memory is short, and replicated and
// single streams check them in different order), no batches.
type JetStreamLog struct {
	opts LogOptions
	api  jsAPI
	acks requester // of appends
	js   jetstream.JetStream
	nc   *nats.Conn
	// takes is the greatest message the server took when that was last asked.
	takes atomic.Int64
	// abandoned is abandonedAfter, less in tests.
	abandoned time.Duration
	claims    claims // of others
	// step, in tests, is called between the steps of a deletion; an error
	// stands for a crash.
	step func(name string) error
}

var _ events.Log = (*JetStreamLog)(nil)

// NewJetStreamLog uses the connection, which stays the caller's; it should
// have been opened with EngineConnOptions. Unless ReadOnly, it makes the
// bucket culm_tombstones.
func NewJetStreamLog(ctx context.Context, nc *nats.Conn, opts LogOptions) (*JetStreamLog, error) {
	if opts.Replicas == 0 {
		opts.Replicas = 1
	}
	if opts.AckWait == 0 {
		opts.AckWait = 2 * time.Second
	}
	if opts.RetryFor == 0 {
		opts.RetryFor = 30 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream log: %w", err)
	}
	l := &JetStreamLog{
		opts: opts, js: js, nc: nc, abandoned: abandonedAfter,
		acks: newAsks(nc, opts.AckWait),
		api:  jsAPI{req: nc, wait: opts.AckWait, retry: opts.RetryFor, health: opts.Health},
	}
	if opts.ReadOnly {
		return l, nil
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: tombstoneBucket, Description: "births and last sequences of deleted sessions",
		History: 1, Storage: jetstream.FileStorage, Replicas: opts.Replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream log: bucket %s: %w", tombstoneBucket, err)
	}
	return l, nil
}

// Append implements events.Log. While the server is unhealthy it returns
// ErrUnavailable at once. For a session that is being deleted (its stream is
// sealed) it returns ErrNotFound: nothing was stored, nothing will be.
func (l *JetStreamLog) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	if l.opts.Health != nil {
		if err := l.opts.Health(); err != nil {
			return appendError(session, expected, err)
		}
	}
	if !ValidToken(session) || !ValidName(eventType) {
		return appendError(session, expected, fmt.Errorf("%w: bad session or event type %q", events.ErrNotFound, eventType))
	}
	if l.opts.ReadOnly {
		return appendError(session, expected, errReadOnly)
	}
	a := l.newAttempt(session, expected, eventType, payload)
	defer a.release()
	if err := l.fits(a); err != nil {
		return appendError(session, expected, err)
	}
	err := l.publish(ctx, a)
	if err == nil {
		return nil
	}
	return l.resolve(ctx, a, err)
}

// Fits implements events.Log, by the limit that the server named when the
// connection was made.
func (l *JetStreamLog) Fits(session string, expected uint64, eventType string, payload []byte) error {
	a := l.newAttempt(session, expected, eventType, payload)
	defer a.release()
	if err := l.fits(a); err != nil {
		return appendError(session, expected, err)
	}
	return nil
}

var errReadOnly = errors.New("the log is read only")

// resolve learns the outcome of an append that was not acknowledged, for
// whatever reason, by reading back; it publishes again only while nothing is
// stored in its place.
func (l *JetStreamLog) resolve(ctx context.Context, a *attempt, cause error) error {
	began := time.Now()
	for n := 0; ; n++ {
		err := l.settle(ctx, a, cause)
		if err == nil || errors.Is(err, errStored) {
			return nil
		}
		if !errors.Is(err, errAbsent) && !transient(err) {
			return appendError(a.session, a.expected, err)
		}
		if err := l.api.pause(ctx, began, n, cause); err != nil {
			return appendError(a.session, a.expected, err)
		}
		if cause = l.publish(ctx, a); cause == nil {
			return nil
		}
	}
}

var (
	errStored = errors.New("stored")
	errAbsent = errors.New("nothing is stored there")
)

// settle reads from the leader what stands in the append's place: errStored,
// *WrongSequenceError, ErrNotFound, ErrTooLarge, or errAbsent when publishing
// again may succeed; any other error says that it could not be learned.
func (l *JetStreamLog) settle(ctx context.Context, a *attempt, cause error) error {
	code := errCode(cause)
	if code == codeTooLarge || errors.Is(cause, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %w", events.ErrTooLarge, cause)
	}
	err := l.compare(ctx, a)
	if !errors.Is(err, errAbsent) {
		return err
	}
	switch code {
	case codeSealed, codeStreamNotFound, codeOtherStream:
		return fmt.Errorf("%w: %w", events.ErrNotFound, cause)
	case codeWrongSequence, codeWrongInFlight:
		return l.explain(ctx, a)
	}
	return errAbsent
}

// compare reads the message at expected+1.
func (l *JetStreamLog) compare(ctx context.Context, a *attempt) error {
	msg, err := l.api.getMsg(ctx, a.stream, `{"seq":`+strconv.FormatUint(a.expected+1, 10)+`}`)
	switch code := errCode(err); {
	case err == nil && bytes.Equal(msg.Data, a.payload) && msg.Subject == a.msg.Subject:
		return errStored
	case err == nil:
		return &events.WrongSequenceError{Session: a.session, Expected: a.expected}
	case code == codeNoMessage:
		return errAbsent
	case code == codeStreamNotFound:
		return fmt.Errorf("%w: %w", events.ErrNotFound, err)
	}
	return err
}

// explain tells apart why a conflict was reported although nothing stands at
// expected+1: the log ends elsewhere, its end is lost, or (replicated) an append that may be
// this one is still on its way, which only trying again can decide.
func (l *JetStreamLog) explain(ctx context.Context, a *attempt) error {
	info, err := l.api.streamInfo(ctx, a.stream)
	switch {
	case errCode(err) == codeStreamNotFound:
		return fmt.Errorf("%w: %w", events.ErrNotFound, err)
	case err != nil:
		return err
	case info.State.LastSeq == a.expected:
		return errAbsent
	case info.State.LastSeq > a.expected:
		// It may have been stored since it was looked for.
		if err := l.compare(ctx, a); !errors.Is(err, errAbsent) {
			return err
		}
		last, lost, err := l.ends(ctx, a.session)
		switch {
		case err != nil && errCode(err) != codeNoMessage:
			return err
		case lost != nil && last <= a.expected:
			return lost
		}
	}
	return &events.WrongSequenceError{Session: a.session, Expected: a.expected}
}

// appendError adds what failed, where; a *WrongSequenceError says so itself.
func appendError(session string, expected uint64, err error) error {
	if _, ok := errors.AsType[*events.WrongSequenceError](err); ok {
		return err
	}
	return fmt.Errorf("append %s@%d: %w", session, expected, err)
}
