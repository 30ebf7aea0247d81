package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

// Kinds of what waits for a person.
const (
	kindApproval = "approval" // may the call run?
	kindQuestion = "question" // the answer is the call's result
	kindUnknown  = "unknown"  // it was started, and how it ended is not known
)

// item is one thing that waits for a person, and its JSON.
type item struct {
	Session         string                    `json:"session"`
	ToolCallID      string                    `json:"tool_call_id"`
	MessageID       string                    `json:"message_id"`
	Kind            string                    `json:"kind"`
	Tool            string                    `json:"tool"`
	Generation      string                    `json:"generation,omitzero"`
	Since           time.Time                 `json:"since,omitzero"`
	Sequence        uint64                    `json:"sequence"`  // of the event since which it waits
	Arguments       string                    `json:"arguments"` // the first of them, if they are long
	ArgumentsBytes  int                       `json:"arguments_bytes"`
	ArgumentsDigest string                    `json:"arguments_digest"`
	Question        events.Question           `json:"question"`
	Request         *events.PermissionRequest `json:"request,omitzero"`
	Decisions       []string                  `json:"allowed_decisions,omitzero"`
}

// waitingIn reads what waits in a session, in the order in which it was asked.
func (a *app) waitingIn(ctx context.Context, b backend, session string) ([]item, error) {
	r, err := a.read(ctx, b, session, aggregate.ReadQuery{})
	if err != nil {
		return nil, err
	}
	v, err := viewOf(r)
	if err != nil {
		return nil, err
	}
	items := make([]item, len(v.Pending))
	for i, p := range v.Pending {
		it := item{
			Session: session, ToolCallID: p.ToolCallID, MessageID: p.MessageID, Kind: p.Kind, Tool: p.Name, Generation: p.Generation,
			Sequence: p.Sequence, Arguments: p.Arguments, ArgumentsBytes: p.ArgumentsBytes, ArgumentsDigest: p.ArgumentsDigest,
			Question: p.Question, Request: p.Request,
		}
		it.decisions()
		if p.ParkedAt != nil {
			it.Since = *p.ParkedAt
		} else if e, err := a.eventAt(ctx, b, session, p.Sequence); err == nil {
			it.Since = e.Time
		}
		items[i] = it
	}
	return items, nil
}

// decisions sets what may be decided about the item.
func (it *item) decisions() {
	switch {
	case it.Request != nil:
		it.Decisions = it.Request.AllowedDecisions
	case it.Kind == kindUnknown:
		it.Decisions = []string{allowOnce, denyOnce}
	}
}

// eventAt reads one stored event.
func (a *app) eventAt(ctx context.Context, b backend, session string, seq uint64) (events.Event, error) {
	if seq == 0 {
		return events.Event{}, events.ErrNotFound
	}
	for r, err := range a.history(ctx, b, session, seq-1, seq) {
		if err != nil {
			return events.Event{}, err
		}
		return events.Decode(r.Payload)
	}
	return events.Event{}, events.ErrNotFound
}

// choose finds the item that a person means: the one of the call, or the only
// one. The call may be named by the id of its result, too.
func choose(items []item, session, call string) (*item, error) {
	if call == "" && len(items) == 1 {
		return &items[0], nil
	}
	for i := range items {
		if call != "" && (items[i].ToolCallID == call || items[i].MessageID == call) {
			return &items[i], nil
		}
	}
	switch {
	case len(items) == 0:
		return nil, errNothingWaits
	case call == "":
		return nil, usage(fmt.Errorf("%d items wait in %s (culm pending %s shows them); name one: %s", len(items), session, session, named(items)), nil)
	}
	return nil, refused(session, &aggregate.Error{
		Code: aggregate.CodePendingQuestionMismatch, Message: fmt.Sprintf("no call %s waits; %s", show.Clip(show.Clean(call), 80), others(len(items))),
	})
}

// namesShown bounds the items that an error names.
const namesShown = 10

// named lists items with their tools.
func named(items []item) string {
	var names []string
	for i := range items {
		if i == namesShown {
			names = append(names, "…")
			break
		}
		names = append(names, items[i].name()+" ("+show.Clip(show.Clean(items[i].Tool), 40)+")")
	}
	return strings.Join(names, ", ")
}

func others(n int) string {
	if n == 1 {
		return "another does"
	}
	return "others do"
}

var errNothingWaits = errors.New("nothing waits")

// find reads what waits and finds the item that is meant, whole and checked:
// what is shown of it is what will run. Where it does not wait any more, the
// error says what became of it.
func (a *app) find(ctx context.Context, b backend, session, call string) (*item, error) {
	items, err := a.waitingIn(ctx, b, session)
	if err != nil {
		return nil, err
	}
	it, err := choose(items, session, call)
	if errors.Is(err, errNothingWaits) {
		return nil, a.gone(ctx, b, session, call)
	}
	if err != nil {
		return nil, err
	}
	return it, a.complete(ctx, b, it)
}

// complete makes sure that the arguments are all there and are those of the
// digest.
func (a *app) complete(ctx context.Context, b backend, it *item) error {
	if len(it.Arguments) < it.ArgumentsBytes {
		if err := a.fetchArguments(ctx, b, it); err != nil {
			return err
		}
	}
	if sum := sha256.Sum256([]byte(it.Arguments)); hex.EncodeToString(sum[:]) != it.ArgumentsDigest {
		return fmt.Errorf("the arguments of call %s are not those of its digest; culm audit %s looks for the damage", it.name(), it.Session)
	}
	return nil
}

// fetchArguments reads arguments that are too long for a list of what waits.
func (a *app) fetchArguments(ctx context.Context, b backend, it *item) error {
	q := aggregate.ReadQuery{Transcript: true}
	for {
		r, err := a.read(ctx, b, it.Session, q)
		if err != nil {
			return err
		}
		v, err := viewOf(r)
		if err != nil {
			return err
		}
		for _, m := range v.Messages { // the newest call of the id is the one that waits
			for _, c := range m.ToolCalls {
				if c.ID == it.ToolCallID && c.Name == it.Tool && len(c.Arguments) == it.ArgumentsBytes {
					it.Arguments = c.Arguments
				}
			}
		}
		if len(r.Next) == 0 {
			return nil
		}
		if err := json.Unmarshal(r.Next, &q.AfterMessage); err != nil {
			return fmt.Errorf("next page %s: %w", r.Next, err)
		}
	}
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$`)

// name is how the call is named on a command line: by its id, or, where that
// is not plain, by the id of its result.
func (it *item) name() string {
	if plainID.MatchString(it.ToolCallID) {
		return it.ToolCallID
	}
	return show.Clean(it.MessageID)
}
