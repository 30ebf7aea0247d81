package main

import (
	"context"
	"errors"
	"fmt"

	"culm/aggregate"
)

type mode struct {
	Session sessionName `arg:"" help:"Name of the session."`
	Mode    string      `arg:"" enum:"default,bypass,auto,plan,exit-plan" help:"default asks a person by policy; bypass asks only about what is dangerous; auto asks nobody; plan lets nothing change the world until exit-plan."`
	Reason  string      `placeholder:"TEXT" help:"Of plan: why; it is stored."`
	commandFlags
}

func (c *mode) Run(ctx context.Context, a *app) error {
	if c.Reason != "" && c.Mode != "plan" {
		return usage(errors.New("--reason belongs to plan"), nil)
	}
	name, body := "session.set_mode", data{"mode": c.Mode}
	text, already := "permission mode set to "+c.Mode, "the permission mode is "+c.Mode+" already"
	switch c.Mode {
	case "plan":
		name, body = "session.enter_plan", some(data{"reason": c.Reason})
		text, already = "plan mode on: nothing may change the world until culm mode "+string(c.Session)+" exit-plan", "plan mode is on already"
	case "exit-plan":
		name, body = "session.exit_plan", data{}
		text, already = "plan mode off", "plan mode is off already"
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := a.do(ctx, b, string(c.Session), name, body, c.commandFlags)
	if err != nil {
		return a.failed(r, err)
	}
	if r.Event == nil {
		return a.tell(r, "%s", already)
	}
	return a.tell(r, "%s%s", text, a.effect(ctx, b, string(c.Session), c.Mode))
}

// effect says which mode holds where it is another than the one asked for.
func (a *app) effect(ctx context.Context, b backend, session, asked string) string {
	r, err := a.read(ctx, b, session, aggregate.ReadQuery{})
	if err != nil || a.JSON {
		return ""
	}
	v, err := viewOf(r)
	if err != nil || v.Session.EffectiveMode == "" || v.Session.EffectiveMode == asked {
		return ""
	}
	return fmt.Sprintf(" (in effect: %s)", v.Session.EffectiveMode)
}
