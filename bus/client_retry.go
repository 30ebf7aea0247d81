package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"culm/aggregate"
)

const (
	defaultAttempt    = 5 * time.Second
	clientBackoffBase = 10 * time.Millisecond
	clientBackoffMax  = 2 * time.Second
)

// errNoReply: something answered that is no engine.
var errNoReply = errors.New("the answer is no reply of an engine")

// Option changes one call of a Client.
type Option func(*callOptions)

type callOptions struct {
	id       string
	expected *uint64
	trace    string
	once     bool
	attempt  time.Duration
}

// CommandID sets the command id, 1 to 128 printable ASCII characters; without
// it, each call mints one.
func CommandID(id string) Option { return func(o *callOptions) { o.id = id } }

// ExpectedSequence makes the command conditional on the session's last sequence.
func ExpectedSequence(seq uint64) Option { return func(o *callOptions) { o.expected = &seq } }

// Traceparent sends a W3C trace context along.
func Traceparent(value string) Option { return func(o *callOptions) { o.trace = value } }

// NoRetry makes one attempt only: its failure, or the answer unavailable, is
// returned at once.
func NoRetry() Option { return func(o *callOptions) { o.once = true } }

// AttemptTimeout bounds one attempt; without it, five seconds.
func AttemptTimeout(d time.Duration) Option { return func(o *callOptions) { o.attempt = d } }

func newOptions(opts []Option) callOptions {
	o := callOptions{attempt: defaultAttempt}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// setHeaders also mints the id where none was chosen.
func (o *callOptions) setHeaders(h nats.Header, idHeader string) {
	if o.id == "" {
		o.id = newCommandID()
	}
	h[idHeader] = []string{o.id}
	if o.expected != nil {
		h[HeaderExpected] = []string{strconv.FormatUint(*o.expected, 10)}
	}
	if o.trace != "" {
		h[HeaderTraceparent] = []string{o.trace}
	}
}

// exchange sends a request until it has an answer other than unavailable.
func (c *Client) exchange(ctx context.Context, m *nats.Msg, o callOptions, decode func([]byte) (*aggregate.Error, error)) error {
	var refusal *aggregate.Error // of the last attempt, if that is what ended it
	err := c.repeat(ctx, m.Subject, o, func(ctx context.Context) (bool, error) {
		refusal = nil
		answer, err := c.nc.RequestMsgWithContext(ctx, m)
		if err != nil {
			return retryable(err), err
		}
		if refusal, err = decode(answer.Data); err != nil {
			return false, err
		}
		if refusal != nil && refusal.Code == aggregate.CodeUnavailable {
			return true, fmt.Errorf("%s: %s", refusal.Code, refusal.Message)
		}
		return false, nil
	})
	if o.once && refusal != nil {
		return nil // it is an answer, and nobody asked for another one
	}
	return err
}

// repeat calls try, each time with its own deadline and after a pause, until it
// succeeds, says that it is of no use, or ctx ends.
func (c *Client) repeat(ctx context.Context, subject string, o callOptions, try func(context.Context) (again bool, err error)) error {
	for attempt := 1; ; attempt++ {
		once, cancel := context.WithTimeout(ctx, o.attempt)
		again, err := try(once)
		cancel()
		if err == nil {
			return nil
		}
		failed := &ReplyError{Subject: subject, Command: o.id, Attempts: attempt, Err: err}
		if !again || o.once {
			return failed
		}
		if cause := pause(ctx, attempt); cause != nil {
			failed.Err = fmt.Errorf("%w (%w)", cause, err)
			return failed
		}
	}
}

// pause waits with full jitter; it returns why ctx ended, if it did.
func pause(ctx context.Context, attempt int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(rand.N(min(clientBackoffBase<<min(attempt, 20), clientBackoffMax)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// retryable tells what may pass from what will not.
func retryable(err error) bool {
	for _, final := range []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrHeadersNotSupported, nats.ErrInvalidMsg} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// decodeAnswer reads a reply; members that a newer engine added are passed over.
func decodeAnswer(b []byte, reply any) error {
	if err := json.Unmarshal(b, reply); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	return nil
}
