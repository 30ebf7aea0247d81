package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"culm/events"
	"culm/internal/show"
)

type sessionList struct {
	Limit int `default:"50" placeholder:"N" help:"How many to show, 0 for all (${default})."`
}

// listed is one line of the list, and its JSON.
type listed struct {
	Session  string    `json:"session"`
	Events   uint64    `json:"events"`
	Title    string    `json:"title,omitzero"`
	Last     string    `json:"last_event"` // type
	LastSeq  uint64    `json:"sequence"`
	LastTime time.Time `json:"last_time"`
}

// readers bounds how many streams are read at once.
const readers = 8

// Run reads the streams: their number, first and last events. It needs no
// engine.
func (c *sessionList) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	log := b.Log()
	infos, err := log.Sessions(ctx)
	if err != nil {
		return err
	}
	infos = slices.DeleteFunc(infos, func(i events.Info) bool { return strings.HasPrefix(i.Session, "_") })
	rows := make([]listed, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, info := range infos {
		g.Go(func() error {
			var err error
			rows[i], err = look(gctx, log, info)
			if errors.Is(err, events.ErrNotFound) { // deleted since it was listed
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r listed) bool { return r.LastSeq == 0 })
	slices.SortStableFunc(rows, func(x, y listed) int { return y.LastTime.Compare(x.LastTime) })
	return c.print(a, rows)
}

// look reads a session's first and last event. What can not be decoded is
// listed all the same.
func look(ctx context.Context, log logReader, info events.Info) (listed, error) {
	row := listed{Session: info.Session, Events: info.LastSeq - info.FirstSeq + 1}
	for r, err := range log.Read(ctx, info.Session, info.FirstSeq-1, info.FirstSeq) {
		if err != nil {
			return listed{}, err
		}
		if e, err := events.Decode(r.Payload); err == nil {
			if d, ok := e.Data.(events.SessionCreated); ok {
				row.Title = d.Title
			}
		}
	}
	for r, err := range log.Read(ctx, info.Session, info.LastSeq-1, info.LastSeq) {
		if err != nil {
			return listed{}, err
		}
		row.Last, row.LastSeq = r.Type, r.Seq
		if e, err := events.Decode(r.Payload); err == nil {
			row.LastTime = e.Time
		}
	}
	return row, nil
}

func (c *sessionList) print(a *app, rows []listed) error {
	total := len(rows)
	if c.Limit > 0 && total > c.Limit {
		rows = rows[:c.Limit]
	}
	if a.JSON {
		for _, r := range rows {
			if err := a.printJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	if total == 0 {
		_, err := fmt.Fprintln(a.out, "no session yet; culm session create NAME makes one")
		return err
	}
	t := table{{"SESSION", "EVENTS", "LAST EVENT", "WHEN", "TITLE"}}
	for _, r := range rows {
		t = append(t, []string{r.Session, strconv.FormatUint(r.Events, 10), r.Last, a.ago(r.LastTime), show.Clip(show.Clean(r.Title), 60)})
	}
	if err := t.print(a.out); err != nil {
		return err
	}
	if total > len(rows) {
		_, err := fmt.Fprintf(a.out, "and %s more; --limit 0 shows all\n", show.Thousands(uint64(total-len(rows))))
		return err
	}
	return nil
}
