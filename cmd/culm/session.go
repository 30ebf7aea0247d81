package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"culm/aggregate"
	"culm/internal/show"
)

type sessionCreate struct {
	Name      sessionName       `arg:"" optional:"" help:"Name of the session; a new one is made up if left out."`
	Title     string            `placeholder:"TEXT" help:"What it is about."`
	Model     string            `placeholder:"PROVIDER/MODEL" help:"Model that answers; by default the engine's."`
	Reasoning string            `placeholder:"EFFORT" help:"Reasoning effort."`
	Mode      string            `enum:",default,bypass,auto" default:"" placeholder:"MODE" help:"Permission mode: default asks a person by policy, bypass asks only about what is dangerous, auto asks nobody."`
	Workspace string            `placeholder:"DIR" help:"Folder the session works in."`
	ReadOnly  bool              `help:"Never change anything."`
	Enforce   bool              `name:"enforce-policy" help:"Have the engine refuse every call that the policy has not allowed, whoever runs it."`
	NoHuman   bool              `name:"no-human-approver" help:"Nobody is there to be asked: what would ask fails instead."`
	Metadata  map[string]string `placeholder:"KEY=VALUE" help:"Notes of yours, kept with the session."`
	commandFlags
}

func (c *sessionCreate) Run(ctx context.Context, a *app) error {
	if c.Name == "" {
		c.Name = sessionName("s-" + strings.ToLower(ulid.Make().String()[10:20]))
	}
	body := some(data{"title": c.Title, "reasoning_effort": c.Reasoning, "mode": c.Mode, "workspace": c.Workspace, "read_only": c.ReadOnly, "enforce_policy": c.Enforce, "no_human_approver": c.NoHuman, "metadata": c.Metadata})
	if c.Model != "" {
		provider, model, ok := strings.Cut(c.Model, "/")
		if !ok || provider == "" || model == "" {
			return usage(fmt.Errorf("--model %s: PROVIDER/MODEL is wanted", show.Clean(c.Model)), nil)
		}
		body["model"] = data{"provider": provider, "model": model}
	}
	name := string(c.Name)
	text := fmt.Sprintf("session %s created", name)
	if a.terminal {
		text += fmt.Sprintf("\nnext: culm run %[1]s \"…\", or culm loop start %[1]s \"…\" --iterations 3", name)
	}
	return a.command(ctx, name, "session.create", body, c.commandFlags, text, text)
}

type sessionShow struct {
	Session sessionName `arg:"" help:"Name of the session."`
}

func (c *sessionShow) Run(ctx context.Context, a *app) error {
	return (&state{Session: c.Session}).Run(ctx, a)
}

type sessionClose struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Reason  string      `placeholder:"TEXT" help:"Why; it is stored."`
	commandFlags
}

func (c *sessionClose) Run(ctx context.Context, a *app) error {
	name := string(c.Session)
	text := fmt.Sprintf("session %s closed", name)
	return a.command(ctx, name, "session.close", some(data{"reason": c.Reason}), c.commandFlags, text, text)
}

type sessionDelete struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Birth   string      `placeholder:"ID" help:"Delete only this lifetime of the name, as culm session show tells it."`
	Yes     bool        `short:"y" help:"Do not ask."`
	commandFlags
}

func (c *sessionDelete) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	name := string(c.Session)
	if c.Birth == "" {
		r, err := a.read(ctx, b, name, aggregate.ReadQuery{})
		if err != nil {
			return err
		}
		c.Birth = r.Birth
		if !c.Yes {
			question := fmt.Sprintf("Delete session %s with %s for good?", name, show.Count(r.Sequence, "event"))
			if err := a.confirm(ctx, "this can not be undone", question); err != nil {
				return err
			}
		}
	}
	r, err := a.do(ctx, b, name, "session.delete", data{"birth": c.Birth}, c.commandFlags)
	if err != nil {
		return a.failed(r, err)
	}
	return a.tell(r, "session %s deleted", name)
}

// confirm asks on a terminal; anything but yes is no. Without a terminal it
// wants --yes, and says why.
func (a *app) confirm(ctx context.Context, why, question string) error {
	if !a.terminal {
		return usage(errors.New(why+": --yes is wanted"), nil)
	}
	switch strings.ToLower(a.ask(ctx, question+" [y/N] ")) {
	case "y", "yes":
		return nil
	}
	return errNothingDone
}

// ago is a time with its age for tables, "" for none.
func (a *app) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return show.Age(t, a.now())
}
