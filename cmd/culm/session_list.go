package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"culm/internal/show"
	"culm/projection"
)

type sessionList struct {
	limits
	Status string `enum:",running,requested,waiting,blocked,failed,idle,closed,stuck" default:"" placeholder:"STATUS" help:"Only these: running, requested (no runner yet), waiting (for a person), blocked (a loop was interrupted, or ended by a call that waited; culm loop continue or abandon), failed, idle, closed or stuck (the views can not read it)."`
	Text   string `placeholder:"TEXT" help:"Only sessions with this in their name or title, or these words in a message."`
}

// Help is shown by culm session list --help.
func (sessionList) Help() string {
	return `Asks the query service. Where there is none the streams are read instead, which tell less and can not be filtered.`
}

// listed is one line of the list, and its JSON. Without a query service it has
// nothing that is folded from more than the first and the last event.
type listed struct {
	Session      string                   `json:"session"`
	Events       uint64                   `json:"events"`
	Title        string                   `json:"title,omitzero"`
	Status       string                   `json:"status,omitzero"`
	Run          *projection.SessionRun   `json:"run,omitzero"`
	Loop         *projection.LoopProgress `json:"loop,omitzero"`
	Waiting      int64                    `json:"waiting,omitzero"` // how many items wait for a person
	WaitingSince time.Time                `json:"waiting_since,omitzero"`
	Last         string                   `json:"last_event"` // type
	LastSeq      uint64                   `json:"sequence"`
	LastTime     time.Time                `json:"last_time"`
}

// Run lists the sessions, those that changed last first.
func (c *sessionList) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var cut bool
	err = c.print(a, sessionTable, c.viewed(ctx, a, b, &cut))
	switch {
	case withoutViews(err) && !c.filtered():
		if !a.JSON {
			a.tellLess(err)
		}
		return c.fromStreams(ctx, a, b, !noEngine(err))
	case errors.Is(err, errNoneListed) && !c.filtered(): // views that have just begun know less than the streams
		return c.fromStreams(ctx, a, b, true)
	case errors.Is(err, errNoneListed) && !a.JSON:
		_, err = fmt.Fprintf(a.out, "no session %s; culm session list shows what there is\n", c.sought())
		return err
	case errors.Is(err, errNoneListed):
		return nil
	case err != nil:
		return err
	}
	return a.more(cut)
}

// tellLess says why the list tells less than it could.
func (a *app) tellLess(err error) {
	why, hint := "no query service answers", ""
	if noEngine(err) {
		why, hint = a.explain(err)
	}
	a.complain(why+", so this list is without status, loop and what waits", hint)
}

func (c *sessionList) filtered() bool { return c.Status != "" || c.Text != "" }

// sought says what the filters want of a session.
func (c *sessionList) sought() string {
	var parts []string
	if c.Status != "" {
		parts = append(parts, "is "+c.Status)
	}
	if c.Text != "" {
		parts = append(parts, "has "+show.Quote(c.Text, 80))
	}
	return strings.Join(parts, " and ")
}

// viewed are the sessions as the views have them.
func (c *sessionList) viewed(ctx context.Context, a *app, b backend, cut *bool) iter.Seq2[listed, error] {
	items := all(c.Limit, cut, func(l projection.List) (projection.Page[projection.SessionItem], error) {
		return query[projection.SessionItem](ctx, a, b, "sessions.list", "", projection.SessionsQuery{Status: c.Status, Text: c.Text, List: l})
	})
	return func(yield func(listed, error) bool) {
		for it, err := range items {
			row := listed{
				it.Session, uint64(max(0, it.Events)), it.Title, it.Status, it.Run, it.Loop, it.Waiting, it.WaitingSince,
				it.LastEvent.Type, it.Sequence, it.UpdatedAt,
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// print shows the rows: as JSON each when it comes, in a table all together. It
// returns errNoneListed if there is none.
func (c *sessionList) print(a *app, tabled func(*app, []listed) table, rows iter.Seq2[listed, error]) error {
	var kept []listed
	none := true
	for r, err := range rows {
		if err != nil {
			return err
		}
		none = false
		if !a.JSON {
			kept = append(kept, r)
		} else if err := a.printJSON(r); err != nil {
			return err
		}
	}
	switch {
	case none:
		return errNoneListed
	case a.JSON:
		return nil
	}
	return tabled(a, kept).print(a.out, a.width)
}

// sessionTable leaves out columns that would be empty.
func sessionTable(a *app, rows []listed) table {
	t := table{{"SESSION", "STATUS", "LOOP", "WAITS", "LAST ACTIVITY", "TITLE"}}
	for _, r := range rows {
		t = append(t, []string{r.Session, r.Status, loopText(r.Loop), a.waitsText(r), a.ago(r.LastTime), show.Clip(show.Clean(r.Title), 60)})
	}
	return t.filled()
}

// loopText tells how far a loop is, or how it ended.
func loopText(l *projection.LoopProgress) string {
	switch {
	case l == nil:
		return ""
	case l.Status == "running" || l.Status == "finalizing" || l.Status == "paused":
		return fmt.Sprintf("iteration %d of %d, round %d of %d", l.IterationsStarted, l.MaxIterations, l.RoundsStarted, l.MaxTotalRounds)
	case l.Status == "recovery_unsupported" && l.Reason != "":
		return fmt.Sprintf("%s in iteration %d of %d", strings.ReplaceAll(l.Reason, "_", " "), l.IterationsStarted, l.MaxIterations)
	}
	return fmt.Sprintf("%s, %d of %d done", strings.ReplaceAll(l.Status, "_", " "), l.IterationsCompleted, l.MaxIterations)
}

// waitsText tells how many items wait, and how long the oldest does.
func (a *app) waitsText(r listed) string {
	if r.Waiting == 0 {
		return ""
	}
	return strconv.FormatInt(r.Waiting, 10) + " for " + show.Short(a.now().Sub(r.WaitingSince))
}
