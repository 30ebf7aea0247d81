package aggregate

import (
	"errors"
	"fmt"
	"iter"

	"culm/events"
)

// ErrMalformedState: the session's log breaks a rule of its own (an event that
// cannot be decoded, an unknown type, a broken chain or invariant). The session
// is refused; it is never treated as one without a loop.
var ErrMalformedState = errors.New(CodeMalformedState)

// Apply folds one stored event into the state: chain, decoding, Evolve,
// invariants. On an error the state is not to be used any more. The errors wrap
// ErrMalformedState and the reason: a chain fault of package events,
// events.ErrUnknownEvent, events.ErrMalformed or a broken invariant.
func (s *State) Apply(r events.Record) error {
	e, err := events.Decode(r.Payload)
	if err != nil {
		return malformed(r, err)
	}
	if err := s.Head.Check(&e, r.Seq); err != nil {
		return malformed(r, err)
	}
	if e.Session != r.Session {
		return malformed(r, fmt.Errorf("%w: of session %s", events.ErrBirth, e.Session))
	}
	s.apply(&e, r.Payload)
	if err := s.Validate(); err != nil {
		return malformed(r, err)
	}
	return nil
}

// apply moves the state over an event that is known to be good.
func (s *State) apply(e *events.Event, stored []byte) {
	if e.Data != nil {
		Evolve(s, e)
	}
	s.Head = s.Head.Next(e, stored)
}

func malformed(r events.Record, err error) error {
	return fmt.Errorf("fold %s@%d: %w: %w", r.Session, r.Seq, ErrMalformedState, err)
}

// lostEnd makes ErrMalformedState, too, of a log whose end is lost.
func lostEnd(err error) error {
	if lost, ok := errors.AsType[*events.LostError](err); ok && !errors.Is(err, ErrMalformedState) {
		return fmt.Errorf("fold %s@%d: %w: %w", lost.Session, lost.First, ErrMalformedState, err)
	}
	return err
}

// Fold folds a whole log, or its beginning. A read error is returned as it is,
// except that a log that has lost its end is ErrMalformedState.
func Fold(records iter.Seq2[events.Record, error]) (*State, error) {
	s := &State{}
	return s, s.FoldOn(records)
}

// FoldOn folds further records into the state.
func (s *State) FoldOn(records iter.Seq2[events.Record, error]) error {
	for r, err := range records {
		if err != nil {
			return lostEnd(err)
		}
		if err := s.Apply(r); err != nil {
			return err
		}
	}
	return nil
}

// ErrInvariant: a state that no sequence of accepted commands can reach.
var ErrInvariant = errors.New("broken_invariant")

// Validate checks what must hold after every event (docs/rules.md#invariants).
func (s *State) Validate() error {
	if s.Loop != nil {
		if err := s.Loop.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInvariant, err)
		}
	}
	if s.Run != nil && s.Run.Status == runSuspended && s.Waiting() == 0 {
		return fmt.Errorf("%w: the run is suspended and nothing waits", ErrInvariant)
	}
	if s.Run != nil && s.Run.Status == runLive && s.Run.Fence == 0 {
		return fmt.Errorf("%w: the run is live without a fence", ErrInvariant)
	}
	if s.Session.Closed && s.Run != nil {
		return fmt.Errorf("%w: the session is closed and has a run", ErrInvariant)
	}
	for i := range s.Calls {
		if err := s.Calls[i].validate(); err != nil {
			return fmt.Errorf("%w: tool call %.80q: %w", ErrInvariant, s.Calls[i].ID, err)
		}
	}
	return nil
}

// validate checks that the call holds what its status rests on.
func (c *Call) validate() error {
	switch {
	case c.Status == CallParked && (c.Parked == nil || (c.Parked.Request == nil) != (c.Generation == "")):
		return errors.New("it waits for nothing that can be decided")
	case c.Status == CallUnknown && c.Generation == "":
		return errors.New("its outcome is unknown under no generation")
	case (c.Status == CallDecided || c.Status == CallStarted && c.Replaying) && c.Approval == nil:
		return errors.New("it is to be replayed without an approval")
	}
	return nil
}
