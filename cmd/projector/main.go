// Command projector keeps the views of all sessions in a database of its own
// and answers queries about them, against any NATS server; see projector --help.
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
	"time"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"culm/bus"
	"culm/internal/version"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const description = `culm projector: views of all sessions in one SQLite database, and queries
about them over NATS, and the web page ("projector run --help" has its flags).

It prints "ready" on standard output when the views have caught up; the log
goes to standard error. Any number of projectors may run side by side, each on
a database of its own; they share the queries. SIGTERM and SIGINT stop it
gracefully, and it may be killed at any time.

Exit status: 0 stopped gracefully, nothing wrong; 1 failed, or check found a
difference; 2 bad arguments.`

// cli is everything the command line can say.
type cli struct {
	NATS     string     `name:"nats" env:"CULM_NATS" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server or cluster (${default})."`
	DB       string     `name:"db" env:"CULM_DB" default:"./views.db" placeholder:"FILE" help:"Database of the views (${default})."`
	Prefix   string     `env:"CULM_PREFIX" default:"agent" placeholder:"TOKENS" help:"Prefix of all subjects (${default})."`
	LogLevel slog.Level `env:"CULM_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
	Version  bool       `help:"Print the version and exit."`

	Run     runCommand     `cmd:"" default:"withargs" help:"Keep the views up to date and answer queries (what happens without a command)."`
	Rebuild rebuildCommand `cmd:"" help:"Compute all views anew beside the database and switch to them; a running projector takes them over."`
	Check   checkCommand   `cmd:"" help:"Compare every row of every view with the fold of the log."`
}

// process is one invocation.
type process struct {
	*cli
	out, errOut io.Writer
	log         *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// errUsage: the arguments are bad in a way that only the command notices.
var errUsage = errors.New("bad arguments")

// run is the program but for the process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, left := &cli{}, false
	parser, err := kong.New(c, kong.Name("projector"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { left = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(stderr, "projector:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	switch {
	case left: // help was asked for, and printed
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "projector: %v\nprojector: try --help\n", err)
		return exitUsage
	case c.Version:
		fmt.Fprintln(stdout, "projector", version.String())
		return exitOK
	}
	p := &process{cli: c, out: stdout, errOut: stderr, log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: c.LogLevel}))}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(p)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "projector: %v\nprojector: try --help\n", err)
		return exitUsage
	}
	fmt.Fprintln(stderr, "projector:", err)
	return exitFailed
}

// connection is the server and what is read from it.
type connection struct {
	nc       *nats.Conn
	subjects bus.Subjects
	log      *bus.JetStreamLog
}

// connectTime bounds the first connection.
const connectTime = 10 * time.Second

// connect reaches the server; the connection then comes back by itself.
func (p *process) connect(ctx context.Context) (*connection, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	subjects, err := bus.NewSubjects(p.Prefix)
	if err != nil {
		return nil, fmt.Errorf("--prefix: %w: %w", errUsage, err)
	}
	opts := append(bus.EngineConnOptions(), nats.Name("culm-projector"), nats.Timeout(connectTime),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else the connection was closed on purpose
				p.log.Warn("connection lost, trying to come back", "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { p.log.Info("connected again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.log.Warn("nats", "err", err) }))
	nc, err := nats.Connect(p.NATS, opts...)
	if errors.Is(err, nats.ErrNoServers) {
		return nil, fmt.Errorf("connect to %s: nobody answers there; is the engine running? --nats names another server", bus.Redact(p.NATS))
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", bus.Redact(p.NATS), bus.RedactError(err))
	}
	c := &connection{nc: nc, subjects: subjects}
	c.log, err = bus.NewJetStreamLog(ctx, nc, bus.LogOptions{Subjects: subjects, ReadOnly: true, Logger: p.log})
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("%s: %w", bus.Redact(p.NATS), err)
	}
	return c, nil
}
