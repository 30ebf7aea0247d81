package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

// asker asks at the terminal about what waits, one item after the other, while
// the feed goes on. It decides exactly what it has shown, as an engine gives it.
type asker struct {
	app     *app
	b       backend
	session string // "" for all
	screen  *screen

	mu   sync.Mutex
	todo []string        // sessions to look at; in a list since the feed must not wait for a person
	news chan struct{}   // there are some
	seen map[string]bool // items that were asked about, by generation and occurrence
}

func newAsker(a *app, b backend, session string, s *screen) *asker {
	return &asker{app: a, b: b, session: session, screen: s, news: make(chan struct{}, 1), seen: map[string]bool{}}
}

// look has the items of a session looked at.
func (q *asker) look(session string) {
	q.mu.Lock()
	if !slices.Contains(q.todo, session) {
		q.todo = append(q.todo, session)
	}
	q.mu.Unlock()
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func (q *asker) next() (session string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) == 0 {
		return "", false
	}
	session, q.todo = q.todo[0], q.todo[1:]
	return session, true
}

// record shows an event, and looks again after one that may ask something.
func (q *asker) record(r events.Record) error {
	err := q.screen.record(r)
	if mayAsk(r.Type) {
		q.look(r.Session)
	}
	return err
}

// mayAsk is whether something may wait for a person since an event of the type:
// a call was parked, or a run ended with calls whose outcome is not known.
func mayAsk(eventType string) bool {
	switch eventType {
	case "run.interrupted", "run.finished", "run.refused":
		return true
	}
	return strings.HasSuffix(eventType, "parked")
}

// errInputEnded: nobody is there any more to answer.
var errInputEnded = errors.New("input ended")

// secondLook is when all sessions are looked at once more: views may not have
// had yet what was asked just before this program began to listen.
const secondLook = 2 * time.Second

// run asks until ctx or the input ends.
func (q *asker) run(ctx context.Context) error {
	if err := q.lookAround(ctx); err != nil {
		return err
	}
	again := time.After(secondLook)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
			if err := q.lookAround(ctx); err != nil {
				return err
			}
		case <-q.news:
		}
		for session, ok := q.next(); ok; session, ok = q.next() {
			if err := q.askAll(ctx, session); err != nil {
				return err
			}
		}
	}
}

// lookAround finds the sessions in which something waits.
func (q *asker) lookAround(ctx context.Context) error {
	items, err := q.app.allWaiting(ctx, q.b, q.session)
	for _, it := range items {
		q.look(it.Session)
	}
	return err
}

// askAll asks about everything that waits in a session and was not asked about
// before. A session that is gone has nothing.
func (q *asker) askAll(ctx context.Context, session string) error {
	items, err := q.app.waitingIn(ctx, q.b, session)
	if r, ok := errors.AsType[*refusal](err); ok && r.why.Code == aggregate.CodeSessionNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		if key := it.Generation + " " + it.MessageID; !q.seen[key] {
			q.seen[key] = true
			if err := q.one(ctx, it); err != nil {
				return err
			}
		}
	}
	return nil
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
	for {
		fmt.Fprint(a.out, q.prompt(it))
		word, ok := a.line(ctx)
		if !ok {
			return errInputEnded
		}
		err := q.act(ctx, it, word)
		switch r, _ := errors.AsType[*refusal](err); {
		case errors.Is(err, errNoKey):
			fmt.Fprintln(a.out, "that is none of the keys")
		case r != nil && r.why.Code == aggregate.CodeOptionNotAllowed:
			fmt.Fprintf(a.out, "%s\n", show.Clean(err.Error()))
		case err != nil:
			text, hint := a.explain(err)
			fmt.Fprintf(a.out, "%s\n", text+when(hint != "", "\n  "+hint))
			return nil
		default:
			return nil
		}
	}
}

// errNoKey: the person has typed something that stands for nothing.
var errNoKey = errors.New("no key")

var keys = []struct{ key, decision, text string }{
	{"a", allowOnce, "[a]llow once"}, {"s", allowSession, "allow for this [s]ession"},
	{"d", denyOnce, "[d]eny"}, {"x", denySession, "deny for this session [x]"},
}

func (q *asker) prompt(it *item) string {
	if it.parts() != nil {
		return "one answer to all of them, Enter to skip: "
	}
	if it.Kind == kindQuestion {
		return "answer, Enter to skip: "
	}
	var parts []string
	for _, k := range keys {
		if slices.Contains(it.Decisions, k.decision) {
			parts = append(parts, k.text)
		}
	}
	return strings.Join(append(parts, "Enter to skip"), ", ") + ": "
}

// act does what a line says; errNoKey if it says nothing that is asked.
func (q *asker) act(ctx context.Context, it *item, word string) error {
	a := q.app
	if word == "" || strings.EqualFold(word, "skip") {
		fmt.Fprintln(a.out, "skipped; it goes on waiting: "+strings.Join(it.commands(), " or "))
		return nil
	}
	if it.Kind == kindQuestion {
		return a.answerWith(ctx, q.b, it, word, "answered: "+show.Quote(word, 80), false, commandFlags{})
	}
	for _, k := range keys {
		if strings.EqualFold(word, k.key) && slices.Contains(it.Decisions, k.decision) {
			v := verdict{decision: k.decision, matcher: matchExact}
			r, err := a.do(ctx, q.b, it.Session, "approval.decide", v.body(it, 0), commandFlags{})
			if err != nil {
				return a.tooLate(ctx, q.b, it, err)
			}
			return a.decided(ctx, q.b, it, r, v.told(it), false)
		}
	}
	return errNoKey
}
