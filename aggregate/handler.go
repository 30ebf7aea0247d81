package aggregate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"culm/events"
)

// Options are what a Handler works with. Log, Leases and Barrier are needed;
// the rest has defaults.
type Options struct {
	Log     events.Log
	Leases  Leases
	Barrier events.Barrier
	// Config gives the configuration snapshot that the next decision rests on.
	Config func() Config
	// Headroom says whether another session may be created; nil error if so.
	Headroom func() error
	Now      Clock
	// Entropy fills the random part of ids; crypto/rand if nil.
	Entropy func([]byte)
	Logger  *slog.Logger
	// MaxSessions bounds the states kept in memory, default 4096.
	MaxSessions int
	// MaxReply is the largest answer in bytes, default 1 MiB less 4 KiB.
	MaxReply int
	// Timeout bounds one command, default 5 s; past it the answer is unavailable.
	Timeout time.Duration
}

// Handler judges commands: it loads a session's state, decides, appends, and
// answers when the outcome is durable. One goroutine owns a session at a time;
// other engines are kept honest by the expected sequence.
//
// The caller's duties:
//
//  1. Serve requests through Handle and Read, any number at once.
//  2. Call Sweep now and then, so that dead runs are noticed without a command.
//  3. Close, after the front door has closed.
type Handler struct {
	opts  Options
	cache cache
	// policies is the policy as this engine knows it.
	policies policyFold
	ctx      context.Context //nolint:containedctx // ends all work of the handler
	cancel   context.CancelFunc
	// workers are the goroutines that serve actors.
	workers workers
	moment  moment
	work    sync.WaitGroup
	// reads are the reads of whole logs that are under way; others wait in line.
	reads  chan struct{}
	closed sync.RWMutex // held for writing once closing: no new work
	down   bool
}

// NewHandler makes a Handler; see Options.
func NewHandler(opts Options) *Handler {
	if opts.Config == nil {
		opts.Config = func() Config { return Config{} }
	}
	if opts.Headroom == nil {
		opts.Headroom = func() error { return nil }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Entropy == nil {
		opts.Entropy = func(b []byte) { _, _ = rand.Read(b) }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.MaxSessions = cmp.Or(opts.MaxSessions, 4096)
	opts.MaxReply = cmp.Or(opts.MaxReply, 1<<20-4096)
	opts.Timeout = cmp.Or(opts.Timeout, 5*time.Second)
	h := &Handler{opts: opts, cache: newCache(opts.MaxSessions), reads: make(chan struct{}, maxReads)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.workers = newWorkers(h.ctx)
	return h
}

var _ Service = (*Handler)(nil)

// Handle implements Service.
func (h *Handler) Handle(_ context.Context, r Request, done func(Reply)) {
	if r.ID == "" {
		r.ID = h.newID("")
	}
	h.submit(r.Session, func(a *actor) { h.handle(a, r, done) }, func(reject *Rejection) { done(h.refusal(r, 0, reject)) })
}

// Next says what the outside owes the session now; see Step. It returns
// events.ErrNotFound, ErrMalformedState or events.ErrUnavailable.
func (h *Handler) Next(ctx context.Context, session string) (Step, error) {
	return h.step(ctx, session, func(context.Context, *actor) error { return nil })
}

// step loads the session, lets first see to it, and answers Next.
func (h *Handler) step(ctx context.Context, session string, first func(context.Context, *actor) error) (Step, error) {
	type answer struct {
		step Step
		err  error
	}
	out := make(chan answer, 1)
	h.submit(session, func(a *actor) {
		ctx, cancel := h.bounded(ctx)
		defer cancel()
		err := h.load(ctx, a)
		if err == nil {
			err = first(ctx, a)
		}
		if err != nil {
			out <- answer{err: err}
			return
		}
		out <- answer{step: Next(a.state, h.opts.Config())}
	}, func(r *Rejection) { out <- answer{err: r} })
	select {
	case got := <-out:
		return got.step, got.err
	case <-ctx.Done():
		return Step{}, ctx.Err()
	}
}

// maxQueued bounds the commands that wait for one session.
const maxQueued = 1024

// submit queues a job for the session; its jobs run one after the other. What
// has waited longer than the timeout is refused when its turn comes: whoever
// sent it has given up or sent it again, and work for nobody would make the
// others wait as long.
func (h *Handler) submit(session string, run func(*actor), refused func(*Rejection)) {
	h.closed.RLock()
	defer h.closed.RUnlock()
	if h.down {
		refused(reject(CodeUnavailable, "the engine is stopping; retry with the same command id"))
		return
	}
	a, start, ok := h.cache.push(session, job{time.Now(), run, refused})
	if !ok {
		refused(reject(CodeUnavailable, "%d commands wait for this session already; retry with the same command id", maxQueued))
		return
	}
	if start {
		h.work.Add(1)
		h.workers.give(a, h.serve)
	}
}

// serve works an actor's queue off.
func (h *Handler) serve(a *actor) {
	defer h.work.Done()
	a.run(h.opts.Timeout, h.cache.idle)
}

// bounded is the context of one job: it ends with the handler's, the caller's
// or after the timeout.
func (h *Handler) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timeout)
	stop := context.AfterFunc(h.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Close refuses new work, waits until what was accepted has been judged, and
// returns; when ctx ends first it gives the rest up as unavailable.
func (h *Handler) Close(ctx context.Context) error {
	h.closed.Lock()
	h.down = true
	h.closed.Unlock()
	finished := make(chan struct{})
	go func() { h.work.Wait(); close(finished) }()
	defer h.cancel()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		h.cancel()
		<-finished
		return ctx.Err()
	}
}

// refusal is the reply for a rejection.
func (h *Handler) refusal(r Request, seq uint64, reject *Rejection) Reply {
	return Reply{
		Session: r.Session, Command: r.ID, Sequence: seq,
		Error: &Error{Code: reject.Code, Message: reject.Message, Details: reject.Details},
	}
}

// asRejection spells an error of the log as a refusal.
func asRejection(err error) *Rejection {
	var r *Rejection
	err = lostEnd(err)
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, events.ErrTooLarge):
		return reject(CodePayloadTooLarge, "%v", err)
	case errors.Is(err, events.ErrNotFound):
		return reject(CodeSessionNotFound, "there is no such session; session.create makes one")
	case errors.Is(err, events.ErrBirthChanged):
		return reject(CodeBirthChanged, "the session was deleted meanwhile, and created again")
	case errors.Is(err, ErrMalformedState):
		return reject(CodeMalformedState, "%v; culm audit says more", err)
	}
	return reject(CodeUnavailable, "%v; nothing is known to be stored, retry with the same command id", err)
}
