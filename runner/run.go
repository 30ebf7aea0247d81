package runner

import (
	"context"
	"errors"
	"time"

	"culm/aggregate"
	"culm/events"
)

// claim asks for the requested run. Whatever speaks against it is no business
// of this runner: another one may have it, or nobody can.
func (s *session) claim(ctx context.Context, step aggregate.Step) error {
	s.hold, s.claiming = nil, step.RunID
	var out claimResult
	_, err := s.do(ctx, "run.claim", claimData{step.RunID, s.r.cfg.Name, s.r.cfg.Providers.IDs()}, &out)
	if _, ok := refused(err); ok {
		s.claiming = ""
		s.log.Debug("left the run", "run", step.RunID, "err", err)
		return errLetGo
	}
	if err != nil {
		return err
	}
	s.take(step.RunID, step.Round, out)
	s.log.Info("claimed the run", "run", step.RunID, "cause", out.Cause)
	return nil
}

// defaultLease is assumed where no reply has named the lease.
const defaultLease = 15 * time.Second

// take holds the run from now on; what it streams belongs to the round.
func (s *session) take(run string, round uint32, c claimResult) {
	lease := time.Duration(c.LeaseMS) * time.Millisecond
	if lease <= 0 {
		lease = defaultLease
	}
	s.hold = &hold{
		runRef: runRef{run, c.Fence}, primary: c.Roster.Primary, lease: lease,
		stream: &stream{to: s.r.cfg.Deltas, session: s.name, run: run, round: round},
	}
}

func (s *session) admit(ctx context.Context) error {
	var out admitResult
	stored, err := s.do(ctx, "round.start", s.hold.runRef, &out)
	if err != nil || out.Admitted || stored {
		return err
	}
	return &refusal{Command: "round.start", Code: codeNotAdmitted, Message: out.Reason}
}

// finish ends the run. One that was asked to cancel meanwhile does not fail.
func (s *session) finish(ctx context.Context, data finishData) error {
	data.runRef = s.hold.runRef
	if data.Outcome == outcomeError {
		var now renewResult
		if _, err := s.do(ctx, "run.renew", s.hold.runRef, &now); err != nil {
			return err
		}
		if now.CancelRequested {
			data.Outcome, data.Error = outcomeCancelled, nil
		}
	}
	if _, err := s.do(ctx, "run.finish", data, nil); err != nil {
		return err
	}
	s.log.Info("finished the run", "run", data.RunID, "outcome", data.Outcome)
	s.hold, s.claiming = nil, ""
	return nil
}

// Outcomes of run.finish that are decided here.
const (
	outcomeError     = "error"
	outcomeCancelled = "cancelled"
)

// fail ends the run with an error, or drops it if even that is refused. It keeps
// the run, to be ended later, if the engine is out of reach.
func (s *session) fail(ctx context.Context, code, message string) {
	if s.hold == nil {
		return
	}
	s.log.Warn("the run failed", "run", s.hold.RunID, "code", code, "err", message)
	s.hold.failure = &events.Failure{Code: code, Message: message}
	err := s.finish(ctx, finishData{Outcome: outcomeError, Error: s.hold.failure})
	if err == nil {
		return
	}
	if !errors.Is(err, errLost) {
		s.log.Warn("the failure could not be reported", "run", s.hold.RunID, "err", err)
	}
	if !errors.Is(err, errNoAnswer) {
		s.drop("let go of the run")
	}
}
