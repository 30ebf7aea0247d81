// Command engine is one culm engine: an embedded NATS server with JetStream (or
// a connection to one), the command service, and the built-in runner.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"culm/internal/config"
	"culm/internal/engine"
	"culm/internal/version"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program but for the process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f flags
	parser, err := kong.New(&f,
		kong.Name("engine"), kong.Description(description), kong.Writers(stdout, stderr), kong.Exit(func(int) {}),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Vars{"version": version.String()})
	if err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return exitFailed
	}
	file, err := findConfig(args)
	if err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return exitUsage
	}
	if err := kong.Resolvers(file).Apply(parser); err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "engine: %v\nengine: try --help\n", err)
		return exitUsage
	}
	f.note(parsed)
	if f.helped || f.Version {
		if f.Version {
			fmt.Fprintln(stdout, "engine", version.String())
		}
		return exitOK
	}
	if err := f.check(); err != nil {
		fmt.Fprintf(stderr, "engine: %v\nengine: try --help\n", err)
		return exitUsage
	}
	if f.CheckConfig {
		return checkConfig(file, f.config(file.Rules, nil), stdout, stderr)
	}
	return serve(ctx, &f, file.Rules, stdout, stderr)
}

func serve(ctx context.Context, f *flags, rules config.Rules, stdout, stderr io.Writer) int {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: f.LogLevel}))
	err := engine.Run(ctx, f.config(rules, log), stdout)
	switch {
	case errors.Is(err, engine.ErrUsage):
		fmt.Fprintf(stderr, "engine: %v\nengine: try --help\n", err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(stderr, "engine:", err)
		return exitFailed
	}
	return exitOK
}
