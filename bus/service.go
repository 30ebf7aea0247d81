package bus

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/oklog/ulid/v2"

	"culm/aggregate"
)

// ServiceName is the name under which engines are discovered ($SRV.PING.culm-engine).
const ServiceName = "culm-engine"

const (
	defaultInFlight      = 16384
	defaultInFlightBytes = 256 << 20
	drainPoll            = 2 * time.Millisecond
)

// ServiceOptions configure the front door of an engine.
type ServiceOptions struct {
	// Conn is the engine's connection. For what comes in, the service dials one of
	// its own with the same options, so that it can drain it. Answers go out through
	// Conn if that is in process, else through the service's own.
	Conn     *nats.Conn
	Subjects Subjects
	Handler  aggregate.Service
	Version  string // of the engine; what is no semantic version counts as 0.0.0
	// MaxInFlight and MaxInFlightBytes bound the requests, and the bytes of
	// their bodies, that were handed over and not answered. What comes on top
	// is answered unavailable. 0 means 16384 and 256 MiB; never less than one
	// request of the greatest size.
	MaxInFlight      int
	MaxInFlightBytes int64
	Logger           *slog.Logger
}

// Service is the NATS micro service that takes commands and reads, checks them
// (service_decode.go), hands them to the rules and sends their answers. A
// request without a reply subject under _INBOX. or _R_. is ignored.
type Service struct {
	handler  aggregate.Service
	subjects Subjects
	log      *slog.Logger
	conn     *nats.Conn // its own, for what comes in
	out      *nats.Conn // for answers: outOf
	micro    micro.Service
	ctx      context.Context // of every request; ends with Stop
	cancel   context.CancelFunc
	flight   flight
	stats    serviceStats
	stopOnce sync.Once
	stopErr  error
}

// serviceStats count what micro cannot see; they are the data of its STATS.
type serviceStats struct {
	refused    atomic.Uint64 // at the front door
	overloaded atomic.Uint64
	ignored    atomic.Uint64 // no reply subject, or a foreign one
}

// StartService connects and serves until Stop. Once it returns, the server
// knows the subscriptions.
func StartService(o ServiceOptions) (*Service, error) {
	conn, err := dialLike(o.Conn, ServiceName)
	if err != nil {
		return nil, fmt.Errorf("command service: connect: %w", err)
	}
	s := &Service{handler: o.Handler, subjects: o.Subjects, log: o.Logger, conn: conn, out: outOf(o.Conn, conn)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.flight.init(o.MaxInFlight, o.MaxInFlightBytes, conn.MaxPayload())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.register(o.Version); err != nil {
		s.cancel()
		conn.Close()
		return nil, fmt.Errorf("command service: %w", err)
	}
	if !conn.AuthRequired() {
		s.log.Warn("the NATS server asks for no authorization: actors are self-declared")
	}
	return s, nil
}

// outOf is the connection for answers. In process it is the engine's: they go to the
// server together with appends. Elsewhere they go out where the request came in: a
// server with users may let only that connection answer (allow_responses), and
// another member of a cluster may not have heard of the requester yet.
func outOf(engines, own *nats.Conn) *nats.Conn {
	if engines.Opts.InProcessServer != nil {
		return engines
	}
	return own
}

// dialLike opens another connection with the options of nc. Its end is not the
// end of nc, so the handlers that say so are left out; that the server is gone
// is told once.
func dialLike(nc *nats.Conn, name string) (*nats.Conn, error) {
	opts := nc.Opts
	opts.Name = name
	opts.ClosedCB, opts.DisconnectedErrCB, opts.ReconnectedCB = nil, nil, nil
	return opts.Connect()
}

func (s *Service) register(build string) error {
	config := microConfig(ServiceName, "commands to and reads of agent sessions", s.subjects, build, s.log)
	config.StatsHandler = func(*micro.Endpoint) any { return s.Stats() }
	svc, err := micro.AddService(s.conn, config)
	if err != nil {
		return err
	}
	s.micro = svc
	if err := svc.AddEndpoint("command", micro.HandlerFunc(s.command), micro.WithEndpointSubject(s.subjects.CommandsAll())); err != nil {
		return fmt.Errorf("endpoint command: %w", err)
	}
	if err := svc.AddEndpoint("read", micro.HandlerFunc(s.read), micro.WithEndpointSubject(s.subjects.ReadsAll())); err != nil {
		return fmt.Errorf("endpoint read: %w", err)
	}
	return s.conn.Flush()
}

// command runs on the endpoint's only goroutine, so it hands over and returns.
func (s *Service) command(req micro.Request) {
	to := req.Reply()
	if !answerable(to) {
		s.stats.ignored.Add(1)
		return
	}
	size := int64(len(req.Data()))
	r, e := s.subjects.decodeCommand(kindCmd, req.Subject(), nats.Header(req.Headers()), req.Data())
	if e == nil && lostHeaders(req) {
		e = refuse(aggregate.CodeInvalidCommand, malformedHeaders)
	}
	if r, e = s.admit(r, e, size); e != nil {
		out := refusalReply(&r, e)
		s.answer(to, &out)
		return
	}
	s.handler.Handle(s.ctx, r, func(out aggregate.Reply) {
		s.answer(to, &out)
		s.flight.give(size)
	})
}

// admit counts what is refused before the rules: what could not be decoded, e,
// and what there is no room for. Without an error, one give is owed.
func (s *Service) admit(r aggregate.Request, e *aggregate.Error, size int64) (aggregate.Request, *aggregate.Error) {
	switch {
	case e != nil:
		s.stats.refused.Add(1)
	case !s.flight.take(size):
		s.stats.overloaded.Add(1)
		e, r.ID = overloaded(), cmp.Or(r.ID, ulid.Make().String())
	}
	return r, e
}

// read is to reads what command is to commands.
func (s *Service) read(req micro.Request) {
	to := req.Reply()
	if !answerable(to) {
		s.stats.ignored.Add(1)
		return
	}
	size := int64(len(req.Data()))
	session, q, e := s.subjects.decodeRead(req.Subject(), req.Data())
	switch {
	case e != nil:
		s.stats.refused.Add(1)
	case !s.flight.take(size):
		s.stats.overloaded.Add(1)
		e = overloaded()
	default:
		s.handler.Read(s.ctx, session, q, func(out aggregate.ReadReply) {
			s.answerRead(to, &out)
			s.flight.give(size)
		})
		return
	}
	s.answerRead(to, &aggregate.ReadReply{Session: session, Error: e})
}

const malformedHeaders = "the headers are malformed: NATS/1.0, then lines of a name, a colon and a value, then an empty line, each with CR LF"

func overloaded() *aggregate.Error {
	return refuse(aggregate.CodeUnavailable, "too many requests in flight: nothing was stored, try again with the same command id")
}

// answer is called from any goroutine. It does not use the micro request: that
// keeps an error where the endpoint's goroutine reads it without a lock.
func (s *Service) answer(to string, r *aggregate.Reply) {
	body, h, cut := encodeReply(r, int(s.conn.MaxPayload()))
	if cut {
		s.log.Error("a reply was cut", "session", r.Session, "seq", r.Sequence, "command", r.Command)
	}
	s.send(to, r.Session, body, h)
}

func (s *Service) answerRead(to string, r *aggregate.ReadReply) {
	body, h := encodeRead(r, int(s.conn.MaxPayload()))
	s.send(to, r.Session, body, h)
}

// send sends an answer; after a restart of the server one connection may be
// there before the other.
func (s *Service) send(to, session string, body []byte, h nats.Header) {
	err := publish(s.out, to, body, h)
	if err != nil && s.out != s.conn {
		err = publish(s.conn, to, body, h)
	}
	if err != nil {
		s.log.Error("a reply was not sent", "session", session, "err", err)
	}
}

func publish(nc *nats.Conn, to string, body []byte, h nats.Header) error {
	if h == nil {
		return nc.Publish(to, body)
	}
	return nc.PublishMsg(&nats.Msg{Subject: to, Header: h, Data: body})
}

// ServiceStats is the state of the front door at one moment.
type ServiceStats struct {
	InFlight      int64  `json:"in_flight"`       // requests handed over and not answered
	InFlightBytes int64  `json:"in_flight_bytes"` // of their bodies
	Refused       uint64 `json:"refused"`         // malformed, since the start
	Overloaded    uint64 `json:"overloaded"`      // answered unavailable for want of room
	Ignored       uint64 `json:"ignored"`         // without a reply subject that may be answered
}

// Stats is also what `nats micro stats culm-engine` shows as data.
func (s *Service) Stats() ServiceStats {
	return ServiceStats{
		InFlight: s.flight.requests.Load(), InFlightBytes: s.flight.bytes.Load(),
		Refused: s.stats.refused.Load(), Overloaded: s.stats.overloaded.Load(), Ignored: s.stats.ignored.Load(),
	}
}
