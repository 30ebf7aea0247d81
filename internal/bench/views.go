package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
	"culm/projection"
)

// viewing is a projector inside this process.
type viewing struct {
	*projection.Projector
	end func() error
}

// startViews runs a projector on a new database until end.
func startViews(ctx context.Context, o options, log events.Log, feed events.Feed) (*viewing, error) {
	dir, err := os.MkdirTemp(o.dir, "views-")
	if err != nil {
		return nil, err
	}
	p, err := projection.Open(ctx, projection.Options{File: filepath.Join(dir, "views.db"), Log: log, Feed: feed})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return &viewing{p, func() error { cancel(); return errors.Join(<-ended, p.Close()) }}, nil
}

// viewsOf runs a projector on the server at url, over a connection of its own.
func viewsOf(ctx context.Context, o options, url string) (*viewing, error) {
	nc, err := nats.Connect(url, bus.EngineConnOptions()...)
	if err != nil {
		return nil, err
	}
	subjects, err := bus.NewSubjects("agent")
	if err != nil {
		return nil, err
	}
	log, err := bus.NewJetStreamLog(ctx, nc, bus.LogOptions{Subjects: subjects, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	v, err := startViews(ctx, o, log, bus.NewFeed(nc, log, bus.FeedOptions{Subjects: subjects}))
	if err != nil {
		return nil, err
	}
	end := v.end
	v.end = func() error { err := end(); nc.Close(); return err }
	return v, nil
}

// commander gives commands of one session over nc, as oneRun wants them.
func commander(nc *nats.Conn, session string) func(name, body string) (aggregate.Reply, error) {
	return func(name, body string) (r aggregate.Reply, err error) {
		m, err := nc.Request("agent.cmd.bench."+session+"."+name, []byte(body), 30*time.Second)
		if err == nil {
			err = json.Unmarshal(m.Data, &r)
		}
		if err == nil && !r.OK {
			err = fmt.Errorf("%s: %s", name, m.Data)
		}
		return r, err
	}
}

// fillSessions writes sessions of at least each events: runs of 50 rounds with
// calls. It returns the number of all events.
func fillSessions(url string, sessions int, each uint64) (total uint64, err error) {
	conns, err := connect(url, 8)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var errs []error
	var writers sync.WaitGroup
	next := make(chan int, sessions)
	for n := range sessions {
		next <- n
	}
	close(next)
	for _, nc := range conns {
		writers.Go(func() {
			defer nc.Close()
			for n := range next {
				do := commander(nc, fmt.Sprintf("full-%d", n))
				r, err := do("session.create", `{"model":{"provider":"p","model":"m"}}`)
				for err == nil && r.Sequence < each {
					r, err = oneRun(do)
				}
				mu.Lock()
				total, errs = total+r.Sequence, append(errs, err)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	return total, errors.Join(errs...)
}

// catchUps measures a projector that starts on 100 000 events, all views on.
func catchUps(ctx context.Context, o options) error {
	e, err := startEngine(ctx, o, bus.SyncNone, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.stop() }()
	total, err := fillSessions(e.url, 100, 1000)
	if err != nil {
		return err
	}
	var took, used []time.Duration
	for range o.rounds {
		began, cpu := time.Now(), cpuTime()
		v, err := viewsOf(ctx, o, e.url)
		if err != nil {
			return err
		}
		<-v.Ready()
		took, used = append(took, time.Since(began)), append(used, cpuTime()-cpu)
		if err := v.end(); err != nil {
			return err
		}
	}
	fmt.Println("Views, from a log of 100 sessions over TCP, all views on")
	fmt.Printf("\n  catching up with %d events  %10s, %.0f a second, %s of CPU an event, server included (at most 10s for 100 000)\n\n",
		total, median(took).Round(time.Millisecond), float64(total)/median(took).Seconds(), (median(used) / time.Duration(total)).Round(time.Microsecond)) //nolint:gosec // a count of events
	return nil
}

// lagRate is how many events a second lags sends, to lagSessions in turn.
const (
	lagRate     = 500
	lagSessions = 20
)

// lags measures from the answer to a command until a query sees its event.
func lags(ctx context.Context, o options) error {
	e, err := startEngine(ctx, o, bus.SyncNone, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.stop() }()
	v, err := viewsOf(ctx, o, e.url)
	if err != nil {
		return err
	}
	<-v.Ready()
	took, err := lagsOf(ctx, v, e.url, o.length*time.Duration(o.rounds))
	if err := errors.Join(err, v.end()); err != nil {
		return err
	}
	fmt.Printf("Lag of the views at %d events a second in %d sessions\n", lagRate, lagSessions)
	fmt.Printf("\n  from the answer to a command until a query has its event  median %s, p99 %s, %d events (median at most 20ms)\n\n",
		median(took).Round(10*time.Microsecond), quantile(took, 99).Round(10*time.Microsecond), len(took))
	return nil
}

func lagsOf(ctx context.Context, v *viewing, url string, length time.Duration) ([]time.Duration, error) {
	do, done, err := submitter(url, lagSessions, "lag")
	if err != nil {
		return nil, err
	}
	defer done()
	var mu sync.Mutex
	var took []time.Duration
	var errs []error
	var writers sync.WaitGroup
	wait := int64(30000)
	began := time.Now()
	for c := range lagSessions {
		writers.Go(func() {
			// Each session has its turn in the beat of all.
			at := began.Add(time.Duration(c) * time.Second / lagRate)
			session := fmt.Sprintf("slag-%d", c)
			for seq := uint64(2); at.Sub(began) < length; seq++ {
				time.Sleep(time.Until(at))
				at = at.Add(lagSessions * time.Second / lagRate)
				err := do(c)
				answered := time.Now()
				if err == nil {
					_, err = v.Session(ctx, projection.SessionQuery{Session: session, Wait: projection.Wait{MinSequence: map[string]uint64{session: seq}, WaitMS: &wait}})
				}
				mu.Lock()
				took, errs = append(took, time.Since(answered)), append(errs, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	writers.Wait()
	return took, errors.Join(errs...)
}
