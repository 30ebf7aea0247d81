package aggregate

import (
	"culm/aggregate/policy"
	"culm/events"
)

// SettingsSession is the session whose events are the installation's policy.
// It is there from its first command on.
const SettingsSession = "_settings"

// PolicySetMode is policy.set_mode.
type PolicySetMode struct {
	Mode string `json:"mode"`
}

func (c PolicySetMode) check() *Rejection {
	if err := policy.CheckMode(c.Mode); err != nil {
		return reject(CodeInvalidCommand, "%v", err)
	}
	return need("mode", c.Mode)
}

// PolicyAddRule is policy.add_rule.
type PolicyAddRule struct {
	RuleID         string         `json:"rule_id"` // minted if empty
	Effect         string         `json:"effect"`
	Scope          string         `json:"scope"`
	Workspace      string         `json:"workspace"`
	PermissionType string         `json:"permission_type"`
	Matcher        events.Matcher `json:"matcher"`
}

func (c PolicyAddRule) check() *Rejection {
	r := c.rule()
	if r.RuleID == "" {
		r.RuleID = "to-be-minted"
	}
	if err := policy.CheckRule(r); err != nil {
		return reject(CodeInvalidCommand, "%v", err)
	}
	return nil
}

func (c PolicyAddRule) rule() events.PolicyRuleAdded {
	return events.PolicyRuleAdded{
		RuleID: c.RuleID, Effect: c.Effect, Scope: c.Scope, Workspace: c.Workspace, PermissionType: c.PermissionType, Matcher: c.Matcher,
	}
}

// PolicyRemoveRule is policy.remove_rule.
type PolicyRemoveRule struct {
	RuleID string `json:"rule_id"`
}

func (c PolicyRemoveRule) check() *Rejection { return need("rule_id", c.RuleID) }

// policyCommand are the commands of the settings session.
type policyCommand interface{ ofPolicy() }

func (PolicySetMode) ofPolicy()    {}
func (PolicyAddRule) ofPolicy()    {}
func (PolicyRemoveRule) ofPolicy() {}

// decidePolicy judges a change of the installation's policy. Whatever holds
// already gets no event.
func decidePolicy(s *State, c Command, env Env) (Decision, *Rejection) {
	switch c := c.(type) {
	case PolicySetMode:
		if s.Policy.Mode() == c.Mode {
			return nothing(nil)
		}
		return appendEvent(events.PolicyModeChanged{Mode: c.Mode})
	case PolicyAddRule:
		r := c.rule()
		if r.RuleID == "" {
			r.RuleID = env.mint("rule", 0)
		}
		if err := s.Policy.CheckRule(r); err != nil {
			return refuse(reject(CodePolicyConflict, "%v", err))
		}
		if _, there := s.Policy.Rule(r.RuleID); there {
			return nothing(ruleResult{r.RuleID})
		}
		return appendEvent(r)
	case PolicyRemoveRule:
		if _, there := s.Policy.Rule(c.RuleID); !there {
			return nothing(nil)
		}
		return appendEvent(events.PolicyRuleRemoved{RuleID: c.RuleID})
	}
	return refuse(reject(CodeUnknownCommand, "the rules know no %T", c))
}

// ruleResult is the result of policy.add_rule.
type ruleResult struct {
	RuleID string `json:"rule_id"`
}
