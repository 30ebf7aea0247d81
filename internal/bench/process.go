package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"culm/aggregate"
)

// process is an engine as a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// engineBinary builds the engine once.
func engineBinary(ctx context.Context, o options) (string, error) {
	path, err := filepath.Abs(filepath.Join(o.dir, "engine"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/engine")
	build.Stderr = os.Stderr
	return path, build.Run()
}

// startProcess starts the engine and returns once it is ready; took is the time
// from start to ready.
func startProcess(ctx context.Context, o options, data string, more ...string) (p *process, took time.Duration, err error) {
	bin, err := engineBinary(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	args := append([]string{"--listen", "127.0.0.1:0", "--data", data, "--http", "off", "--no-runner", "--log-level", "error"}, more...)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	p = &process{cmd: cmd}
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if url, ok := strings.CutPrefix(sc.Text(), "nats: "); ok {
			p.url = url
		}
		if sc.Text() == "ready" {
			return p, time.Since(begin), nil
		}
	}
	return nil, 0, fmt.Errorf("engine was not ready: %w", cmd.Wait())
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// resident is the memory of the process that is not shared with others, in MB.
func (p *process) resident() (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS")
}

// starts measures the time to ready on an empty folder, and a command to a cold
// session of 10 000 events.
func starts(ctx context.Context, o options) error {
	if _, err := engineBinary(ctx, o); err != nil {
		return err
	}
	var ready, cold []time.Duration
	for i := range o.rounds {
		data := filepath.Join(o.dir, fmt.Sprintf("start-%d", i))
		p, took, err := startProcess(ctx, o, data)
		if err != nil {
			return err
		}
		ready = append(ready, took)
		do, done, err := submitter(p.url, 1, "cold")
		if err != nil {
			return err
		}
		for n := 1; n < 10000 && err == nil; n++ {
			err = do(0)
		}
		done()
		if err != nil {
			return err
		}
		if err := p.stop(); err != nil {
			return err
		}
		if p, _, err = startProcess(ctx, o, data); err != nil {
			return err
		}
		took, err = coldCommand(p.url)
		if err != nil {
			return err
		}
		cold = append(cold, took)
		if err := p.stop(); err != nil {
			return err
		}
	}
	fmt.Println("Start, as a process of its own, group sync")
	fmt.Printf("\n  ready on an empty folder                        %10s (at most 300ms)\n", median(ready).Round(time.Millisecond))
	fmt.Printf("  a command to a cold session of 10 000 events    %10s (at most 400ms)\n\n", median(cold).Round(time.Millisecond))
	return nil
}

func coldCommand(url string) (time.Duration, error) {
	conns, err := connect(url, 1)
	if err != nil {
		return 0, err
	}
	defer conns[0].Close()
	begin := time.Now()
	resp, err := conns[0].Request("agent.cmd.bench.scold-0.message.submit", []byte(`{"content":"awake?"}`), 10*time.Second)
	if err != nil {
		return 0, err
	}
	if !strings.Contains(string(resp.Data), `"sequence":10001`) {
		return 0, fmt.Errorf("cold command: %s", resp.Data)
	}
	return time.Since(begin), nil
}

// memory measures 1 000 sessions, each with a loop that is being run.
func memory(ctx context.Context, o options) error {
	p, _, err := startProcess(ctx, o, filepath.Join(o.dir, "memory"), "--lease", "10m")
	if err != nil {
		return err
	}
	defer func() { _ = p.stop() }()
	empty, err := p.resident()
	if err != nil {
		return err
	}
	const sessions = 1000
	do, done, err := submitter(p.url, sessions, "mem")
	if err != nil {
		return err
	}
	defer done()
	conns, err := connect(p.url, 1)
	if err != nil {
		return err
	}
	defer conns[0].Close()
	for c := range sessions {
		for range 5 {
			if err := do(c); err != nil {
				return err
			}
		}
		if err := liveLoop(conns[0], c); err != nil {
			return err
		}
	}
	burst, err := p.resident()
	if err != nil {
		return err
	}
	rested, err := atRest(ctx, p)
	if err != nil {
		return err
	}
	fmt.Println("Memory, as a process of its own, embedded server and views included, 1 000 sessions in a live loop")
	fmt.Printf("\n  empty %.0f MB, within ten seconds of writing to all of them %.0f MB, after a minute %.0f MB (at most 250 MB)\n\n", empty, burst, rested)
	return nil
}

// atRest is what the process holds a minute later.
func atRest(ctx context.Context, p *process) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(time.Minute):
		return p.resident()
	}
}

// folds measures decoding and folding on one core.
func folds(context.Context, options) error {
	const n = 100000
	log, session, err := longLog(n)
	if err != nil {
		return err
	}
	begin := time.Now()
	s, err := aggregate.Fold(log.Read(context.Background(), session, 0, 0))
	took := time.Since(begin)
	if err != nil || s.Head.Seq < n {
		return fmt.Errorf("fold ended at %d: %w", s.Head.Seq, err)
	}
	fmt.Printf("Decoding, checking and folding %d events: %s, %.0f a second (at most 2 s)\n\n", s.Head.Seq, took.Round(time.Millisecond), float64(s.Head.Seq)/took.Seconds())
	return nil
}
