package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"culm/events"
	"culm/internal/show"
)

// asker asks at the terminal about what waits, one item after the other, while
// the feed goes on. It decides exactly what it has shown.
type asker struct {
	app     *app
	b       backend
	session string // "" for all
	screen  *screen

	news chan struct{}  // something may wait
	seen map[string]int // items that were asked about, by generation or occurrence
}

func newAsker(a *app, b backend, session string, s *screen) *asker {
	q := &asker{app: a, b: b, session: session, screen: s, news: make(chan struct{}, 1), seen: map[string]int{}}
	q.look()
	return q
}

// look has the next item looked for.
func (q *asker) look() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// record shows an event, and looks again after one that may ask something.
func (q *asker) record(r events.Record) error {
	err := q.screen.record(r)
	if strings.HasSuffix(r.Type, "parked") || r.Type == "run.interrupted" {
		q.look()
	}
	return err
}

// errInputEnded: nobody is there any more to answer.
var errInputEnded = errors.New("input ended")

// run asks until ctx or the input ends.
func (q *asker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.news:
		}
		items, err := q.app.allWaiting(ctx, q.b, q.session)
		if err != nil {
			return err
		}
		for i := range items {
			it := &items[i]
			if key := it.Generation + " " + it.MessageID; q.seen[key] == 0 {
				q.seen[key]++
				if err := q.one(ctx, it); err != nil {
					return err
				}
			}
		}
	}
}

// one shows an item and does what the person says. What is refused is told;
// the asking goes on.
func (q *asker) one(ctx context.Context, it *item) error {
	a := q.app
	if err := a.complete(ctx, q.b, it); err != nil {
		fmt.Fprintf(a.errOut, "culm: %s\n", show.Clean(err.Error()))
		return nil
	}
	q.screen.hold()
	defer q.screen.release()
	fmt.Fprint(a.out, "\n", it.block(a, false))
	fmt.Fprint(a.out, q.prompt(it))
	word, ok := a.line(ctx)
	if !ok {
		return errInputEnded
	}
	if err := q.act(ctx, it, word); err != nil {
		text, hint := a.explain(err)
		fmt.Fprintf(a.out, "%s\n", text+when(hint != "", "\n  "+hint))
	}
	return nil
}

var keys = []struct{ key, decision, text string }{
	{"a", allowOnce, "[a]llow once"}, {"s", allowSession, "allow for this [s]ession"},
	{"d", denyOnce, "[d]eny"}, {"x", denySession, "deny for this session [x]"},
}

func (q *asker) prompt(it *item) string {
	if it.Kind == kindQuestion {
		return "answer, or nothing to skip: "
	}
	var parts []string
	for _, k := range keys {
		if slices.Contains(it.Decisions, k.decision) {
			parts = append(parts, k.text)
		}
	}
	return strings.Join(append(parts, "skip"), ", ") + ": "
}

func (q *asker) act(ctx context.Context, it *item, word string) error {
	a := q.app
	if word == "" || strings.EqualFold(word, "skip") {
		fmt.Fprintln(a.out, "skipped; it goes on waiting")
		return nil
	}
	if it.Kind == kindQuestion {
		return a.answerWith(ctx, q.b, it, word, "answered: "+show.Quote(word, 80), false, commandFlags{})
	}
	for _, k := range keys {
		if strings.EqualFold(word, k.key) && slices.Contains(it.Decisions, k.decision) {
			v := verdict{decision: k.decision, matcher: "exact_resource"}
			r, err := a.do(ctx, q.b, it.Session, "approval.decide", v.body(it, 0), commandFlags{})
			if err != nil {
				return a.tooLate(ctx, q.b, it, err)
			}
			return a.decided(ctx, q.b, it, r, v.told(it), false)
		}
	}
	fmt.Fprintln(a.out, "that is none of the keys; it goes on waiting: "+strings.Join(it.commands(), " or "))
	return nil
}
