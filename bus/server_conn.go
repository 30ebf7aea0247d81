package bus

import (
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

// InProcessConn implements nats.InProcessConnProvider; connections made by it
// survive Restart.
func (s *Server) InProcessConn() (net.Conn, error) {
	ns := s.ns.Load()
	if ns == nil {
		return nil, events.ErrUnavailable
	}
	c, err := ns.InProcessConn()
	if err != nil {
		return nil, err
	}
	return newPipe(c), nil
}

// Connect opens a connection that does not go through the network. It
// reconnects for ever; the caller closes it.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	opts = append([]nats.Option{nats.InProcessServer(s)}, append(EngineConnOptions(), opts...)...)
	nc, err := nats.Connect("", opts...)
	if err != nil {
		return nil, fmt.Errorf("connect in process: %w", err)
	}
	return nc, nil
}

// EngineConnOptions are the options of a connection that JetStreamLog and Feed
// can rely on: it reconnects for ever, soon, and keeps nothing back meanwhile
// (what could not be sent is an error at once, not a surprise later).
func EngineConnOptions() []nats.Option {
	return []nats.Option{
		nats.Name("culm-engine"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1),
	}
}
