package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

type audit struct {
	Session sessionName `arg:"" optional:"" help:"Name of the session."`
	All     bool        `help:"Audit every session."`
	File    string      `placeholder:"FILE" help:"Audit JSON lines as culm log --json prints them; - is standard input."`
	Head    head        `placeholder:"SEQ:HASH" help:"Head noted down earlier: finds a log that was cut off or replaced since."`
}

// Help is shown by culm audit --help.
func (audit) Help() string {
	return `Reads what is stored, byte for byte, without an engine: the chain of hashes, every event, and the rules after each event. Kinds of findings: changed, missing, doubled, out_of_order, foreign, unknown_event, malformed, invariant, cut_off.

The last events of a log can be cut off without breaking its chain. Note the printed head down in another place and give it to a later audit with --head.

Exit status: 0 nothing found, 1 findings (or the audit could not be done), 2 bad arguments.`
}

// head is where a log ended when somebody looked.
type head struct {
	Seq  uint64
	Hash string
}

var headFormat = regexp.MustCompile(`^[1-9][0-9]{0,18}:[0-9a-f]{64}$`)

// UnmarshalText is called by the parser.
func (h *head) UnmarshalText(text []byte) error {
	if !headFormat.Match(text) {
		return errors.New("SEQ:HASH is wanted, as culm audit prints it")
	}
	seq, hash, _ := strings.Cut(string(text), ":")
	h.Hash = hash
	var err error
	h.Seq, err = strconv.ParseUint(seq, 10, 64)
	return err
}

// String spells it as --head takes it; "" for none.
func (h head) String() string {
	if h.Hash == "" {
		return ""
	}
	return fmt.Sprintf("%d:%s", h.Seq, h.Hash)
}

func (c *audit) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return usage(err, nil)
	}
	logs, done, err := c.logs(ctx, a)
	if err != nil {
		return err
	}
	defer done()
	var bad int
	for _, l := range logs {
		r, err := aggregate.Audit(l.records, aggregate.AuditOptions{Session: l.session, Head: events.Head{Seq: c.Head.Seq, Hash: c.Head.Hash}})
		if err != nil {
			return fmt.Errorf("audit %s: %w", show.Clean(l.session), notFound(l.session, err))
		}
		if len(r.Findings) > 0 {
			bad++
		}
		if err := a.tellReport(r); err != nil {
			return err
		}
	}
	return c.sum(a, len(logs), bad)
}

// check wants exactly one of session, --all and --file.
func (c *audit) check() error {
	given := 0
	for _, yes := range []bool{c.Session != "", c.All, c.File != ""} {
		if yes {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("one of SESSION, --all and --file is wanted")
	case c.All && c.Head.Seq > 0:
		return errors.New("--head belongs to one session, not to --all")
	}
	return nil
}

// auditable is one log to audit.
type auditable struct {
	session string
	records iter.Seq2[events.Record, error]
}

// logs finds what to audit; done releases it.
func (c *audit) logs(ctx context.Context, a *app) (logs []auditable, done func(), err error) {
	if c.File != "" {
		logs, err = a.readFile(c.File)
		if err == nil && c.Head.Seq > 0 && len(logs) != 1 {
			err = usage(fmt.Errorf("--head belongs to one session; the file has %d", len(logs)), nil)
		}
		return logs, func() {}, err
	}
	b, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := []string{string(c.Session)}
	if c.All {
		infos, err := b.Log().Sessions(ctx)
		if err != nil {
			b.Close()
			return nil, nil, err
		}
		names = names[:0]
		for _, i := range infos {
			names = append(names, i.Session)
		}
	}
	for _, name := range names {
		logs = append(logs, auditable{name, b.Log().Read(ctx, name, 0, 0)})
	}
	return logs, b.Close, nil
}

// tellReport prints what an audit of one session found.
func (a *app) tellReport(r aggregate.AuditReport) error {
	end := head{r.Head.Seq, r.Head.Hash}
	if a.JSON {
		return a.printJSON(report{r.Session, r.Birth, r.Events, r.First, end.String(), r.Findings})
	}
	verdict := "all fine"
	if n := len(r.Findings); n > 0 {
		verdict = show.Count(n, "finding")
	}
	fmt.Fprintf(a.out, "%s: %s, %s\n", show.Clean(r.Session), show.Count(r.Events, "event"), verdict)
	for _, f := range r.Findings {
		fmt.Fprintf(a.out, "  at %d  %-13s %s\n", f.Seq, show.Clean(f.Kind), show.Clean(f.Detail))
	}
	if end.Hash == "" {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "  head %s\n", end)
	return err
}

// report is the JSON of one audit.
type report struct {
	Session  string              `json:"session"`
	Birth    string              `json:"birth"`
	Events   uint64              `json:"events"`
	First    uint64              `json:"first"`
	Head     string              `json:"head"`
	Findings []aggregate.Finding `json:"findings"`
}

// sum tells the result of several audits and turns findings into the exit status.
func (c *audit) sum(a *app, audited, bad int) error {
	switch {
	case a.JSON:
	case audited == 0 && c.All:
		fmt.Fprintln(a.out, "no session yet, so nothing to audit; culm session create NAME makes one")
	case audited == 0:
		return errors.New("the file holds no event")
	case audited > 1:
		fmt.Fprintf(a.out, "%s audited, %d with findings\n", show.Count(audited, "session"), bad)
	}
	if bad > 0 {
		return errFindings
	}
	return nil
}
