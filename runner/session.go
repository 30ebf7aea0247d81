package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"culm/aggregate"
	"culm/events"
)

// place is where a session stands with its Runner.
type place int

const (
	resting place = iota // in neither of the others
	queued
	driven // by exactly one goroutine
)

// session is one session in work. Except for place and again, which the
// Runner's lock guards, only the goroutine that drives it uses its fields.
type session struct {
	r    *Runner
	name string
	log  *slog.Logger
	poke chan struct{} // something happened in the session; holds at most one

	place place
	again bool // woken while driven

	hold     *hold  // the run that this Runner claimed, nil if none
	claiming string // the run that it tried to claim last
}

// hold is a claimed run.
type hold struct {
	runRef
	primary events.RosterModel // zero: the default provider
	lease   time.Duration
	stream  *stream

	adopted bool            // as it was handed back, and not yet made sure of
	answer  *answered       // of the open round, as long as it could not be reported
	kept    []kept          // reports of calls that have ended, as long as they could not be given
	failure *events.Failure // why the run is to end, as long as that could not be reported
}

func newSession(r *Runner, name string) *session {
	return &session{r: r, name: name, log: r.cfg.Log.With("session", name), poke: make(chan struct{}, 1)}
}

// maxRefusals bounds how often in a row the state may turn out to be other
// than Next said.
const maxRefusals = 5

// drive pays what the session is owed until there is nothing to pay.
func (s *session) drive(ctx context.Context) {
	refusals := 0
	for ctx.Err() == nil {
		step, err := s.next(ctx)
		if err == nil {
			err = s.pay(ctx, step)
		}
		switch r, isRefusal := refused(err); {
		case err == nil:
			refusals = 0
			continue
		case errors.Is(err, errLetGo):
			return
		case errors.Is(err, errLost):
			s.drop("lost the run")
		case !isRefusal: // the engine is out of reach: a run in hand rests, see Resting
			level := slog.LevelDebug
			if s.hold != nil && ctx.Err() == nil {
				level = slog.LevelWarn
			}
			s.log.Log(ctx, level, "engine", "run", step.RunID, "err", err)
			return
		case r.Stored || (races[r.Code] && refusals < maxRefusals):
			s.log.Debug("refused", "run", step.RunID, "round", step.Round, "err", err)
		default:
			s.fail(ctx, r.Code, r.Error())
			return
		}
		refusals++
		if refusals > 2*maxRefusals || !sleep(ctx, jitter(10*time.Millisecond, time.Second, refusals)) {
			return
		}
	}
}

// races are the codes that say no more than that Next was a moment too old.
var races = map[string]bool{
	aggregate.CodeRoundOpen: true, aggregate.CodeRoundNotOpen: true, aggregate.CodeCallsOpen: true,
	aggregate.CodeNoSuchCall: true, aggregate.CodeCallNotOpen: true, aggregate.CodeCancelRequested: true, aggregate.CodeNotAuthorized: true,
	codeNotAdmitted: true, codeNoReplay: true,
}

// Codes of outcomes that only this package gives.
const (
	codeNotAdmitted    = "not_admitted"
	codeNoReplay       = "no_replay"
	codeCallUnresolved = "call_unresolved"
	codeDigest         = "arguments_digest_mismatch"
	codeCancelled      = "cancelled"
	codeUnknownStep    = "unknown_step"
)

// pay does one step. It returns nil after progress; errLetGo when nothing is
// to be done here; otherwise why it did not come about.
func (s *session) pay(ctx context.Context, step aggregate.Step) error {
	switch step.Kind {
	case aggregate.StepNothing, aggregate.StepWait:
		s.hold, s.claiming = nil, ""
		return errLetGo
	case aggregate.StepClaim:
		return s.claim(ctx, step)
	}
	switch {
	case !s.holds(step):
		return errLetGo
	case len(s.hold.kept) > 0:
		return s.retell(ctx, step)
	case s.hold.failure != nil && step.Kind == aggregate.StepModel:
		return s.failRound(ctx, step, *s.hold.failure)
	case s.hold.failure != nil:
		return s.finish(ctx, finishData{Outcome: outcomeError, Error: s.hold.failure})
	}
	switch step.Kind {
	case aggregate.StepReplay:
		return s.replay(ctx)
	case aggregate.StepTools:
		return s.tools(ctx, step)
	case aggregate.StepAdmit:
		return s.admit(ctx)
	case aggregate.StepModel:
		return s.model(ctx, step)
	case aggregate.StepFinish:
		return s.finish(ctx, finishData{Outcome: step.Outcome})
	}
	return &refusal{Command: "next", Code: codeUnknownStep, Message: string(step.Kind)}
}

// holds reports whether the step's run is in this Runner's hand.
func (s *session) holds(step aggregate.Step) bool {
	if h := s.hold; h != nil && h.RunID == step.RunID && h.Fence == step.Fence {
		return true
	}
	s.hold = nil
	if step.Fence == 0 || step.RunID != s.claiming || step.Runner != s.r.cfg.Name {
		s.claiming = ""
		return false
	}
	// The claim was accepted, only its reply was lost.
	s.take(step.RunID, step.Round, claimResult{Fence: step.Fence, Roster: events.Roster{Primary: step.Primary}})
	return true
}

// drop forgets the run: what it still owes is somebody else's.
func (s *session) drop(why string) {
	if s.hold != nil {
		s.log.Info(why, "run", s.hold.RunID)
	}
	s.hold, s.claiming = nil, ""
}
