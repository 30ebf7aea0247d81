package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/aggregate"
)

const (
	// LaterStream is the work queue that keeps queued commands.
	LaterStream = "COMMANDS"

	laterConsumer = "engine"
	laterGroup    = "engine" // priority group: one engine at a time is given messages
	laterPull     = 512      // hints asked for at a time
	pinHeader     = "Nats-Pin-Id"

	defaultLaterWorkers = 64
	defaultTakeover     = 10 * time.Second
	defaultRedeliver    = 5 * time.Second
	reopenPause         = time.Second
)

// ErrForeignStream: the work queue exists and belongs to another prefix.
var ErrForeignStream = errors.New("stream " + LaterStream + " is over other subjects")

// ErrNoJetStream: the server keeps no streams.
var ErrNoJetStream = errors.New("has no JetStream: start nats-server with -js")

// LaterOptions configure the handling of queued commands.
type LaterOptions struct {
	Conn     *nats.Conn
	Subjects Subjects
	Handler  aggregate.Service
	Replicas int // of the work queue; 0 is 1
	Workers  int // sessions whose commands are handled at the same time; 0 is 64
	// Takeover is how long an engine that fell silent keeps the queue, at least
	// two seconds; 0 is ten.
	Takeover time.Duration
	// RedeliverAfter is when a message that was given to an engine and is still
	// there is shown again; every further time takes longer. 0 is five seconds.
	RedeliverAfter time.Duration
	Logger         *slog.Logger
}

// Later handles the commands of the work queue, those of one session in the
// order of the queue.
//
// The consumer of the queue only says which sessions have something to do: it
// delivers headers, is never acknowledged, and is pinned to one engine. What is
// done next is read from the stream itself: the lowest message of the session
// is handled and then removed, and only then the next one is looked at. So the
// order does not depend on who was given which message when, and what an engine
// leaves behind is found by the next one, first things first. A command that is
// handled twice, because its engine died before it could remove it, has the
// same id both times and is a duplicate to the rules.
type Later struct {
	o       LaterOptions
	log     *slog.Logger
	js      jetstream.JetStream
	api     jsAPI
	queue   *laterQueue
	ctx     context.Context // of everything; ends with Stop
	cancel  context.CancelFunc
	workers sync.WaitGroup

	stopOnce sync.Once
	stopErr  error
	stopping chan struct{} // closed when Stop begins

	mu    sync.Mutex
	hints jetstream.MessagesContext // of the last opening
	pin   string                    // last pin id that hints came with
}

// StartLater makes the queue and its consumer if they are missing and handles
// commands until Stop. It returns ErrForeignStream if the queue of another
// prefix is there.
func StartLater(ctx context.Context, o LaterOptions) (*Later, error) {
	o.Workers = cmp.Or(o.Workers, defaultLaterWorkers)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Takeover = max(cmp.Or(o.Takeover, defaultTakeover), 2*time.Second)
	o.RedeliverAfter = cmp.Or(o.RedeliverAfter, defaultRedeliver)
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, fmt.Errorf("queued commands: %w", err)
	}
	l := &Later{o: o, log: o.Logger, js: js, api: jsAPI{req: o.Conn, wait: defaultLaterWait}, queue: newLaterQueue(), stopping: make(chan struct{})}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	hints, err := l.open(ctx)
	if err != nil {
		l.cancel()
		return nil, fmt.Errorf("queued commands: %w", err)
	}
	for range o.Workers {
		l.workers.Go(l.work)
	}
	l.workers.Go(func() { l.listen(hints) })
	return l, nil
}

// open makes what is missing and begins to listen.
func (l *Later) open(ctx context.Context) (jetstream.MessagesContext, error) {
	if err := EnsureLaterStream(ctx, l.js, l.o.Subjects, l.o.Replicas); err != nil {
		return nil, err
	}
	consumer, err := l.js.CreateOrUpdateConsumer(ctx, LaterStream, l.consumerConfig())
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", laterConsumer, err)
	}
	hints, err := consumer.Messages(jetstream.PullMaxMessages(laterPull), jetstream.PullPriorityGroup(laterGroup), jetstream.PullExpiry(l.o.Takeover/2))
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", laterConsumer, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hints = hints; l.isStopped() {
		hints.Stop()
	}
	return hints, nil
}

// EnsureLaterStream makes the work queue, so that commands can be queued before
// any engine has run. It returns ErrForeignStream as StartLater does.
func EnsureLaterStream(ctx context.Context, js jetstream.JetStream, subjects Subjects, replicas int) error {
	if err := CheckPrefix(ctx, js, subjects); err != nil {
		return err
	}
	want := []string{subjects.LaterAll()}
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: LaterStream, Description: "commands that no engine has handled yet",
		Subjects: want, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas,
		// An id that a client sets by mistake would swallow another session's
		// command; this is the shortest window there is.
		Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", LaterStream, err)
	}
	return nil
}

// CheckPrefix returns ErrForeignStream where engines with another prefix have
// been at work: sessions of two prefixes would have streams of the same names.
// It is the first that is asked of JetStream, and returns ErrNoJetStream where
// nobody answers.
func CheckPrefix(ctx context.Context, js jetstream.JetStream, subjects Subjects) error {
	old, err := js.Stream(ctx, LaterStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the server at %s %w", Redact(js.Conn().ConnectedUrl()), ErrNoJetStream)
	case err != nil:
		return fmt.Errorf("stream %s: %w", LaterStream, err)
	}
	if over := old.CachedInfo().Config.Subjects; !slices.Equal(over, []string{subjects.LaterAll()}) {
		return fmt.Errorf("%w: %s, not %s: the sessions there belong to engines with another prefix", ErrForeignStream, strings.Join(over, " "), subjects.LaterAll())
	}
	return nil
}

func (l *Later) consumerConfig() jetstream.ConsumerConfig {
	first := l.o.RedeliverAfter
	return jetstream.ConsumerConfig{
		Durable: laterConsumer, Description: "tells one engine which sessions have commands waiting",
		AckPolicy: jetstream.AckExplicitPolicy, HeadersOnly: true,
		// A session that makes no progress must not use up what others need.
		MaxAckPending: -1, MaxDeliver: -1, BackOff: []time.Duration{first, 3 * first, 10 * first, 30 * first},
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{laterGroup}, PinnedTTL: l.o.Takeover,
	}
}

// listen takes hints, and opens the consumer anew when it was lost.
func (l *Later) listen(hints jetstream.MessagesContext) {
	for {
		l.take(hints)
		for hints = nil; hints == nil; {
			select {
			case <-l.stopping:
				return
			case <-time.After(reopenPause):
			}
			var err error
			if hints, err = l.open(l.ctx); err != nil {
				l.log.Warn("queued commands: open again", "err", err)
			}
		}
	}
}

func (l *Later) take(hints jetstream.MessagesContext) {
	defer hints.Stop()
	for !l.isStopped() {
		m, err := hints.Next()
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			continue // it keeps asking
		}
		if err != nil {
			if !l.isStopped() {
				l.log.Warn("queued commands: hints ended", "err", err)
			}
			return
		}
		l.hint(m)
	}
}

func (l *Later) hint(m jetstream.Msg) {
	if pin := m.Headers().Get(pinHeader); pin != "" {
		l.mu.Lock()
		l.pin = pin
		l.mu.Unlock()
	}
	meta, err := m.Metadata()
	if err != nil {
		l.log.Error("queued commands: a hint without metadata", "err", err)
		return
	}
	l.queue.wake(laterKey(l.o.Subjects, m.Subject(), meta.Sequence.Stream))
}

func (l *Later) isStopped() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}

// Stop begins no further command and waits for those that are being handled.
// If ctx ends first, it ends their context and says so; they stay in the queue.
// Then it lets go of the queue, so that another engine need not wait. Later
// calls wait for the first and return the same.
func (l *Later) Stop(ctx context.Context) error {
	l.stopOnce.Do(func() { l.stopErr = l.stop(ctx) })
	return l.stopErr
}

func (l *Later) stop(ctx context.Context) error {
	close(l.stopping)
	l.mu.Lock()
	hints, pin := l.hints, l.pin
	l.mu.Unlock()
	hints.Stop()
	l.queue.close()
	ended := make(chan struct{})
	go func() { l.workers.Wait(); close(ended) }()
	defer l.cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("stop queued commands: %w", ctx.Err())
	}
	l.unpin(ctx, pin)
	return nil
}

// unpin gives the queue to whoever asks next, if this engine still holds it.
func (l *Later) unpin(ctx context.Context, pin string) {
	if pin == "" {
		return
	}
	stream, err := l.js.Stream(ctx, LaterStream)
	if err != nil {
		return
	}
	consumer, err := stream.Consumer(ctx, laterConsumer)
	if err != nil {
		return
	}
	for _, group := range consumer.CachedInfo().PriorityGroups {
		if group.PinnedClientID == pin {
			_ = stream.UnpinConsumer(ctx, laterConsumer, group.Group) // else it ends by itself after Takeover
		}
	}
}
