package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

type logCmd struct {
	Session sessionName `arg:"" help:"Name of the session."`
	From    uint64      `placeholder:"SEQ" help:"Begin with this event."`
	To      uint64      `placeholder:"SEQ" help:"End with this event."`

	Approvals bool `help:"Only what a person was asked, who decided what, and what ran of it, later calls under a remembered decision included."`
}

// Run prints the stored events: readable, or with --json exactly as stored.
func (c *logCmd) Run(ctx context.Context, a *app) error {
	if c.To > 0 && c.To < c.From {
		return usage(fmt.Errorf("--to %d comes before --from %d", c.To, c.From), nil)
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	style := a.style()
	style.Dates = true
	printer := show.NewPrinter(style)
	after := uint64(0) // readable lines need what came before to be told well
	if a.JSON && c.From > 0 && !c.Approvals {
		after = c.From - 1
	}
	last, shown := after, false
	approvals := newApprovalLog()
	for r, err := range a.history(ctx, b, string(c.Session), after, c.To) {
		if err != nil {
			return notFound(string(c.Session), err)
		}
		last = r.Seq
		wanted := !c.Approvals || approvals.wants(r)
		line := ""
		if !a.JSON {
			line = a.wrapped(printer.Record(r))
		}
		switch {
		case !wanted || r.Seq < c.From:
		case a.JSON:
			shown, err = true, a.printRaw(r.Payload)
		default:
			shown = true
			_, err = fmt.Fprintln(a.out, line)
		}
		if err != nil {
			return err
		}
	}
	if !shown && !a.JSON {
		c.tellNothing(a, last)
	}
	return nil
}

// tellNothing says why no event is shown, beside the output, which is empty.
func (c *logCmd) tellNothing(a *app, last uint64) {
	switch {
	case c.From > last:
		fmt.Fprintf(a.errOut, "culm: %s ends with event %d\n", c.Session, last)
	case c.Approvals:
		fmt.Fprintf(a.errOut, "culm: nobody was asked or decided anything in these events of %s\n", c.Session)
	}
}

// pageSize is how many events one read asks for.
const pageSize = 500

// history yields stored events in order. It asks an engine, whose answers are
// durable and need no rights on streams; where no engine answers, or what is
// stored is too damaged for one, it reads the stream itself.
func (a *app) history(ctx context.Context, b backend, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for {
			page, next, err := a.page(ctx, b, session, after)
			if err != nil && canReadStream(err) {
				b.Log().Read(ctx, session, after, through)(yield)
				return
			}
			if err != nil {
				yield(events.Record{}, err)
				return
			}
			for _, r := range page {
				if through > 0 && r.Seq > through {
					return
				}
				if !yield(r, nil) {
					return
				}
			}
			if next == 0 {
				return
			}
			after = next
		}
	}
}

// page reads events after a sequence; next is 0 after the last page.
func (a *app) page(ctx context.Context, b backend, session string, after uint64) (page []events.Record, next uint64, err error) {
	reply, err := a.read(ctx, b, session, aggregate.ReadQuery{Events: &aggregate.EventsQuery{After: after, Limit: pageSize}})
	if err != nil {
		return nil, 0, err
	}
	for _, raw := range reply.Events {
		r := recordOf(raw)
		if r.Session == "" {
			r.Session = session
		}
		page = append(page, r)
	}
	if len(reply.Next) > 0 {
		if next, err = strconv.ParseUint(string(reply.Next), 10, 64); err != nil {
			return nil, 0, fmt.Errorf("page after %d: next %s is not a sequence", after, reply.Next)
		}
	}
	if next != 0 && next <= after {
		return nil, 0, fmt.Errorf("page after %d: it does not go on (next %d)", after, next)
	}
	return page, next, nil
}

func canReadStream(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return errors.Is(err, nats.ErrNoResponders) || ok && r.why.Code == aggregate.CodeMalformedState
}

// notFound turns the log's "not found" into the refusal an engine would give.
func notFound(session string, err error) error {
	if errors.Is(err, events.ErrNotFound) {
		return refused(session, &aggregate.Error{Code: aggregate.CodeSessionNotFound, Message: "there is no session " + session})
	}
	return err
}
