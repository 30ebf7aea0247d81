package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"culm/internal/engine"
	"culm/internal/show"
)

type demo struct{}

// Help is shown by culm demo --help.
func (demo) Help() string {
	return `Starts an engine with its own NATS server in a temporary folder and has it run a loop of three iterations over the recorded session that ships with culm (no model is called). The first file that is to be written waits for a person: the demo shows it, approves it as "approver", and the loop goes on. Then the engine is stopped and started again on the same data, what is stored is audited, and who allowed what is shown. The folder is removed at the end.`
}

const (
	demoSession    = "demo"
	demoPrompt     = "Improve the text: the next draft, please."
	demoIterations = 3
	demoRounds     = 30
	demoTimeout    = time.Minute
)

func (demo) Run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "culm-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began := a.now()
	a.sayf("An engine starts in %s.", dir)
	if err := a.withEngine(ctx, dir, a.demoLoop); err != nil {
		return err
	}
	a.sayf("\nThe engine has stopped. It starts again on the same data, to audit what is stored.")
	if err := a.withEngine(ctx, dir, a.demoAudit); err != nil {
		return err
	}
	a.sayf("\nThat took %s. Where to go next:\n", show.Elapsed(uint64(a.now().Sub(began).Milliseconds())))
	a.sayf("  go run ./cmd/engine                                    an engine that stays, data in ./data")
	a.sayf("  go run ./cmd/culm session create first                 a session of yours, in a second terminal")
	a.sayf("  go run ./cmd/culm loop start first \"…\" -n 3 --follow   a loop in it, which asks before it writes")
	a.sayf("  go run ./cmd/culm pending                              what waits for you")
	a.sayf("  go run ./cmd/culm --help                               everything else; README.md tells the story")
	return nil
}

// sayf prints a line of the demo.
func (a *app) sayf(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// withEngine runs an engine on the data in dir while work is done with it.
func (a *app) withEngine(ctx context.Context, dir string, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := engine.Run(ctx, engine.Config{Data: dir, Prefix: a.Prefix, HTTP: "off"}, in)
		_ = in.Close()
		ended <- err
	}()
	url, err := awaitReady(out)
	if err != nil {
		return errors.Join(err, <-ended)
	}
	a.NATS = url
	err = work(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// awaitReady reads what an engine prints until it is ready and returns the
// address of its server.
func awaitReady(out io.Reader) (url string, err error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if u, ok := strings.CutPrefix(line, "nats: "); ok {
			url = u
		}
		if line == "ready" && url != "" {
			return url, nil
		}
	}
	return "", errors.Join(errors.New("the engine did not become ready"), lines.Err())
}

// demoApprover is who approves in the demo.
const demoApprover = "approver" // no longer than the column of actors

// demoLoop runs the loop until it waits for a person, and approves.
func (a *app) demoLoop(ctx context.Context) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := a.do(ctx, b, demoSession, "session.create", data{"title": "A demo"}, commandFlags{})
	if err != nil {
		return err
	}
	a.sayf("A loop of %d iterations runs over the recorded session; each line is one stored event.\n", demoIterations)
	loop := data{"max_iterations": demoIterations, "max_total_rounds": demoRounds, "on_park": "pause"}
	q, err := a.do(ctx, b, demoSession, "run.request", data{"prompt": demoPrompt, "loop": loop}, commandFlags{})
	if err != nil {
		return err
	}
	o, err := outcomeOf(q)
	if err != nil {
		return err
	}
	if err := a.follow(ctx, b, demoSession, o.RunID, r.Sequence-1); !errors.Is(err, errWaits) {
		return errors.Join(errors.New("the loop did not stop to ask"), err)
	}
	return a.demoApprove(ctx, b)
}

// demoApprove shows what waits and lets it run, and what is like it with it.
func (a *app) demoApprove(ctx context.Context, b backend) error {
	it, err := a.find(ctx, b, demoSession, "")
	if err != nil {
		return err
	}
	a.sayf("\nThe loop has paused: nothing runs until a person decides. This is what waits (culm pending):\n\n%s", it.block(a, false))
	a.sayf("A person approves it, and all writes below that folder for this session:\n\n  culm approve %s --session --matcher path_subtree\n", demoSession)
	person := *a
	person.Actor = demoApprover
	return person.decide(ctx, verdict{
		aboutCall: aboutCall{Session: demoSession, Call: it.ToolCallID}, decision: allowSession, matcher: "path_subtree", yes: true, follow: true,
	})
}

func (a *app) demoAudit(ctx context.Context) error {
	if err := (&audit{Session: demoSession}).Run(ctx, a); err != nil {
		return err
	}
	a.sayf("\nWho allowed what, and what ran of it (culm log %s --approvals):\n", demoSession)
	return (&logCmd{Session: demoSession, Approvals: true}).Run(ctx, a)
}
