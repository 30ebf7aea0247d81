package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
)

// Engine is what a Runner drives sessions through.
type Engine interface {
	// Do gives the command name (noun.verb) to the session, with data as its
	// JSON body. The reply says what the rules made of it; an error means that
	// it is not known whether the command was accepted.
	Do(ctx context.Context, session, name string, data any) (aggregate.Reply, error)
	// Next says what the session is owed. It is cheap.
	Next(ctx context.Context, session string) (aggregate.Step, error)
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
	Tries                  int  // how often the command was given; above 1 an earlier one may have been accepted
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: %s: %s", r.Command, r.Code, r.Message) }

func refused(err error) (*refusal, bool) { return errors.AsType[*refusal](err) }

const (
	maxTries  = 8
	tryBase   = 100 * time.Millisecond
	tryCap    = 2 * time.Second
	oneReport = 30 * time.Second // for one command with all its tries
)

// do gives a command and decodes its result into out, unless out is nil. It
// outlives the runner's context, so that what happened can still be reported,
// and is tried again while its outcome is not known. It reports whether an
// event was appended. The error is errLost, a *refusal, or the engine's own.
func (s *session) do(ctx context.Context, name string, data, out any) (stored bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneReport)
	defer cancel()
	return s.try(ctx, name, data, out)
}

// try is do that ends with ctx.
func (s *session) try(ctx context.Context, name string, data, out any) (stored bool, err error) {
	for try := 1; ; try++ {
		reply, err := s.r.cfg.Engine.Do(ctx, s.name, name, data)
		if err == nil && (reply.Error == nil || reply.Error.Code != aggregate.CodeUnavailable) {
			return read(name, reply, out, try)
		}
		if err == nil {
			err = errors.New(reply.Error.Message)
		}
		if try == maxTries || !sleep(ctx, jitter(tryBase, tryCap, try)) {
			return false, fmt.Errorf("%s %s: %w", name, s.name, err)
		}
	}
}

func read(name string, reply aggregate.Reply, out any, tries int) (bool, error) {
	stored := reply.Event != nil
	if !reply.OK {
		e := reply.Error
		if e == nil {
			e = &aggregate.Error{Code: "malformed_reply"}
		}
		if e.Code == aggregate.CodeStaleRun {
			return stored, errLost
		}
		return stored, &refusal{Command: name, Code: e.Code, Message: e.Message, Stored: stored, Tries: tries}
	}
	if out == nil || len(reply.Result) == 0 {
		return stored, nil
	}
	if err := json.Unmarshal(reply.Result, out); err != nil {
		return stored, &refusal{Command: name, Code: "malformed_reply", Message: err.Error(), Tries: tries}
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
