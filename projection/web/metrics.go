package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"culm/aggregate"
	"culm/events"
)

// Metrics are the figures of one process, in a registry of its own. The zero
// value is not usable; a nil *Metrics wraps and counts nothing.
type Metrics struct {
	registry    *prometheus.Registry
	appends     *prometheus.CounterVec
	commands    *prometheus.HistogramVec
	refusals    *prometheus.CounterVec
	conflicts   prometheus.Counter
	leaseLosses prometheus.Counter
	shorterLogs prometheus.Gauge
}

// NewMetrics registers the figures; gauges are asked for the rest whenever
// somebody reads them, and may be nil.
func NewMetrics(gauges func(context.Context) (Gauges, error)) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		appends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "engine_appends_total", Help: "Attempts to append an event, by outcome: stored, conflict, unavailable, too_large, failed.",
		}, []string{"outcome"}),
		commands: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "engine_command_seconds", Help: "Time from a command's arrival to its durable answer, by outcome: accepted, duplicate, nothing, refused, unavailable.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "engine_refusals_total", Help: "Refused commands, by error code.",
		}, []string{"code"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "engine_conflicts_total", Help: "Appends that met another writer's event and were decided anew.",
		}),
		leaseLosses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "engine_lease_losses_total", Help: "Runs that this engine recorded as interrupted because their lease had run out.",
		}),
		shorterLogs: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "engine_shorter_logs", Help: "Sessions whose log ended, when this engine started, before an event that its views had seen, or whose stream had lost events by its own count. Not 0: events were lost.",
		}),
	}
	m.registry.MustRegister(m.appends, m.commands, m.refusals, m.conflicts, m.leaseLosses, m.shorterLogs,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, outcome := range []string{"stored", "conflict", "unavailable", "too_large", "failed"} {
		m.appends.WithLabelValues(outcome)
	}
	if gauges != nil {
		m.registry.MustRegister(&gaugeCollector{read: gauges})
	}
	return m
}

func (m *Metrics) handler() http.Handler {
	h := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		h.ServeHTTP(w, r)
	})
}

// ShorterLogs notes how many sessions have lost events since the last start.
func (m *Metrics) ShorterLogs(n int) {
	if m != nil {
		m.shorterLogs.Set(float64(n))
	}
}

// Log counts the appends that go through it.
func (m *Metrics) Log(log events.Log) events.Log {
	if m == nil {
		return log
	}
	return measuredLog{log, m}
}

type measuredLog struct {
	events.Log
	m *Metrics
}

// Append implements events.Log.
func (l measuredLog) Append(ctx context.Context, session string, expected uint64, eventType string, payload []byte) error {
	err := l.Log.Append(ctx, session, expected, eventType, payload)
	var wrong *events.WrongSequenceError
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "stored"
		if eventType == "run.interrupted" {
			l.m.leaseLosses.Inc()
		}
	case errors.As(err, &wrong):
		outcome = "conflict"
		l.m.conflicts.Inc()
	case errors.Is(err, events.ErrUnavailable):
		outcome = "unavailable"
	case errors.Is(err, events.ErrTooLarge):
		outcome = "too_large"
	}
	l.m.appends.WithLabelValues(outcome).Inc()
	return err
}

// Service measures the commands that go through it.
func (m *Metrics) Service(s aggregate.Service) aggregate.Service {
	if m == nil {
		return s
	}
	return measuredService{s, m}
}

type measuredService struct {
	aggregate.Service
	m *Metrics
}

// Handle implements aggregate.Service.
func (s measuredService) Handle(ctx context.Context, r aggregate.Request, done func(aggregate.Reply)) {
	began := time.Now()
	s.Service.Handle(ctx, r, func(reply aggregate.Reply) {
		s.m.command(&reply, time.Since(began))
		done(reply)
	})
}

func (m *Metrics) command(r *aggregate.Reply, took time.Duration) {
	outcome := "refused"
	switch {
	case r.OK && r.Duplicate:
		outcome = "duplicate"
	case r.OK && r.Event == nil:
		outcome = "nothing"
	case r.OK:
		outcome = "accepted"
	case r.Error != nil && r.Error.Code == aggregate.CodeUnavailable:
		outcome = "unavailable"
	}
	m.commands.WithLabelValues(outcome).Observe(took.Seconds())
	if r.Error != nil {
		m.refusals.WithLabelValues(r.Error.Code).Inc()
	}
}

// gaugeCollector reads the gauges when they are asked for; where they cannot be
// read they are left out.
type gaugeCollector struct {
	read func(context.Context) (Gauges, error)
}

var (
	descLagEvents  = prometheus.NewDesc("projection_lag_events", "Events of the log that a view does not have yet.", []string{"view"}, nil)
	descLagSeconds = prometheus.NewDesc("projection_lag_seconds", "Age of the oldest event that a view does not have yet.", []string{"view"}, nil)
	descWaiting    = prometheus.NewDesc("approvals_waiting", "Items that wait for a person.", nil, nil)
	descOldest     = prometheus.NewDesc("approvals_oldest_waiting_seconds", "Age of the oldest item that waits for a person, 0 for none.", nil, nil)
	descSessions   = prometheus.NewDesc("sessions", "Sessions by status.", []string{"status"}, nil)
)

// Describe implements prometheus.Collector.
func (c *gaugeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLagEvents, descLagSeconds, descWaiting, descOldest, descSessions} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *gaugeCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	g, err := c.read(ctx)
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, l := range g.Lag {
		gauge(descLagEvents, float64(l.Events), l.View)
		gauge(descLagSeconds, l.Seconds, l.View)
	}
	gauge(descWaiting, float64(g.WaitingItems))
	gauge(descOldest, g.OldestWaiting)
	for status, n := range g.SessionsByStatus {
		gauge(descSessions, float64(n), status)
	}
}
