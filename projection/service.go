package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// ServiceName is the name under which projectors are discovered.
const ServiceName = "culm-projector"

const (
	// maxQueries bounds the queries that are answered, or wait, at once.
	maxQueries = 1024
	// queryTimeout bounds one query, its wait for a sequence included.
	queryTimeout = 65 * time.Second
	// headerRoom is what the headers of a reply take at most.
	headerRoom = 1 << 10
	// maxErrorHeader bounds the message of a refusal in the header, in bytes.
	maxErrorHeader = 512
)

// ServiceOptions configure the NATS service of a projector.
type ServiceOptions struct {
	Conn    *nats.Conn // stays the caller's
	Prefix  string     // of all subjects, "agent" if empty
	Version string     // of the program, in semantic versioning; "" is 0.0.0
	Logger  *slog.Logger
}

// Service answers queries on PREFIX.query.VIEW.VERB as a NATS micro service. A
// request whose reply subject is not under _INBOX. or _R_. is ignored: an
// answer sent elsewhere could be made to land in a log.
type Service struct {
	p     *Projector
	o     ServiceOptions
	micro micro.Service
	ctx   context.Context //nolint:containedctx // of all queries
	stop  context.CancelFunc
	slots chan struct{}
	work  sync.WaitGroup
}

// Serve answers queries until Stop. Several projectors share the queries.
func (p *Projector) Serve(o ServiceOptions) (*Service, error) {
	if o.Prefix == "" {
		o.Prefix = "agent"
	}
	if o.Logger == nil {
		o.Logger = p.opts.Logger
	}
	s := &Service{p: p, o: o, slots: make(chan struct{}, maxQueries)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.register(); err != nil {
		s.stop()
		return nil, fmt.Errorf("query service: %w", err)
	}
	return s, nil
}

// semantic matches the versions that micro takes.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (s *Service) register() error {
	version := strings.TrimPrefix(s.o.Version, "v")
	if !semantic.MatchString(version) {
		version = "0.0.0"
	}
	svc, err := micro.AddService(s.o.Conn, micro.Config{
		Name: ServiceName, Version: version, Description: "queries about agent sessions", QueueGroup: ServiceName,
		Metadata: map[string]string{"prefix": s.o.Prefix, "queries": strings.Join(Queries(), " "), "build": s.o.Version},
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			s.o.Logger.Error("query service", "subject", e.Subject, "err", e.Description)
		},
	})
	if err != nil {
		return err
	}
	s.micro = svc
	if err := svc.AddEndpoint("query", micro.HandlerFunc(s.handle), micro.WithEndpointSubject(s.o.Prefix+".query.>")); err != nil {
		return errors.Join(fmt.Errorf("endpoint query: %w", err), svc.Stop())
	}
	return s.o.Conn.Flush()
}

// handle runs on the endpoint's only goroutine, so it hands over and returns.
func (s *Service) handle(req micro.Request) {
	to, subject, body := req.Reply(), req.Subject(), req.Data()
	if !answerable(to) {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		reply, e := refuse(&Error{Code: CodeUnavailable, Message: "too many queries at once"})
		s.send(to, reply, e)
		return
	}
	s.work.Go(func() {
		defer func() { <-s.slots }()
		ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
		defer cancel()
		reply, e := s.p.Answer(ctx, strings.TrimPrefix(subject, s.o.Prefix+".query."), body)
		s.send(to, reply, e)
	})
}

func (s *Service) send(to string, reply []byte, e *Error) {
	m := &nats.Msg{Subject: to, Data: reply}
	if limit := int(s.o.Conn.MaxPayload()); len(reply)+headerRoom > limit {
		m.Data, e = refuse(invalid("the answer takes %d bytes and the server allows %d: ask for a smaller limit", len(reply)+headerRoom, limit))
	}
	if e != nil {
		m.Header = nats.Header{micro.ErrorHeader: {headerText(e.Message)}, micro.ErrorCodeHeader: {e.Code}}
	}
	if err := s.o.Conn.PublishMsg(m); err != nil {
		s.o.Logger.Error("an answer was not sent", "err", err)
	}
}

// Stop takes no more queries and waits, until ctx ends, for those under way.
func (s *Service) Stop(ctx context.Context) error {
	err := s.micro.Stop()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.stop() // ends waits and queries
		<-done
	}
	s.stop()
	if err != nil {
		return fmt.Errorf("stop query service: %w", err)
	}
	return nil
}

// answerable reports whether an answer may be sent to the reply subject: a
// literal subject under one of the prefixes that only requesters listen to.
func answerable(reply string) bool {
	rest, ok := strings.CutPrefix(reply, "_INBOX.")
	if !ok {
		if rest, ok = strings.CutPrefix(reply, "_R_."); !ok {
			return false
		}
	}
	for token := range strings.SplitSeq(rest, ".") {
		if token == "" || token == "*" || token == ">" {
			return false
		}
	}
	return true
}

// headerText is s as one header line.
func headerText(s string) string { return cut(oneLine(s), maxErrorHeader) }
