package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
)

// QueriesName is the name under which projectors are discovered.
const QueriesName = "culm-projector"

const (
	// maxQueries bounds the queries that are answered, or wait, at once.
	maxQueries = 1024
	// queryTimeout bounds one query, its wait for a sequence included.
	queryTimeout = 65 * time.Second
)

// Answerer answers one query by its name, view.verb, with the JSON of the
// reply. A refusal is a reply too, and is returned as well. It returns soon
// after ctx has ended.
type Answerer func(ctx context.Context, name string, body []byte) (reply []byte, refusal *aggregate.Error)

// QueriesOptions configure the NATS service of a projector.
type QueriesOptions struct {
	Conn     *nats.Conn // stays the caller's
	Subjects Subjects
	Answer   Answerer
	Names    []string // of the queries, for who looks the service up
	Version  string   // of the program; what is no semantic version counts as 0.0.0
	Logger   *slog.Logger
}

// Queries is the NATS micro service that answers queries. A request without a
// reply subject under _INBOX. or _R_. is ignored. Several share the queries.
type Queries struct {
	o     QueriesOptions
	micro micro.Service
	ctx   context.Context //nolint:containedctx // of all queries
	stop  context.CancelFunc
	slots chan struct{}
	work  sync.WaitGroup
}

// StartQueries answers queries until Stop.
func StartQueries(o QueriesOptions) (*Queries, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Queries{o: o, slots: make(chan struct{}, maxQueries)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.register(); err != nil {
		s.stop()
		return nil, fmt.Errorf("query service: %w", err)
	}
	return s, nil
}

func (s *Queries) register() error {
	config := microConfig(QueriesName, "queries about agent sessions", s.o.Subjects, s.o.Version, s.o.Logger)
	config.Metadata["queries"] = strings.Join(s.o.Names, " ")
	svc, err := micro.AddService(s.o.Conn, config)
	if err != nil {
		return err
	}
	s.micro = svc
	if err := svc.AddEndpoint("query", micro.HandlerFunc(s.handle), micro.WithEndpointSubject(s.o.Subjects.QueriesAll())); err != nil {
		return errors.Join(fmt.Errorf("endpoint query: %w", err), svc.Stop())
	}
	return s.o.Conn.Flush()
}

// handle runs on the endpoint's only goroutine, so it hands over and returns.
func (s *Queries) handle(req micro.Request) {
	to, subject, body := req.Reply(), req.Subject(), req.Data()
	if !answerable(to) {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.refuse(to, refuse(aggregate.CodeUnavailable, "too many queries at once"))
		return
	}
	s.work.Go(func() {
		defer func() { <-s.slots }()
		ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
		defer cancel()
		reply, refusal := s.o.Answer(ctx, strings.TrimPrefix(subject, strings.TrimSuffix(s.o.Subjects.QueriesAll(), ">")), body)
		if limit := int(s.o.Conn.MaxPayload()); len(reply)+headerRoom > limit {
			s.refuse(to, refuse(aggregate.CodeInvalidCommand, "the answer takes %d bytes and the server allows %d: ask for a smaller limit", len(reply)+headerRoom, limit))
			return
		}
		s.send(to, reply, refusal)
	})
}

func (s *Queries) refuse(to string, e *aggregate.Error) {
	reply, _ := json.Marshal(struct {
		OK    bool             `json:"ok"`
		Error *aggregate.Error `json:"error"`
	}{Error: e}, replyOptions)
	s.send(to, reply, e)
}

func (s *Queries) send(to string, reply []byte, e *aggregate.Error) {
	if err := s.o.Conn.PublishMsg(&nats.Msg{Subject: to, Data: reply, Header: errorHeader(false, e)}); err != nil {
		s.o.Logger.Error("an answer was not sent", "err", err)
	}
}

// Stop takes no more queries and waits, until ctx ends, for those under way.
func (s *Queries) Stop(ctx context.Context) error {
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
