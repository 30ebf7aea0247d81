package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/internal/show"
)

// agree shows the item and asks, where a person looks on and has not said --yes.
// A rule for everything needs a word of its own.
func (a *app) agree(ctx context.Context, it *item, v *verdict) error {
	if a.terminal && !a.JSON && !v.yes {
		fmt.Fprint(a.errOut, it.block(a, false))
	}
	if v.decision == allowGlobal && !v.confirmed {
		if !a.terminal {
			return usage(errors.New("a rule for every session of this installation needs --confirm-global"), nil)
		}
		if a.ask(ctx, fmt.Sprintf("Allow %s everywhere, in every session, from now on? Type global: ", v.scope(it))) != "global" {
			return errNothingDone
		}
		v.confirmed = true
		return nil
	}
	if !a.terminal || a.JSON || v.yes {
		return nil
	}
	question := "Run exactly this, once?"
	switch {
	case !v.allows():
		question = "Deny it?"
	case it.Kind == kindUnknown:
		question = "It may have happened already. Run exactly this again, once?"
	case v.decision != allowOnce:
		question = fmt.Sprintf("Run this, and from now on %s?", v.scope(it))
	}
	switch strings.ToLower(a.ask(ctx, question+" [y/N] ")) {
	case "y", "yes":
		return nil
	}
	return errNothingDone
}

var errNothingDone = errors.New("nothing was done")

// scope tells what a remembered decision covers.
func (v *verdict) scope(it *item) string {
	m := v.remembers(it)
	if m == nil {
		return show.Clean(v.matcher)
	}
	return fmt.Sprintf("%s for %s %s", show.Clean(it.Request.PermissionType), strings.ReplaceAll(show.Clean(m.Kind), "_", " "), show.Clip(exact(m.Pattern), listValue))
}

// ask reads one line of a person; "" at the end of the input.
func (a *app) ask(ctx context.Context, question string) string {
	fmt.Fprint(a.errOut, question)
	text, _ := a.line(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(a.errOut)
	}
	return text
}

// line reads one line of standard input; ok is false at its end and when ctx
// ends before.
func (a *app) line(ctx context.Context) (text string, ok bool) {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.in)
	}
	read := make(chan struct{})
	var line string
	var err error
	go func() { // nothing ends a read but its input
		defer close(read)
		line, err = a.lines.ReadString('\n')
	}()
	select {
	case <-read:
		return strings.TrimSpace(line), err == nil || line != ""
	case <-ctx.Done():
		return "", false
	}
}
