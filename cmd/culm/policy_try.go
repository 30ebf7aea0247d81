package main

import (
	"cmp"
	"context"
	"fmt"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/internal/config"
	"culm/internal/show"
	"culm/tool"
)

type policyTest struct {
	Tool      string      `arg:"" help:"Name of the tool."`
	Resource  string      `arg:"" optional:"" help:"What it is done to: a path, a command, a URL."`
	Arguments string      `placeholder:"JSON" help:"Arguments of the call, from which the resource is read as the built-in runner reads it."`
	Type      string      `placeholder:"TYPE" help:"Permission type; by default what the name of the tool says."`
	Risk      string      `enum:",low,medium,high" default:"" placeholder:"RISK" help:"Risk as the tool states it, low, medium or high; by default that of the type."`
	ReadsOnly bool        `help:"The call changes nothing, whatever the name of the tool says."`
	Session   sessionName `placeholder:"NAME" help:"As in this session: its modes, workspace and remembered decisions."`
	Mode      string      `enum:",default,bypass,auto" default:"" placeholder:"MODE" help:"As if the session had this mode: default, bypass or auto."`
	Plan      bool        `help:"As if the session were in plan mode."`
	ReadOnly  bool        `help:"As if the session were read-only."`
	NoHuman   bool        `name:"no-human-approver" help:"As if nobody were there to be asked."`
	Workspace string      `placeholder:"DIR" help:"As if this were the session's workspace."`
	Config    string      `placeholder:"FILE" type:"existingfile" help:"Configuration file of the engine, whose permissions count, too."`
}

// Help is shown by culm policy test --help.
func (policyTest) Help() string {
	return `Judges a call as an engine would, with the rules that are stored, and tells what it would say and why. Nothing is stored or run, and no engine is needed, except for --session.`
}

func (c *policyTest) Run(ctx context.Context, a *app) error {
	var permissions policy.Config
	if c.Config != "" {
		f, err := config.Load(c.Config)
		if err != nil {
			return usage(err, nil)
		}
		permissions = f.Permissions
	}
	if err := c.check(); err != nil {
		return err
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	in := policy.Input{Now: a.now(), CallID: "test"}
	if in.Policy, err = a.folded(ctx, b, permissions); err != nil {
		return err
	}
	if c.Session != "" {
		if err := a.asInSession(ctx, b, string(c.Session), &in); err != nil {
			return err
		}
	}
	c.fill(&in)
	if !policy.KnownType(in.Request.Type) {
		return usage(fmt.Errorf("--type %s is no permission type; see culm policy add --help", show.Clean(in.Request.Type)), nil)
	}
	return a.tellVerdict(in)
}

// check asks for the resource of a call of known tools: without one the name of
// the tool would be judged in its place.
func (c *policyTest) check() error {
	if c.Resource != "" || c.Arguments != "" || tool.Describe(c.Tool, "").Resource != c.Tool {
		return nil
	}
	return usage(fmt.Errorf("what would %s be done to? Give it behind the name (a path, a command, a URL), or the call's --arguments", show.Clip(show.Clean(c.Tool), 40)), nil)
}

// fill puts what the arguments say over what the session says.
func (c *policyTest) fill(in *policy.Input) {
	s := &in.Session
	s.RequestedMode = cmp.Or(c.Mode, s.RequestedMode, policy.ModeDefault)
	s.Plan, s.ReadOnly, s.NoHumanApprover = s.Plan || c.Plan, s.ReadOnly || c.ReadOnly, s.NoHumanApprover || c.NoHuman
	access := tool.Describe(c.Tool, c.Arguments)
	in.Request = policy.Request{
		Tool: c.Tool, Type: cmp.Or(c.Type, access.PermissionType), Resource: cmp.Or(c.Resource, access.Resource), Mutating: access.Mutating && !c.ReadsOnly,
		Risk: c.Risk, Workspace: cmp.Or(c.Workspace, in.Request.Workspace),
	}
	if c.Type == "" && c.Risk == "" {
		in.Request.Risk = access.Risk
	}
}

// asInSession takes modes, workspace and remembered decisions of a session.
func (a *app) asInSession(ctx context.Context, b backend, session string, in *policy.Input) error {
	r, err := a.read(ctx, b, session, aggregate.ReadQuery{})
	if err != nil {
		return err
	}
	v, err := viewOf(r)
	if err != nil {
		return err
	}
	s := v.Session
	in.Session = policy.Session{RequestedMode: s.Mode, Plan: s.Plan != nil, ReadOnly: s.ReadOnly, NoHumanApprover: s.NoHumanApprover}
	in.Request.Workspace = s.Workspace
	for _, g := range v.Grants {
		grant := policy.Grant{ID: g.ID, Deny: g.Effect == policy.Deny, Tool: g.Tool, Type: g.PermissionType, Matcher: g.Matcher}
		if g.ExpiresAt != nil {
			grant.ExpiresAt = *g.ExpiresAt
		}
		in.Grants = append(in.Grants, grant)
	}
	return nil
}

// tested is the JSON of a test.
type tested struct {
	Decision       string           `json:"decision"` // allow, deny or ask
	Step           string           `json:"step"`     // of the evaluation order
	RuleID         string           `json:"rule_id,omitzero"`
	Reason         string           `json:"reason_code,omitzero"`
	Why            string           `json:"why"`
	PermissionType string           `json:"permission_type"`
	Resource       string           `json:"resource"`
	Risk           string           `json:"risk"`
	Mode           string           `json:"effective_mode"`
	PolicyRevision uint64           `json:"policy_revision"`
	Decisions      []string         `json:"allowed_decisions,omitzero"`
	Matchers       []events.Matcher `json:"suggested_matchers,omitzero"`
}

func (a *app) tellVerdict(in policy.Input) error {
	v := policy.Evaluate(in)
	if a.JSON {
		return a.printJSON(tested{
			v.Decision, v.Step, v.RuleID, v.ReasonCode, v.Why, in.Request.Type, in.Request.Resource, v.Risk, v.EffectiveMode, v.PolicyRevision,
			v.AllowedDecisions, v.Matchers,
		})
	}
	fmt.Fprintln(a.out, show.Clean(v.Explain()))
	_, err := fmt.Fprintf(a.out, "step %s, %s %s, risk %s, mode %s, policy revision %d\n", v.Step, in.Request.Type, show.Clip(exact(in.Request.Resource), listValue), v.Risk, v.EffectiveMode, v.PolicyRevision)
	return err
}
