package aggregate

import (
	"context"
	"iter"
	"strings"
	"testing"

	"culm/events"
)

// lostLog has lost the event after the end of one session's log.
type lostLog struct {
	events.Log
	session string
	lost    events.LostError
}

func (l *lostLog) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, session, after, through) {
			if !yield(r, err) {
				return
			}
		}
		if session == l.session && after == 0 && through == 0 {
			yield(events.Record{}, &l.lost)
		}
	}
}

func (l *lostLog) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	if session == l.session {
		return &l.lost
	}
	return l.Log.Append(ctx, session, expected, eventType, payload)
}

// TestHandler_LostEnd: a session that has lost its last event is refused as
// malformed_state, which names the event, and is no shorter session; the audit
// finds it missing; without its policy nothing is judged that rests on it.
func TestHandler_LostEnd(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"s", SettingsSession} {
		b := newBench(t)
		e := b.engine()
		e.must("s", "session.create", nil)
		e.must(SettingsSession, "policy.set_mode", obj{"mode": "plan"})
		last := uint64(len(b.records(session)))
		b.opts.Log = &lostLog{Log: b.log, session: session, lost: events.LostError{Session: session, First: last + 1, Last: last + 1}}
		damaged := b.engine()
		refused := []Reply{damaged.do(session, map[string]string{"s": "message.submit", SettingsSession: "policy.set_mode"}[session], map[string]any{"s": obj{"content": "m"}, SettingsSession: obj{"mode": "auto"}}[session])}
		if session == SettingsSession {
			refused = append(refused, damaged.do("s", "session.set_mode", obj{"mode": "bypass"}))
		}
		for _, r := range refused {
			if r.OK || r.Error.Code != CodeMalformedState || !strings.Contains(r.Error.Message, "lost events 2 to 2") {
				t.Errorf("%s: %+v", session, r.Error)
			}
		}
		for _, q := range []ReadQuery{{}, {Transcript: true}} {
			if r := damaged.read(session, q); r.OK || r.Error.Code != CodeMalformedState {
				t.Errorf("%s: %+v", session, r)
			}
		}
		// An engine that has the state learns it by its append.
		if session == "s" {
			e.h.opts.Log = b.opts.Log
			if r := e.do("s", "message.submit", obj{"content": "m"}); r.OK || r.Error.Code != CodeMalformedState {
				t.Errorf("known state: %+v", r)
			}
		}
		report, err := Audit(b.opts.Log.Read(t.Context(), session, 0, 0), AuditOptions{Session: session})
		if err != nil || len(report.Findings) != 1 || report.Findings[0].Kind != FindingMissing || report.Findings[0].Seq != 2 {
			t.Errorf("audit: %+v, %v", report, err)
		}
	}
}
