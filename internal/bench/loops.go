package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/provider"
)

// instant is a model that answers at once.
type instant struct{}

// Generate implements provider.Provider.
func (instant) Generate(context.Context, provider.Request, func(provider.Delta)) (provider.Answer, error) {
	return provider.Answer{Content: content, Usage: &provider.Usage{Prompt: 100, Completion: 50, Total: 150}, FinishReason: "stop"}, nil
}

const (
	loopIterations = 10
	loopSessions   = 64
)

// loops compares iterations of bounded loops, driven by the built-in runner,
// with plain commands, both with group sync and 64 sessions.
func loops(ctx context.Context, o options) error {
	e, err := startEngine(ctx, o, bus.SyncGroup, map[string]provider.Provider{"instant": instant{}})
	if err != nil {
		return err
	}
	defer func() { _ = e.stop() }()
	var iterations, submitted []float64
	for round := range o.rounds {
		do, done, err := submitter(e.url, loopSessions, fmt.Sprintf("c%d", round))
		if err != nil {
			return err
		}
		f, err := measure(loopSessions, o.length, do)
		done()
		if err != nil {
			return err
		}
		submitted = append(submitted, f.rate)
		if f, err = measureLoops(e.url, o.length, round); err != nil {
			return err
		}
		iterations = append(iterations, f.rate*loopIterations)
	}
	fmt.Printf("Bounded loops of %d plain iterations, %d sessions, built-in runner, group sync\n\n", loopIterations, loopSessions)
	fmt.Printf("  %.0f iterations a second beside %.0f commands a second\n\nRatios\n", median(iterations), median(submitted))
	verdict("iterations to commands", median(iterations)/median(submitted), 0.55)
	fmt.Println()
	return nil
}

// measureLoops runs whole loops, one after the other in each session.
func measureLoops(url string, length time.Duration, round int) (figure, error) {
	do, done, err := submitter(url, loopSessions, fmt.Sprintf("l%d", round))
	if err != nil {
		return figure{}, err
	}
	defer done()
	if err := do(0); err != nil {
		return figure{}, err
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return figure{}, err
	}
	defer nc.Close()
	ended := make([]chan error, loopSessions)
	for c := range ended {
		ended[c] = make(chan error, 1)
		session := fmt.Sprintf("sl%d-%d", round, c)
		if _, err := nc.Subscribe("agent.event."+session+".run.finished", func(m *nats.Msg) { ended[c] <- checkLoop(m.Data) }); err != nil {
			return figure{}, err
		}
	}
	if err := nc.Flush(); err != nil {
		return figure{}, err
	}
	body := fmt.Sprintf(`{"prompt":"once more","loop":{"max_iterations":%d,"max_total_rounds":%d}}`, loopIterations, loopIterations)
	return measure(loopSessions, length, func(c int) error {
		resp, err := nc.Request(fmt.Sprintf("agent.cmd.bench.sl%d-%d.run.request", round, c), []byte(body), 10*time.Second)
		if err != nil {
			return err
		}
		if !strings.Contains(string(resp.Data), `"outcome":"requested"`) {
			return fmt.Errorf("run.request: %s", resp.Data)
		}
		select {
		case err := <-ended[c]:
			return err
		case <-time.After(30 * time.Second):
			return fmt.Errorf("loop of session %d did not end", c)
		}
	})
}

func checkLoop(event []byte) error {
	var e struct {
		Data struct {
			Loop struct {
				Status    string `json:"status"`
				Completed int    `json:"iterations_completed"`
			} `json:"loop"`
		} `json:"data"`
	}
	if err := json.Unmarshal(event, &e); err != nil || e.Data.Loop.Status != "completed" || e.Data.Loop.Completed != loopIterations {
		return fmt.Errorf("loop ended otherwise: %s", event)
	}
	return nil
}
