package runner

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
)

// Engine is what a Runner drives sessions through.
type Engine interface {
	// Do gives the command to the session, once: trying again is the Runner's.
	// The reply says what the rules made of it; an error, and the code
	// unavailable, mean that it is not known whether the command was accepted.
	// The same Command given again must reach the rules with the same id and
	// the same bytes, so that one that was accepted gets its first outcome.
	Do(ctx context.Context, session string, c Command) (aggregate.Reply, error)
	// Next says what the session is owed. It is cheap.
	Next(ctx context.Context, session string) (aggregate.Step, error)
}

// Command is one command of the Runner.
type Command struct {
	ID   string // the same however often it is given
	Name string // noun.verb
	Data any    // its JSON body; equal data is spelled in equal bytes
}

// Why the work on a session stops, or a call under way ends early.
var (
	errLetGo    = errors.New("nothing more to do here")
	errLost     = errors.New("the run is no longer held by this runner")
	errCancel   = errors.New("the run was asked to cancel")
	errShutdown = errors.New("the runner is shutting down")
	errTimeout  = errors.New("the call took too long")
)

// refusal is a command that the rules refused.
type refusal struct {
	Command, Code, Message string
	Stored                 bool // a fact was appended together with it
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: %s: %s", r.Command, r.Code, r.Message) }

// cancelled is the refusal of what a run that was asked to cancel may not do.
func cancelled(command string) error {
	return &refusal{Command: command, Code: aggregate.CodeCancelRequested, Message: errCancel.Error()}
}

func refused(err error) (*refusal, bool) { return errors.AsType[*refusal](err) }

const (
	maxTries  = 12
	tryBase   = 100 * time.Millisecond
	tryCap    = 2 * time.Second
	oneReport = 30 * time.Second // for one command with all its tries
)

// errNoAnswer: what became of the command is not known.
var errNoAnswer = errors.New("no answer")

// do gives a command and decodes its result into out, unless out is nil. It
// outlives the runner's context by Grace, so that what happened can still be
// reported, and is tried again while its outcome is not known: all tries have
// one id, so if one was accepted and its reply lost, the next is told the first
// outcome. It reports whether an event was appended. The error is errLost, a
// *refusal, or the engine's own.
func (s *session) do(ctx context.Context, name string, data, out any) (stored bool, err error) {
	trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneReport)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if sleep(trying, s.r.cfg.Grace) {
			cancel()
		}
	})()
	c := Command{ID: cryptorand.Text(), Name: name, Data: data}
	for try := 1; ; try++ {
		stored, err := s.once(trying, c, out)
		if !errors.Is(err, errNoAnswer) || try == maxTries || !sleep(trying, jitter(tryBase, tryCap, try)) {
			return stored, err
		}
	}
}

// once is do with a single try that ends with ctx; errNoAnswer if its outcome
// is not known.
func (s *session) once(ctx context.Context, c Command, out any) (stored bool, err error) {
	reply, err := s.r.cfg.Engine.Do(ctx, s.name, c)
	switch {
	case err != nil:
	case reply.Error != nil && reply.Error.Code == aggregate.CodeUnavailable:
		err = errors.New(reply.Error.Message)
	default:
		return read(c.Name, reply, out)
	}
	return false, fmt.Errorf("%s %s: %w: %w", c.Name, s.name, errNoAnswer, err)
}

func read(name string, reply aggregate.Reply, out any) (bool, error) {
	stored := reply.Event != nil
	if !reply.OK {
		e := reply.Error
		if e == nil {
			e = &aggregate.Error{Code: "malformed_reply"}
		}
		if e.Code == aggregate.CodeStaleRun {
			return stored, errLost
		}
		return stored, &refusal{Command: name, Code: e.Code, Message: e.Message, Stored: stored}
	}
	if out == nil || len(reply.Result) == 0 {
		return stored, nil
	}
	if err := json.Unmarshal(reply.Result, out); err != nil {
		return stored, &refusal{Command: name, Code: "malformed_reply", Message: err.Error()}
	}
	return stored, nil
}

// jitter is a random wait for the n-th repetition: full jitter under a
// doubling bound.
func jitter(base, limit time.Duration, n int) time.Duration {
	bound := limit
	if shift := n - 1; shift < 16 {
		bound = min(limit, base<<shift)
	}
	return rand.N(bound) + 1 //nolint:gosec // spreads load, guards nothing
}

// sleep waits for d and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
