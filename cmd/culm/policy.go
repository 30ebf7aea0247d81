package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/aggregate/policy"
	"culm/events"
	"culm/internal/show"
)

// settings is the session that holds the policy of the installation.
const settings = aggregate.SettingsSession

// policyRevision is where the policy stands: the last sequence of its session,
// 0 before its first event.
func (a *app) policyRevision(ctx context.Context, b backend) (uint64, error) {
	r, err := a.read(ctx, b, settings, aggregate.ReadQuery{})
	if r, ok := errors.AsType[*refusal](err); ok && r.why.Code == aggregate.CodeSessionNotFound {
		return 0, nil
	}
	return r.Sequence, err
}

// folded is the policy: the configuration with the stored events over it. It is
// read from the stream and needs no engine.
func (a *app) folded(ctx context.Context, b backend, c policy.Config) (policy.Policy, error) {
	p, err := policy.New(c)
	if err != nil {
		return p, err
	}
	for r, err := range b.Log().Read(ctx, settings, 0, 0) {
		if errors.Is(err, events.ErrNotFound) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		e, err := events.Decode(r.Payload)
		if err != nil {
			return p, fmt.Errorf("event %d of %s: %w", r.Seq, settings, err)
		}
		p = p.Evolve(e.Data, e.Seq)
	}
	return p, nil
}

type policyList struct{}

// listedPolicy is the JSON of the list.
type listedPolicy struct {
	Mode     string        `json:"mode"`
	Revision uint64        `json:"revision"`
	Rules    []policy.Rule `json:"rules"`
}

func (policyList) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	p, err := a.folded(ctx, b, policy.Config{})
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(listedPolicy{p.Mode(), p.Revision(), append([]policy.Rule{}, p.Rules()...)})
	}
	fmt.Fprintf(a.out, "mode %s, revision %d; what the engine's configuration file says comes on top\n", p.Mode(), p.Revision())
	if len(p.Rules()) == 0 {
		_, err = fmt.Fprintln(a.out, "no rule yet; culm policy add allow|deny|always_ask TYPE KIND PATTERN adds one")
		return err
	}
	t := table{{"RULE", "EFFECT", "TYPE", "MATCHER", "PATTERN", "WHERE"}}
	for _, r := range p.Rules() {
		where := "everywhere"
		if r.Scope == policy.ScopeWorkspace {
			where = exact(r.Workspace)
		}
		t = append(t, []string{r.RuleID, r.Effect, r.PermissionType, r.Matcher.Kind, show.Clip(exact(r.Matcher.Pattern), 100), where})
	}
	return t.print(a.out, 0)
}

type policyAdd struct {
	Effect    string `arg:"" enum:"allow,deny,always_ask" help:"allow, deny or always_ask."`
	Type      string `arg:"" help:"What is done: read, write_file, execute_command, git_write, http_request, delete_operation, terminal_session or browser_interaction."`
	Kind      string `arg:"" help:"How the pattern is read: exact_resource, path_subtree, command_prefix, http_origin or tool_action."`
	Pattern   string `arg:"" help:"What it is done to."`
	Workspace string `placeholder:"DIR" help:"Only in sessions of this workspace; by default everywhere."`
	RuleID    string `name:"rule-id" placeholder:"ID" help:"Name of the rule; by default one is made up."`
	Yes       bool   `short:"y" help:"Do not ask before something is allowed; wanted where nobody can be asked."`
	commandFlags
}

func (c *policyAdd) Run(ctx context.Context, a *app) error {
	rule := policy.Rule{
		RuleID: c.RuleID, Effect: c.Effect, Scope: policy.ScopeGlobal, Workspace: c.Workspace, PermissionType: c.Type,
		Matcher: events.Matcher{Kind: c.Kind, Pattern: c.Pattern},
	}
	if c.Workspace != "" {
		rule.Scope = policy.ScopeWorkspace
	}
	judged := rule
	if judged.RuleID == "" {
		judged.RuleID = "to-be-made-up"
	}
	if err := policy.CheckRule(judged); err != nil {
		return usage(withKinds(err, rule), nil)
	}
	if rule.Effect == policy.EffectAllow && !c.Yes {
		if err := a.confirm(ctx, "what it allows runs unasked from then on", fmt.Sprintf("Allow %s for %s %s %s, without asking?", rule.PermissionType, strings.ReplaceAll(rule.Matcher.Kind, "_", " "), exact(rule.Matcher.Pattern), whereOf(rule))); err != nil {
			return err
		}
	}
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	body := some(data{"effect": rule.Effect, "scope": rule.Scope, "workspace": rule.Workspace, "permission_type": rule.PermissionType, "rule_id": rule.RuleID})
	body["matcher"] = data{"kind": rule.Matcher.Kind, "pattern": rule.Matcher.Pattern}
	r, err := a.do(ctx, b, settings, "policy.add_rule", body, c.commandFlags)
	if err != nil {
		return a.failed(r, err)
	}
	var out struct {
		RuleID string `json:"rule_id"`
	}
	if err := json.Unmarshal(r.Result, &out); err != nil {
		return fmt.Errorf("result of the rule: %w", err)
	}
	if r.Event == nil {
		return a.tell(r, "rule %s is there already", show.Clean(out.RuleID))
	}
	return a.tell(r, "rule %s added (policy revision %d)", show.Clean(out.RuleID), r.Sequence)
}

// withKinds adds to a matcher that does not go with the type those that do.
func withKinds(err error, r policy.Rule) error {
	f, ok := errors.AsType[*policy.FieldError](err)
	if !ok || f.Field != "matcher.kind" || !policy.KnownType(r.PermissionType) {
		return err
	}
	var fit []string
	for _, kind := range policy.Kinds() {
		err := policy.CheckMatcher(r.PermissionType, events.Matcher{Kind: kind, Pattern: "x"})
		if e, ok := errors.AsType[*policy.FieldError](err); !ok || e.Field != "matcher.kind" {
			fit = append(fit, kind)
		}
	}
	return fmt.Errorf("a rule for %s takes %s, not %s", r.PermissionType, oneOf(fit), show.Clip(show.Clean(r.Matcher.Kind), 40))
}

func whereOf(r policy.Rule) string {
	if r.Scope == policy.ScopeWorkspace {
		return "in workspace " + exact(r.Workspace)
	}
	return "everywhere"
}

type policyRemove struct {
	RuleID string `arg:"" name:"rule" help:"Id of the rule, as culm policy list tells it."`
	commandFlags
}

func (c *policyRemove) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	id := show.Clean(c.RuleID)
	r, err := a.do(ctx, b, settings, "policy.remove_rule", data{"rule_id": c.RuleID}, c.commandFlags)
	switch {
	case err != nil:
		return a.failed(r, err)
	case r.Event != nil:
		return a.tell(r, "rule %s removed", id)
	case a.JSON:
		err = a.printJSON(r)
	}
	return errors.Join(err, fmt.Errorf("there is no rule %s; culm policy list shows those of all sessions", id))
}

type policyMode struct {
	Mode string `arg:"" enum:"plan,default,accept_edits,dont_ask,bypass_permissions,auto" help:"plan, default, accept_edits, dont_ask, bypass_permissions or auto; what a session asks for itself comes first."`
	commandFlags
}

func (c *policyMode) Run(ctx context.Context, a *app) error {
	return a.command(ctx, settings, "policy.set_mode", data{"mode": c.Mode}, c.commandFlags,
		"mode of the installation set to "+c.Mode, "the mode of the installation is "+c.Mode+" already")
}
