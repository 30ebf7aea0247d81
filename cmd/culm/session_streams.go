package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"culm/events"
	"culm/internal/show"
)

// errNoneListed: there is no session to list.
var errNoneListed = errors.New("no session")

// readers bounds how many streams are read at once.
const readers = 8

// fromStreams lists the sessions by their streams: number, first and last
// events. It needs neither engine nor projector; engine says that there is one,
// which could make a session.
func (c *sessionList) fromStreams(ctx context.Context, a *app, b backend, engine bool) error {
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
	cut := c.Limit > 0 && len(rows) > c.Limit
	if cut {
		rows = rows[:c.Limit]
	}
	err = c.print(a, streamTable, func(yield func(listed, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	})
	switch {
	case errors.Is(err, errNoneListed) && !a.JSON:
		_, err = fmt.Fprintln(a.out, "no session yet"+when(engine, "; culm session create NAME makes one"))
		return err
	case errors.Is(err, errNoneListed):
		return nil
	case err != nil:
		return err
	}
	return a.more(cut)
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

// streamTable is what streams alone tell.
func streamTable(a *app, rows []listed) table {
	t := table{{"SESSION", "EVENTS", "LAST EVENT", "LAST ACTIVITY", "TITLE"}}
	for _, r := range rows {
		t = append(t, []string{r.Session, strconv.FormatUint(r.Events, 10), r.Last, a.ago(r.LastTime), show.Clip(show.Clean(r.Title), 60)})
	}
	return t
}
