package projection

import (
	"context"
	"time"

	"culm/events"
)

// Rest tells whether a look at the log can find what the last one did not.
// moved counts what changed at the looker's own side; clean says that the same
// look again would have nothing to do.
type Rest interface {
	Due(moved uint64) bool
	Begin(moved uint64)
	End(clean bool)
}

// noRest is the Rest that knows nothing.
type noRest struct{}

func (noRest) Due(uint64) bool { return true }
func (noRest) Begin(uint64)    {}
func (noRest) End(bool)        {}

// survey is a list of the log's sessions, and the number of events that were
// applied when it was begun.
type survey struct {
	infos []events.Info
	mark  uint64
}

// survey lists the sessions of the log for the applier to compare: once the
// feed is subscribed, and then now and then, unless neither the log nor the
// views have moved since the last comparison.
func (p *Projector) survey(ctx context.Context, a *applier, subscribed chan struct{}) error {
	select {
	case <-subscribed:
	case <-ctx.Done():
		return ctx.Err()
	}
	for pause := time.Duration(0); ; {
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		began, mark := time.Now(), p.stats.applied.Load()
		if pause > 0 && !p.opts.Rest.Due(mark) {
			pause = p.opts.Sweep
			continue
		}
		p.opts.Rest.Begin(mark)
		infos, err := p.opts.Log.Sessions(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.opts.Logger.Warn("the sessions could not be listed, to be tried again", "err", err)
			p.opts.Rest.End(false)
			pause = time.Second
			continue
		}
		p.opts.Rest.End(true)
		select {
		case a.surveys <- survey{infos, mark}:
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = max(p.opts.Sweep, 50*time.Since(began))
	}
}

// compare looks at a list of the log's sessions and reads those that are
// behind, or do not fit what the views hold. The first one verifies all: after
// a restore, a log may have its old length and another content.
func (a *applier) compare(ctx context.Context, s survey) error {
	verify := a.first == nil
	if verify {
		a.first = map[*tracked]bool{}
	}
	listed := make(map[string]bool, len(s.infos))
	for _, info := range s.infos {
		listed[info.Session] = true
		t := a.track(info.Session)
		a.see(t, info.LastSeq)
		cut := t.head.Seq > 0 && (info.FirstSeq > t.head.Seq || info.LastSeq < t.head.Seq) && t.mark <= s.mark
		if verify || cut || info.LastSeq > t.head.Seq && t.stuck == nil {
			a.start(ctx, t, info.LastSeq)
		}
		if verify {
			a.first[t] = true
		}
	}
	for name, t := range a.all {
		if !listed[name] && t.mark <= s.mark {
			a.start(ctx, t, 0)
			if verify {
				a.first[t] = true
			}
		}
	}
	return nil
}

// see notes that the log holds an event, and so how far the views are behind.
// A parked session is told as such, and does not make the others look late.
func (a *applier) see(t *tracked, seq uint64) {
	if seq <= t.seen {
		return
	}
	if t.stuck == nil {
		a.behind(int64(seq - max(t.seen, t.head.Seq))) //nolint:gosec // a difference of sequences
	}
	t.seen = seq
}

// ahead is how many events of the log the views lack of a session.
func (t *tracked) ahead() int64 { return int64(t.seen - min(t.seen, t.head.Seq)) } //nolint:gosec // a difference of sequences

// behind moves the number of events that are known and not applied.
func (a *applier) behind(by int64) {
	now := a.p.stats.behind.Add(by)
	switch {
	case now <= 0:
		a.p.stats.behindSince.Store(0)
	case now == by:
		a.p.stats.behindSince.Store(a.p.opts.Now().UnixNano())
	}
}
