package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/projection"
)

// errNoViews: what only views can tell is asked, and nobody has them.
var errNoViews = errors.New("no query service answers: start the engine with its projector, or cmd/projector")

// most is what one page of a query holds at most.
const most = 500

// query asks a projector within the timeout, about one session unless it is "".
// It returns errNoViews where none answers, or none can for now; see noViews.
func query[I any](ctx context.Context, a *app, b backend, name, session string, request any) (page projection.Page[I], err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return page, fmt.Errorf("query %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	view, verb, _ := strings.Cut(name, ".")
	reply, err := b.Query(ctx, view, verb, body)
	if errors.Is(err, nats.ErrNoResponders) {
		return page, a.noViews(ctx, b)
	}
	if err != nil {
		return page, err
	}
	var failed struct {
		OK    bool             `json:"ok"`
		Error *aggregate.Error `json:"error"`
	}
	if err := json.Unmarshal(reply, &failed); err != nil {
		return page, fmt.Errorf("answer to %s: %w", name, err)
	}
	switch {
	case failed.OK:
	case failed.Error != nil && (failed.Error.Code == projection.CodeUnavailable || failed.Error.Code == projection.CodeUnknownCommand):
		return page, fmt.Errorf("%w (%s)", errNoViews, failed.Error.Message)
	default:
		return page, refused(session, failed.Error)
	}
	if err := json.Unmarshal(reply, &page); err != nil {
		return page, fmt.Errorf("answer to %s: %w", name, err)
	}
	return page, nil
}

// all yields the items of a query page by page, up to limit of them; 0 is no
// limit. ask gets how many the next page shall hold, and its cursor. cut is set
// if the limit left some out.
func all[I any](limit int, cut *bool, ask func(projection.List) (projection.Page[I], error)) iter.Seq2[I, error] {
	return func(yield func(I, error) bool) {
		left, cursor := limit, ""
		for {
			size := most
			if limit > 0 {
				size = min(left, most)
			}
			page, err := ask(projection.List{Limit: &size, Cursor: cursor})
			if err != nil {
				yield(*new(I), err)
				return
			}
			for _, it := range page.Items {
				if !yield(it, nil) {
					return
				}
			}
			left -= len(page.Items)
			cursor = page.Next
			if cursor == "" || limit > 0 && left <= 0 {
				*cut = cursor != ""
				return
			}
		}
	}
}

// noViews is errNoViews, and nats.ErrNoResponders with it where no engine answers
// either: then that is what is told.
func (a *app) noViews(ctx context.Context, b backend) error {
	if _, err := a.read(ctx, b, settings, aggregate.ReadQuery{}); errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%w (%w)", errNoViews, err)
	}
	return errNoViews
}

// noEngine says that no engine answers.
func noEngine(err error) bool { return errors.Is(err, nats.ErrNoResponders) }

// withoutViews says that views are missing, so that the streams must do.
func withoutViews(err error) bool { return errors.Is(err, errNoViews) }

// limits is how many of a list to show.
type limits struct {
	Limit int `default:"50" placeholder:"N" help:"How many to show, 0 for all (${default})."`
}

// check refuses what is no number of lines.
func (l limits) check() error {
	if l.Limit < 0 {
		return usage(fmt.Errorf("--limit takes 0 or more, not %d", l.Limit), nil)
	}
	return nil
}

// more tells that there is more than what was shown.
func (a *app) more(cut bool) error {
	if !cut || a.JSON {
		return nil
	}
	_, err := fmt.Fprintln(a.out, "and more; --limit 0 shows all")
	return err
}
