package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"culm/internal/show"
	"culm/projection"
)

type tokenUsage struct {
	By      string      `enum:"session,model,day" default:"session" placeholder:"WHAT" help:"session, model or day (${default})."`
	Session sessionName `placeholder:"NAME" help:"Only this session."`
	limits
}

// Help is shown by culm usage --help.
func (tokenUsage) Help() string {
	return `Counts what the answers of models used, as the providers say it. Days are those of UTC. Needs the query service of an engine or of cmd/projector.`
}

// Run shows tokens: most first, or the newest day first, with the sum of all.
func (c *tokenUsage) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var cut bool
	var rows []projection.UsageItem
	for it, err := range all(0, &cut, func(l projection.List) (projection.Page[projection.UsageItem], error) {
		return query[projection.UsageItem](ctx, a, b, "usage.get", string(c.Session), projection.UsageQuery{By: c.By, Session: string(c.Session), List: l})
	}) {
		if err != nil {
			return err
		}
		rows = append(rows, it)
	}
	slices.SortStableFunc(rows, func(x, y projection.UsageItem) int {
		if c.By == "day" {
			return cmp.Compare(y.Day, x.Day)
		}
		return cmp.Compare(y.Usage.Total, x.Usage.Total)
	})
	sum := total(rows)
	if cut = c.Limit > 0 && len(rows) > c.Limit; cut {
		rows = rows[:c.Limit]
	}
	if err := c.print(a, rows, sum); err != nil {
		return err
	}
	return a.more(cut)
}

// total is the sum of rows.
func total(rows []projection.UsageItem) projection.UsageItem {
	var sum projection.UsageItem
	for _, r := range rows {
		sum.Rounds += r.Rounds
		sum.Usage = sum.Usage.Add(r.Usage)
	}
	return sum
}

func (c *tokenUsage) print(a *app, rows []projection.UsageItem, sum projection.UsageItem) error {
	if a.JSON {
		for _, r := range rows {
			if err := a.printJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "no model has answered yet")
		return err
	}
	t := table{{map[string]string{"session": "SESSION", "model": "MODEL", "day": "DAY"}[c.By], "ROUNDS", "TOKENS IN", "OUT", "TOTAL"}}
	for _, r := range rows {
		name := cmp.Or(r.Session, r.Day, r.Provider+when(r.Model != "", "/"+r.Model), "not named")
		t = append(t, usageRow(name, r))
	}
	if len(rows) > 1 || sum.Rounds != rows[0].Rounds {
		t = append(t, usageRow("all", sum))
	}
	return t.printNumbers(a.out)
}

func usageRow(name string, r projection.UsageItem) []string {
	u := r.Usage
	return []string{name, show.Thousands(uint64(max(0, r.Rounds))), show.Thousands(u.Prompt), show.Thousands(u.Completion), show.Thousands(u.Total)}
}
