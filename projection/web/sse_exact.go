package web

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"culm/aggregate"
	"culm/events"
)

// exact follows named sessions without a gap: what the hub no longer has is
// read from the log.
func (t *stream) exact(ctx context.Context, h *hub, log Log, at cursor) {
	p, err := t.places(ctx, log)
	t.id = p.String
	if err != nil {
		t.tell("cut", reasonOf{asFault(err).Code})
		t.flush()
		return
	}
	t.tell("hello", struct{}{})
	if p.lost {
		t.tell("gap", reasonOf{"not_there"})
	}
	for _, session := range p.names {
		if !t.backlog(ctx, log, p, session, 0) {
			return
		}
	}
	t.pump(ctx, h, &at, func(r *events.Record) bool {
		switch {
		case !slices.Contains(p.names, r.Session):
			return true
		case r.Type == goneType:
			t.event(r)
			return true
		case r.Seq <= p.at[r.Session]:
			return true
		}
		if r.Seq > p.at[r.Session]+1 && !t.backlog(ctx, log, p, r.Session, r.Seq-1) {
			return false
		}
		p.at[r.Session] = r.Seq
		t.event(r)
		return true
	})
}

// backlog sends what the log holds of a session after its place.
func (t *stream) backlog(ctx context.Context, log Log, p *places, session string, through uint64) bool {
	last, err := log.Last(ctx, session)
	if err != nil || last <= p.at[session] {
		return err == nil || asFault(err).Code == aggregate.CodeSessionNotFound || t.broken(err)
	}
	for r, err := range log.Read(ctx, session, p.at[session], through) {
		if err != nil {
			return t.broken(err)
		}
		p.at[session] = r.Seq
		t.event(&r)
		if t.buf.Len() > 64<<10 && !t.flush() {
			return false
		}
	}
	return t.buf.Len() == 0 || t.flush()
}

func (t *stream) broken(err error) bool {
	t.tell("cut", reasonOf{asFault(err).Code})
	t.flush()
	return false
}

// places are positions in named sessions, spelled "a@12,b@7".
type places struct {
	names []string
	at    map[string]uint64
	// lost: a place that was asked for lies behind the end of its session, or in
	// one that is not followed.
	lost bool
}

func (p *places) String() string {
	var b strings.Builder
	for i, s := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s + "@" + strconv.FormatUint(p.at[s], 10))
	}
	return b.String()
}

// places begin where Last-Event-ID says, or with what is new.
func (t *stream) places(ctx context.Context, log Log) (*places, error) {
	p := &places{at: map[string]uint64{}}
	for session, n := range t.following.places {
		if slices.Contains(t.sessions, session) {
			p.at[session] = n
		} else {
			p.lost = true
		}
	}
	for _, s := range t.sessions {
		if slices.Contains(p.names, s) {
			continue
		}
		p.names = append(p.names, s)
		last, err := log.Last(ctx, s)
		if err != nil && asFault(err).Code != aggregate.CodeSessionNotFound {
			return p, err
		}
		at, known := p.at[s]
		p.lost = p.lost || at > last
		if !known || at > last {
			p.at[s] = last
		}
	}
	return p, nil
}
