package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"culm/aggregate"
	"culm/events"
	"culm/provider"
	"culm/tool"
)

// What is known here is known nowhere else. So while the engine is out of
// reach it is kept in hand, and reported before anything else is done.

// answered is the answer of a round.
type answered struct {
	round    uint32
	answer   provider.Answer
	attempts int
}

// kept is the report of one started call.
type kept struct {
	call   string
	report func(context.Context) error
}

// tell reports what became of a started call. A report that gets no answer is
// kept, and those after it wait behind it.
func (s *session) tell(ctx context.Context, c tool.Call, report func(context.Context) error) error {
	err := fmt.Errorf("call %s waits to be reported: %w", c.ID, errNoAnswer)
	if len(s.hold.kept) == 0 {
		err = report(ctx)
	}
	if errors.Is(err, errNoAnswer) {
		s.hold.kept = append(s.hold.kept, kept{c.ID, report})
	}
	return err
}

// retell gives the first kept report, if by the step its call still runs; if
// not, an earlier try was accepted.
func (s *session) retell(ctx context.Context, step aggregate.Step) error {
	first := s.hold.kept[0]
	if slices.ContainsFunc(step.Running, func(c aggregate.StepCall) bool { return c.ID == first.call }) {
		if err := first.report(ctx); errors.Is(err, errNoAnswer) {
			return err
		} else if err != nil {
			s.hold.kept = s.hold.kept[1:]
			return err
		}
	}
	s.hold.kept = s.hold.kept[1:]
	return nil
}

// next asks what is owed, after taking over a run that was handed back.
func (s *session) next(ctx context.Context) (aggregate.Step, error) {
	if s.hold == nil && s.claiming == "" && s.r.cfg.Adopt != nil {
		if run, ok := s.r.cfg.Adopt(s.name); ok {
			s.take(run.RunID, 0, claimResult{Fence: run.Fence, Roster: events.Roster{Primary: events.RosterModel{Provider: run.Provider}}})
			s.hold.adopted = true
		}
	}
	if s.hold != nil && s.hold.adopted {
		if err := s.adopt(ctx); err != nil {
			return aggregate.Step{}, err
		}
	}
	step, err := s.r.cfg.Engine.Next(ctx, s.name)
	if errors.Is(err, events.ErrNotFound) || errors.Is(err, aggregate.ErrMalformedState) {
		s.drop("the session is gone or refused")
		return step, errLetGo
	}
	return step, err
}

// adopt makes sure of a run that was handed back: that its fence is still the
// run's, on the newest state, and that no call of it was left under way, whose
// outcome only a person can find out. Else the run is let go.
func (s *session) adopt(ctx context.Context) error {
	var now renewResult
	_, err := s.do(ctx, "run.renew", s.hold.runRef, &now)
	if _, isRefusal := refused(err); isRefusal || errors.Is(err, errLost) {
		s.drop("the run that was handed back is over")
		return nil
	}
	if err != nil {
		return err
	}
	step, err := s.r.cfg.Engine.Next(ctx, s.name)
	switch {
	case err != nil:
		return err
	case step.RunID != s.hold.RunID || step.Fence != s.hold.Fence || len(step.Running) > 0:
		s.drop("left the run that was handed back")
		return nil
	}
	s.log.Info("took the run over, as it was handed back", "run", step.RunID)
	s.take(step.RunID, step.Round, claimResult{Fence: step.Fence, LeaseMS: now.LeaseMS, Roster: events.Roster{Primary: step.Primary}})
	return nil
}
