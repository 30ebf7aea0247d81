// Command culm is the person's command line of the culm engine: it sends
// commands, shows what happens, and audits what happened. It speaks to engines
// over NATS and needs nothing else; see culm --help.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// Exit statuses, as --help documents them.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{in: os.Stdin, out: os.Stdout, errOut: os.Stderr, terminal: isTerminal(os.Stdout), width: terminalWidth(os.Stdout), now: time.Now, place: time.Local, dial: dialNATS}
	status := a.main(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// app is one invocation: where it reads and writes, and how it reaches engines.
type app struct {
	globals
	in          io.Reader
	out, errOut io.Writer
	terminal    bool // out is a terminal
	width       int  // of the terminal in characters, 0 for none
	now         func() time.Time
	place       *time.Location
	dial        func(ctx context.Context, a *app) (backend, error)
	again       <-chan struct{}                      // the connection has come back; set by dial, nil for never
	after       func(time.Duration) <-chan time.Time // nil is time.After
	parser      *kong.Kong
	chosen      string        // path of the command that runs, "" before it is known
	lines       *bufio.Reader // over in, for whoever is asked something
}

// exit is how kong's own flags (--help) leave.
type exit int

// main parses the arguments, runs the command and returns the exit status.
func (a *app) main(ctx context.Context, args []string) (status int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			status = int(r)
		default:
			panic(r)
		}
	}()
	if len(args) == 0 {
		return a.bare()
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return a.report(usage(fmt.Errorf("argument %d is not UTF-8: it would be stored as something else", i+1), nil))
		}
	}
	var grammar cli
	var err error
	a.parser, err = kong.New(&grammar, options(a)...)
	if err != nil {
		panic(err) // the grammar is a constant of the program
	}
	command, err := a.parser.Parse(args)
	if err != nil {
		return a.report(usage(err, command))
	}
	a.globals = grammar.globals
	a.chosen = command.Selected().FullPath()
	if err := a.globals.check(); err != nil {
		return a.report(usage(err, command))
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return a.report(command.Run(a))
}

// report tells the error, if any, with what to do about it, and returns the
// exit status it stands for.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	status := exitFailed
	if _, ok := errors.AsType[*usageError](err); ok {
		status = exitUsage
	}
	if !errors.Is(err, errFindings) {
		a.tellRefusal(err)
		a.complain(a.explain(err))
	}
	return status
}

// complain says on standard error what is wrong, with what to do about it
// unless that is "".
func (a *app) complain(text, hint string) {
	fmt.Fprintln(a.errOut, a.wrapped("culm: "+text))
	if hint != "" {
		fmt.Fprintln(a.errOut, a.wrapped("      "+hint))
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
