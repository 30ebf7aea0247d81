package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"culm/aggregate"
	"culm/internal/show"
)

// commandFlags are the flags of every command that changes something.
type commandFlags struct {
	ID     string  `placeholder:"ID" help:"Command id: the same id with the same command has its effect once, however often it is sent."`
	Expect *uint64 `placeholder:"SEQ" help:"Refuse unless the session still ends with this sequence."`
}

// data is the body of a command; empty values are left out.
type data map[string]any

// some is d without its zero values and empty maps.
func some(d data) data {
	maps.DeleteFunc(d, func(_ string, value any) bool {
		v := reflect.ValueOf(value)
		return !v.IsValid() || v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0
	})
	return d
}

// do sends a command and waits for its outcome, at most the timeout. It sends
// again, under the same id, while no engine can say what became of it. A
// refusal is an error; the reply is set either way.
func (a *app) do(ctx context.Context, b backend, session, name string, body data, flags commandFlags) (aggregate.Reply, error) {
	opts := sendOptions{ID: flags.ID, Expected: flags.Expect}
	if opts.ID == "" {
		opts.ID = ulid.Make().String()
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		r, err := b.Do(ctx, session, name, body, opts)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return r, err
		case err != nil:
			return r, &noAnswer{id: opts.ID, err: err}
		case r.OK:
			return r, nil
		case r.Error == nil || r.Error.Code != aggregate.CodeUnavailable:
			return r, refused(session, r.Error)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return r, refused(session, r.Error)
		}
	}
}

// tell prints the outcome of a command: the reply itself with --json, else the
// text.
func (a *app) tell(r aggregate.Reply, text string, args ...any) error {
	if a.JSON {
		return a.printJSON(r)
	}
	text = fmt.Sprintf(text, args...)
	if r.Duplicate {
		text += " (already, by the first command with this id)"
	}
	_, err := fmt.Fprintln(a.out, a.wrapped(text))
	return err
}

// wrapped breaks lines between words where a terminal would break them within.
func (a *app) wrapped(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = show.Wrap(lines[i], a.width, len("culm: "))
	}
	return strings.Join(lines, "\n")
}

// command connects, sends one command and tells its outcome with text, or with
// already if the effect held before.
func (a *app) command(ctx context.Context, session, name string, body data, flags commandFlags, text, already string) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := a.do(ctx, b, session, name, body, flags)
	if err != nil {
		return a.failed(r, err)
	}
	if r.Event == nil {
		text = already
	}
	return a.tell(r, "%s", text)
}

// failed prints a refusing reply with --json; the error goes on to report.
func (a *app) failed(r aggregate.Reply, err error) error {
	if !a.JSON || r.Error == nil {
		return err
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		r.printed = true
	}
	return errors.Join(a.printJSON(r), err)
}

// tellRefusal prints a refusal with --json, as a reply that refuses a command
// looks, unless the reply itself has been printed.
func (a *app) tellRefusal(err error) {
	if r, ok := errors.AsType[*refusal](err); ok && a.JSON && !r.printed {
		_ = a.printJSON(data{"ok": false, "session": r.session, "error": r.why}) // the words follow all the same
	}
}

// printJSON prints one document on one line, safe for a terminal.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return a.printRaw(b)
}

// printRaw prints a JSON document: byte for byte to a file or pipe, with
// unprintable characters escaped to a terminal.
func (a *app) printRaw(doc []byte) error {
	if a.terminal {
		doc = show.CleanJSON(doc)
	}
	_, err := fmt.Fprintf(a.out, "%s\n", doc)
	return err
}

// style is how events look here.
func (a *app) style() show.Style {
	return show.Style{Color: a.terminal && !a.NoColor, Place: a.place}
}
