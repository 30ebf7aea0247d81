package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"culm/projection"
)

type rebuildCommand struct{}

// Run computes the views anew and switches to them.
func (*rebuildCommand) Run(ctx context.Context, p *process) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	began := time.Now()
	id, err := c.log.ID(ctx)
	if err != nil {
		return err
	}
	if err := projection.Rebuild(ctx, projection.Options{File: p.DB, Log: c.log, LogID: id, Logger: p.log}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "rebuilt %s in %s\n", p.DB, time.Since(began).Round(time.Millisecond))
	return err
}

type checkCommand struct {
	Limit int `default:"100" placeholder:"N" help:"How many differences to print, 0 for all (${default})."`
}

// errDifferent: the views are not what the log says.
var errDifferent = errors.New("the views differ from the log; projector rebuild computes them anew")

// settleTime is more than a running projector takes to notice a deleted session.
const settleTime = 20 * time.Second

// Run compares the views with the log, also while a projector runs.
func (k *checkCommand) Run(ctx context.Context, p *process) error {
	if err := k.check(); err != nil {
		return err
	}
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	printed := 0
	report, err := projection.Check(ctx, projection.CheckOptions{
		File: p.DB, Log: c.log, Settle: settleTime,
		Progress: func(left int) { p.log.Info("checking", "sessions_left", left) },
	}, func(d projection.Difference) {
		if printed++; k.Limit == 0 || printed <= k.Limit {
			fmt.Fprintln(p.out, strconv.QuoteToGraphic(d.String()))
		}
	})
	if _, none := os.Stat(p.DB); err != nil && errors.Is(none, fs.ErrNotExist) {
		return fmt.Errorf("%w; an engine keeps its own in its data folder: --db data/views.db", err)
	}
	if err != nil {
		return err
	}
	for _, s := range report.Parked {
		fmt.Fprintf(p.out, "parked: %s at event %d: %s\n", s.Session, s.Seq, strconv.QuoteToGraphic(s.Reason))
	}
	if report.Behind > 0 {
		fmt.Fprintf(p.out, "behind: %d events of the log are not in the views yet, and not compared\n", report.Behind)
	}
	fmt.Fprintf(p.out, "%d sessions, %d events, %d rows: %d differences\n", report.Sessions, report.Events, report.Rows, report.Differences)
	if report.Differences > 0 {
		return errDifferent
	}
	return nil
}
