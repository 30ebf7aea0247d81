package aggregate

import (
	"time"

	"culm/aggregate/policy"
	"culm/events"
)

// grantView is a decision remembered for the session; it holds until its end.
type grantView struct {
	ID             string         `json:"id"`     // generation of the decision
	Effect         string         `json:"effect"` // allow or deny
	Tool           string         `json:"tool"`
	PermissionType string         `json:"permission_type"`
	Matcher        events.Matcher `json:"matcher"`
	ExpiresAt      *time.Time     `json:"expires_at,omitzero"`
}

// policyView is the policy that the _settings session adds up to.
type policyView struct {
	Mode     string        `json:"mode"` // "default" also where none was ever set
	Revision uint64        `json:"revision"`
	Rules    []policy.Rule `json:"rules"`
}

func (s *State) grantViews() []grantView {
	out := []grantView{}
	for _, g := range s.Grants {
		v := grantView{ID: g.ID, Effect: policy.Allow, Tool: g.Tool, PermissionType: g.Type, Matcher: g.Matcher}
		if g.Deny {
			v.Effect = policy.Deny
		}
		if at := g.ExpiresAt; !at.IsZero() {
			v.ExpiresAt = &at
		}
		out = append(out, v)
	}
	return out
}

func (s *State) policyView() *policyView {
	if s.Policy.Revision() == 0 {
		return nil
	}
	rules := s.Policy.Rules()
	if rules == nil {
		rules = []policy.Rule{}
	}
	return &policyView{Mode: s.Policy.Mode(), Revision: s.Policy.Revision(), Rules: rules}
}
