package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// errGone: there is no server to drain or to answer through.
var errGone = errors.New("no connection to the NATS server")

// Stop takes no new requests, waits until those that came in are answered and
// the answers are with the server, and closes the connection. If ctx ends
// first, it gives up on the rest, ends their context and says how many there
// were. Without a connection it gives up at once: nothing can come in, and no
// answer can go out. Later calls wait for the first and return the same.
func (s *Service) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Service) stop(ctx context.Context) error {
	defer s.conn.Close()
	defer s.cancel()
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("stop command service: %w", err)
	}
	return nil
}

// settle takes no new requests and sees the answers off. That the server goes
// meanwhile is an error only if somebody waits for an answer.
func (s *Service) settle(ctx context.Context) error {
	if s.conn.IsConnected() {
		err := s.micro.Stop()
		if drained := s.drained(ctx); drained != nil {
			err = errors.Join(err, drained)
		}
		if waited := s.flight.wait(ctx); waited != nil {
			err = errors.Join(err, fmt.Errorf("%d requests unanswered: %w", s.flight.requests.Load(), waited))
		}
		if s.out.IsConnected() && ctx.Err() == nil {
			err = errors.Join(err, flush(ctx, s.out))
		}
		if err == nil || s.conn.IsConnected() && s.out.IsConnected() || s.conn.IsClosed() {
			return err
		}
	}
	if n := s.flight.requests.Load(); n > 0 {
		return fmt.Errorf("%d requests unanswered: %w", n, errGone)
	}
	s.log.Warn("the NATS server is gone: the command service ends without it")
	return nil
}

// drained waits until no message of a subscription is left to hand over. The
// client library tells nobody, but it then forgets the subscription, and this
// connection has no others. Without a server there is nothing to wait for.
func (s *Service) drained(ctx context.Context) error {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for s.conn.IsConnected() && s.conn.NumSubscriptions() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("drain: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// flush waits for the server, also where ctx has no deadline.
func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return nc.FlushWithContext(ctx)
}
