package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"culm/provider"
	"culm/tool"
)

// Config says what a Runner works with. Engine, Wake, Providers, Tools and
// Name must be set; the rest has defaults.
type Config struct {
	Engine Engine
	// Wake names sessions that may have work. Names may come at any time, any
	// number of times; whoever feeds it repeats them now and then, and those
	// that Resting gives within a lease, so that nothing is lost for good.
	// Closing it ends nothing.
	Wake <-chan string
	// Name is the token under which runs are claimed. It names this one
	// process: a run that another Runner claimed is not continued.
	Name      string
	Providers *provider.Registry
	// DefaultProvider serves sessions that name none; if "", the only one there is.
	DefaultProvider string
	Tools           tool.Tools
	// Messages reads the transcript for providers that send it; may be nil.
	Messages func(ctx context.Context, session string) ([]provider.Message, error)
	Deltas   Deltas // nil: nothing is streamed
	// HandBack takes the runs that are still held when Run ends; may be nil.
	HandBack func(session string, run Held)
	// Adopt gives a run of the session that a Runner has handed back, to one
	// Runner and once; false if there is none for this one. It is asked whenever
	// a session is looked at of which no run is held. nil: never.
	Adopt func(session string) (Held, bool)

	Sessions     int           // driven at once, others queue; 64
	Parallel     int           // tool calls of one answer at once; 8
	Attempts     int           // model attempts per round; 3
	Backoff      time.Duration // bound of the first wait between them, doubling; 400 ms
	ModelTimeout time.Duration // of one attempt; 10 min
	ToolTimeout  time.Duration // of one call; 120 s
	// Grace is how long calls under way may go on after the context ended; 10 s.
	Grace time.Duration
	// Patience is how long a call that was told to end may take to do so
	// before it is given up; 5 s.
	Patience time.Duration
	// MaxResult bounds the content of a tool result, in bytes; 256 KiB.
	MaxResult int
	Log       *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil || c.Wake == nil || c.Providers == nil || c.Tools == nil || c.Name == "" {
		return c, errors.New("runner: Engine, Wake, Providers, Tools and Name must be set")
	}
	c.Sessions = cmp.Or(c.Sessions, 64)
	c.Parallel = cmp.Or(c.Parallel, 8)
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.Backoff = cmp.Or(c.Backoff, 400*time.Millisecond)
	c.ModelTimeout = cmp.Or(c.ModelTimeout, 10*time.Minute)
	c.ToolTimeout = cmp.Or(c.ToolTimeout, 120*time.Second)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.MaxResult = cmp.Or(c.MaxResult, 256<<10)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c, nil
}

// Held is a run in a Runner's hand.
type Held struct {
	RunID    string
	Fence    uint64
	Provider string // that its session names; "" if none
}

// Runner drives sessions until its context ends.
type Runner struct {
	cfg Config

	mu       sync.Mutex
	sessions map[string]*session // queued, driven, or with a run in hand
	queue    []*session
	driven   int
	workers  sync.WaitGroup
}

// New returns a Runner that does nothing until Run. It returns an error if a
// field of c that must be set is not.
func New(c Config) (*Runner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Runner{cfg: c, sessions: map[string]*session{}}, nil
}

// Run drives the sessions that are woken. When ctx ends it starts nothing
// more, waits for what is under way at most about Grace and Patience, and for
// its report, if the engine does not answer, Grace once more; it returns nil. Engine must go on answering until then. Run is called once.
func (r *Runner) Run(ctx context.Context) error {
	wake := r.cfg.Wake
	for {
		select {
		case <-ctx.Done():
			r.workers.Wait()
			r.handBack()
			return nil
		case name, ok := <-wake:
			if !ok {
				wake = nil
				continue
			}
			r.wake(ctx, name)
		}
	}
}

// handBack gives back what is held. Nothing drives a session any more.
func (r *Runner) handBack() {
	if r.cfg.HandBack == nil {
		return
	}
	for name, s := range r.sessions {
		if s.hold != nil {
			r.cfg.HandBack(name, Held{s.hold.RunID, s.hold.Fence, s.hold.primary.Provider})
		}
	}
}

// Resting are the sessions with a run in hand, or a claim that was not answered,
// that nothing drives: the engine was out of reach for longer than a command is
// tried. No event tells of them, so they have to be woken.
func (r *Runner) Resting() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.sessions {
		if s.place == resting {
			names = append(names, name)
		}
	}
	return names
}

// wake sees to it that the session is looked at after this call began.
func (r *Runner) wake(ctx context.Context, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[name]
	if s == nil {
		s = newSession(r, name)
		r.sessions[name] = s
	}
	switch s.place {
	case driven:
		s.again = true
		select {
		case s.poke <- struct{}{}:
		default: // a poke is waiting already
		}
	case resting:
		s.place = queued
		r.queue = append(r.queue, s)
	}
	for r.driven < r.cfg.Sessions && len(r.queue) > 0 {
		r.driven++
		first := r.pop()
		r.workers.Go(func() { r.work(ctx, first) })
	}
}

func (r *Runner) pop() *session {
	s := r.queue[0]
	r.queue = r.queue[1:]
	s.place, s.again = driven, false
	return s
}

// work drives sessions one after the other while any are queued.
func (r *Runner) work(ctx context.Context, s *session) {
	for s != nil {
		s.drive(ctx)
		s = r.done(ctx, s)
	}
}

// done puts a session down and picks up the next one; nil if there is none.
func (r *Runner) done(ctx context.Context, s *session) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.again:
		s.place = queued
		r.queue = append(r.queue, s)
	case s.hold != nil || s.claiming != "":
		s.place = resting
	default:
		delete(r.sessions, s.name)
	}
	if ctx.Err() != nil || len(r.queue) == 0 {
		r.driven--
		return nil
	}
	return r.pop()
}
