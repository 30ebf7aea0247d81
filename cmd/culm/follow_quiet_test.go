package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"culm/aggregate"
	"culm/events"
)

// comesBack has a feed whose connection is lost and comes back after what it
// knows.
type comesBack struct {
	*fake
	again chan struct{}
}

func (b comesBack) Feed() events.Feed { return b }

func (b comesBack) Follow(ctx context.Context, opts events.FollowOptions, handle func(events.Record) error) error {
	if err := feedOf(b.live).hand(opts, handle); err != nil {
		return err
	}
	b.again <- struct{}{}
	<-ctx.Done()
	return nil
}

// until is standard error of somebody who looks on until something stands there.
type until struct {
	bytes.Buffer
	text string
	stop func()
}

func (u *until) Write(b []byte) (int, error) {
	n, err := u.Buffer.Write(b)
	if strings.Contains(u.String(), u.text) {
		u.stop()
	}
	return n, err
}

// A follower to whom nothing comes is told why, where a runner should be heard.
func TestAFollowerIsToldWhyNothingComes(t *testing.T) {
	started := loopOfOne(t, events.RunFinished{RunID: "another", Outcome: "failed"})
	for name, c := range map[string]struct {
		status string // of the run, by the engine
		live   []events.Record
		actor  string
		again  bool // the connection comes back
		want   string
	}{
		"nobody takes it":          {"requested", started[:2], "alice", false, "culm: no runner has taken the run yet; culm session show demo\n"},
		"its runner is silent":     {"live", nil, "alice", false, "culm: nothing heard yet from the runner of the run in demo; if it is dead, that is known within its lease\n"},
		"silent after the engine":  {"live", started, "another", true, "culm: nothing heard yet from the runner of the run in demo; if it is dead, that is known within its lease\n"},
		"nobody, after the engine": {"requested", started, "another", true, "culm: no runner has taken the run yet; culm session show demo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{live: c.live, state: `{"run":{"run_id":"r1","status":"` + c.status + `"}}`, replies: []aggregate.Reply{
				{OK: true, Sequence: 2, Event: &aggregate.EventRef{Sequence: 1}, Result: []byte(`{"outcome":"requested","run_id":"r1"}`)},
			}}
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			told := &until{text: c.want, stop: stop}
			waits := 0
			a := &app{
				out: &bytes.Buffer{}, errOut: told, place: time.UTC, now: func() time.Time { return noon },
				after: func(time.Duration) <-chan time.Time {
					over := make(chan time.Time, 1)
					if waits++; waits == 2 || !c.again { // what was heard before the connection was lost counts no more
						over <- noon
					}
					return over
				},
				dial: func(_ context.Context, a *app) (backend, error) {
					again := make(chan struct{}, 1)
					a.again = again
					if c.again {
						return comesBack{f, again}, nil
					}
					return f, nil
				},
			}
			a.main(ctx, []string{"--actor", c.actor, "run", "demo", "go", "--follow"})
			if !strings.HasPrefix(told.String(), c.want) || strings.Count(told.String(), c.want) != 1 {
				t.Errorf("it says %q", told.String())
			}
		})
	}
}

// Who has heard of the runner waits in peace: a model takes its time.
func TestAFollowerWhoHasHeardOfTheRunnerIsToldNothing(t *testing.T) {
	f := &fake{state: `{"run":{"run_id":"r1","status":"live"}}`}
	q := quiet{app: &app{globals: globals{Actor: "bob", Timeout: patience}}, back: f, session: "demo"}
	q.sees(&events.Event{Actor: "bob"})
	q.sees(&events.Event{Actor: "_engine"})
	if q.why(t.Context()) == "" {
		t.Error("nothing is said, though no runner was heard")
	}
	q.sees(&events.Event{Actor: "runner"})
	if text := q.why(t.Context()); text != "" {
		t.Errorf("it says %q", text)
	}
}
