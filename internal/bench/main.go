// Command bench measures an engine against the raw JetStream publish of the
// same payload, in one process and one run, over loopback TCP, and prints the
// ratios. Rounds are interleaved and medians reported, since machines are
// noisy. Every reply is checked.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder for the data; must be on a disk whose sync takes time (default: a temporary one below the working directory)")
	flag.IntVar(&o.rounds, "rounds", 3, "interleaved rounds")
	flag.DurationVar(&o.length, "length", 3*time.Second, "length of one measurement")
	flag.StringVar(&o.only, "only", "", "measure only this part: commands, loops, approvals, fold, start, memory, catchup, lag, list, idle")
	flag.StringVar(&o.line, "line", "", "of commands, measure only this line, e.g. \"command none/64\"")
	profile := flag.String("cpuprofile", "", "write a CPU profile here")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options of one run.
type options struct {
	dir    string
	rounds int
	length time.Duration
	only   string
	line   string
}

func run(ctx context.Context, o options) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp(".", ".bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.dir = dir
	}
	sync, err := syncTime(o.dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d CPUs, %s; one fdatasync of 4 KiB takes %s (median)\n\n", runtime.Version(), runtime.NumCPU(), cpuModel(), sync.Round(time.Microsecond))
	if sync < 100*time.Microsecond {
		fmt.Println("WARNING: a sync takes less than 0.1 ms here: figures of the synced modes mean nothing on such a disk")
	}
	parts := []struct {
		name string
		run  func(context.Context, options) error
	}{{"commands", commands}, {"loops", loops}, {"approvals", approvals}, {"fold", folds}, {"start", starts}, {"memory", memory}, {"catchup", catchUps}, {"lag", lags}, {"list", lists}, {"idle", idle}}
	measured := false
	for _, p := range parts {
		if o.only != "" && o.only != p.name {
			continue
		}
		measured = true
		if err := p.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if !measured {
		return fmt.Errorf("there is no part %q", o.only)
	}
	return nil
}

func median[T int | float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// quantile is the value that percent of the others do not exceed.
func quantile(v []time.Duration, percent int) time.Duration {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[min(len(v)-1, len(v)*percent/100)]
}

// verdict prints a ratio beside what it is meant to be.
func verdict(name string, ratio, want float64) {
	mark := "ok"
	if ratio < want {
		mark = "BELOW"
	}
	fmt.Printf("  %-58s %5.2f  (at least %.2f) %s\n", name, ratio, want, mark)
}
