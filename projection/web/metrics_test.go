package web

import (
	"context"
	"errors"
	"strings"
	"testing"

	"culm/aggregate"
	"culm/events"
)

// told is a service that answers every command the same way.
type told struct{ aggregate.Reply }

func (s told) Handle(_ context.Context, _ aggregate.Request, done func(aggregate.Reply)) {
	done(s.Reply)
}
func (told) Read(context.Context, string, aggregate.ReadQuery, func(aggregate.ReadReply)) {}

func TestMetrics(t *testing.T) {
	t.Parallel()
	gauges := Gauges{Lag: []ViewLag{{"sessions", 3, 0.5}}, WaitingItems: 2, OldestWaiting: 61, SessionsByStatus: map[string]int64{"idle": 4}}
	var fail error
	m := NewMetrics(func(context.Context) (Gauges, error) { return gauges, fail })
	w := newWorld(t, func(o *Options) { o.Metrics = m })

	log := m.Log(w.mem)
	if _, err := log.Create(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_ = log.Append(t.Context(), "s", 0, "run.interrupted", []byte("x"))
	_ = log.Append(t.Context(), "s", 0, "session.created", []byte("y"))
	w.mem.SetUnavailable(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = log.Append(ctx, "s", 1, "session.created", []byte("z"))
	for _, r := range []aggregate.Reply{
		{OK: true, Event: &aggregate.EventRef{Sequence: 1}}, {OK: true}, {OK: true, Duplicate: true},
		{Error: &aggregate.Error{Code: "plan_mode"}}, {Error: &aggregate.Error{Code: aggregate.CodeUnavailable}},
	} {
		m.Service(told{r}).Handle(t.Context(), aggregate.Request{}, func(aggregate.Reply) {})
	}
	body := w.ask("GET", "/metrics", "").body
	for _, want := range []string{
		`engine_appends_total{outcome="stored"} 1`, `engine_appends_total{outcome="conflict"} 1`, `engine_conflicts_total 1`, `engine_lease_losses_total 1`,
		`engine_appends_total{outcome="unavailable"} 1`,
		`engine_command_seconds_count{outcome="accepted"} 1`, `engine_command_seconds_count{outcome="nothing"} 1`, `engine_command_seconds_count{outcome="duplicate"} 1`,
		`engine_command_seconds_count{outcome="refused"} 1`, `engine_command_seconds_count{outcome="unavailable"} 1`, `engine_refusals_total{code="plan_mode"} 1`,
		`projection_lag_events{view="sessions"} 3`, `projection_lag_seconds{view="sessions"} 0.5`, `approvals_waiting 2`, `approvals_oldest_waiting_seconds 61`, `sessions{status="idle"} 4`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	fail = errors.New("no views")
	if got := w.ask("GET", "/metrics", ""); got.StatusCode != 200 || strings.Contains(got.body, "approvals_waiting") || !strings.Contains(got.body, "engine_conflicts_total 1") {
		t.Errorf("without views: %d", got.StatusCode)
	}
	var none *Metrics
	var _ events.Log = none.Log(w.mem)
	if none.Service(told{}) == nil {
		t.Error("no metrics, no service")
	}
}
