package main

import (
	"context"
	"fmt"
	"strings"

	"culm/internal/show"
	"culm/projection"
)

type search struct {
	Words   []string    `arg:"" name:"text" help:"Words that must all be in a message; the last may be the beginning of one."`
	Session sessionName `placeholder:"NAME" help:"Only in this session."`
	limits
}

// Help is shown by culm search --help.
func (search) Help() string {
	return `Looks at what people, models and tools wrote, the newest first. Needs the query service of an engine or of cmd/projector.`
}

// Run finds messages: where each is, and the words around what was found.
func (c *search) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	text := strings.Join(c.Words, " ")
	if strings.TrimSpace(text) == "" {
		return usage(fmt.Errorf("nothing to look for"), nil)
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var cut bool
	found := all(c.Limit, &cut, func(l projection.List) (projection.Page[projection.SearchItem], error) {
		return query[projection.SearchItem](ctx, a, b, "messages.search", string(c.Session), projection.SearchQuery{Text: text, Session: string(c.Session), List: l})
	})
	none := true
	for it, err := range found {
		if err != nil {
			return err
		}
		none = false
		if a.JSON {
			err = a.printJSON(it)
		} else {
			_, err = fmt.Fprintf(a.out, "%s %d  %s, %s\n    %s\n", show.Clean(it.Session), it.Sequence, show.Clean(it.Role), a.ago(it.At), a.snippet(it.Snippet))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case a.JSON:
		return nil
	case none:
		_, err = fmt.Fprintf(a.out, "no message has %s\n", show.Quote(text, 80))
		return err
	}
	return a.more(cut)
}

// snippet is one line of a message, with what was found in bold on a terminal.
func (a *app) snippet(marked string) string {
	begin, end := "", ""
	if a.style().Color {
		begin, end = "\x1b[1m", "\x1b[0m"
	}
	var b strings.Builder
	for i, part := range strings.Split(marked, "\x02") {
		found, rest, ok := strings.Cut(part, "\x03")
		if i == 0 || !ok {
			b.WriteString(spaced(part))
			continue
		}
		b.WriteString(begin + spaced(found) + end + spaced(rest))
	}
	return strings.TrimSpace(b.String())
}

// spaced is Clean for a part of a line: a space at its edges stays.
func spaced(s string) string {
	clean := show.Clean("." + s + ".")
	return clean[1 : len(clean)-1]
}
