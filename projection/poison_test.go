package projection

import (
	"errors"
	"strings"
	"testing"

	"culm/events"
)

// TestProjector_Poison: what cannot be applied parks its session, the others go
// on, and a later start tries again.
func TestProjector_Poison(t *testing.T) {
	t.Parallel()
	replace := func(old, new string) func([]events.Record) []events.Record {
		return func(l []events.Record) []events.Record {
			l[2].Payload = []byte(strings.Replace(string(l[2].Payload), old, new, 1))
			return l
		}
	}
	for _, c := range []struct {
		name, code string
		damage     func([]events.Record) []events.Record
	}{
		{"bytes", "malformed_event", func(l []events.Record) []events.Record { l[2].Payload = []byte("{"); return l }},
		{"a newer version", "unknown_event", replace("message.submitted:1", "message.submitted:2")},
		{"an unknown field", "malformed_event", replace(`"role":`, `"rôle":`)},
		{"a hole", "missing_event", func(l []events.Record) []events.Record { return append(l[:2:2], l[3:]...) }},
		{"a changed event", "changed_event", func(l []events.Record) []events.Record {
			l[1].Payload = []byte(strings.Replace(string(l[1].Payload), "message 1", "message 9", 1))
			return l
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := events.NewMem()
			fill(t, log, "bad", 5)
			fill(t, log, "good", 5)
			var whole []events.Record
			log.Rewrite("bad", func(l []events.Record) []events.Record {
				whole = append(whole, l...)
				return c.damage(l)
			})
			o := options(t, log)
			o.Logger = nil
			for n := range 2 { // the second start tries again
				r := start(t, o).awaitReady()
				page, err := r.Sessions(t.Context(), SessionsQuery{Status: "stuck"})
				if err != nil || len(page.Items) != 1 || page.Items[0].Stuck == nil || page.Items[0].Stuck.Reason == "" {
					t.Fatalf("stuck sessions: %+v, %v", page, err)
				}
				stats, err := r.Stats(t.Context())
				if err != nil || len(stats.Parked) != 1 || stats.Parked[0].Code != c.code {
					t.Errorf("parked: %+v, %v", stats.Parked, err)
				}
				if stats.Views[0].LagEvents != 0 || stats.Views[0].Lag != 0 {
					t.Errorf("a parked session makes the views late: %+v", stats.Views[0])
				}
				h := newHistory(t, log, 3)
				h.n = 1000 * (n + 1) // other command ids
				h.fold("good")
				h.give("good", "message.submit", fields{"content": "goes on"})
				w := Wait{MinSequence: map[string]uint64{"good": h.states["good"].Head.Seq}}
				if err := w.until(t.Context(), &r.pos); err != nil {
					t.Error(err)
				}
				r.stop()
			}
			log.Rewrite("bad", func([]events.Record) []events.Record { return whole })
			start(t, o).awaitReady()
			if report := check(t, o.File, log); len(report.Parked) != 0 {
				t.Errorf("still parked: %+v", report.Parked)
			}
		})
	}
}

// TestProjector_HandlerFails: a view that panics, or rows that SQL refuses, park
// the session before the event; what came before it in the batch stays.
func TestProjector_HandlerFails(t *testing.T) {
	for name, fail := range map[string]func(l *live) error{
		"panic": func(*live) error { panic("no such thing") },
		"error": func(*live) error { return errors.New("cannot") },
		"refused by SQL": func(l *live) error {
			l.out.timeline.add(&timelineRow{Session: "bad", Seq: 1})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			apply := applyHook
			defer func() { applyHook = apply }()
			applyHook = func(l *live, e *events.Event, size int) error {
				if err := apply(l, e, size); err != nil || e.Session != "bad" || e.Seq != 4 {
					return err
				}
				return fail(l)
			}
			log := events.NewMem()
			fill(t, log, "bad", 6)
			fill(t, log, "good", 6)
			o := options(t, log)
			o.Logger = nil
			r := start(t, o).awaitReady()
			report := check(t, o.File, log)
			if len(report.Parked) != 1 || report.Parked[0].Seq != 4 || report.Parked[0].Code != "view_failed" || report.Events != 9 {
				t.Errorf("%+v", report)
			}
			if stats, err := r.Stats(t.Context()); err != nil || stats.Views[0].LagEvents != 0 {
				t.Errorf("behind: %+v, %v", stats.Views, err)
			}
			r.stop()
			applyHook = apply
			r = start(t, o).awaitReady()
			if report := check(t, o.File, log); report.Events != 12 || len(report.Parked) != 0 {
				t.Errorf("after the repair: %+v", report)
			}
			r.stop()
		})
	}
}
