package bus

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of what one follower of deltas may have waiting in the client library.
const (
	maxPendingDeltas     = 1024
	maxPendingDeltaBytes = 4 << 20
	// deltaFlush is how long Follow waits for the server to know of it.
	deltaFlush = time.Second
)

// Deltas follows what runs stream and nobody stores.
type Deltas struct {
	nc       *nats.Conn
	subjects Subjects
}

// NewDeltas listens on nc, which stays the caller's.
func NewDeltas(nc *nats.Conn, subjects Subjects) Deltas { return Deltas{nc, subjects} }

// Follow hands over what the runs of one session stream, in the order of each
// run, from one goroutine, until stop is called.
func (d Deltas) Follow(session string, handle func(run string, delta []byte)) (stop func(), err error) {
	if !ValidToken(session) {
		return nil, fmt.Errorf("deltas of session %q: %w", session, ErrInvalidToken)
	}
	sub, err := d.nc.Subscribe(d.subjects.SessionDeltas(session), func(m *nats.Msg) {
		if _, run, ok := d.subjects.ParseDelta(m.Subject); ok {
			handle(run, m.Data)
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(maxPendingDeltas, maxPendingDeltaBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("deltas of session %s: %w", session, err)
	}
	_ = d.nc.FlushTimeout(deltaFlush) // without connection the subscription waits for it
	return func() { _ = sub.Unsubscribe() }, nil
}
