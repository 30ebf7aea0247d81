package config

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"culm/aggregate/policy"
	"culm/aggregate/routing"
	"culm/events"
)

// Bounds of single values.
const (
	maxText = 4096
	maxPace = time.Minute
	maxGoal = 16 << 10
)

// top reads the whole file.
func (r *reader) top(f *File, root ast.Node) {
	known := r.settings(f.Settings)
	known["providers"] = func(path string, n ast.Node) {
		r.list(path, n, routing.MaxInstances, func(at string, n ast.Node) { f.Providers = append(f.Providers, r.provider(at, n)) })
		if s, ok := n.(*ast.SequenceNode); ok && len(s.Values) == 0 {
			r.failf(line(n), path, "is an empty list: leave it out, or list an instance")
		}
	}
	known["defaults"] = func(path string, n ast.Node) {
		r.mapping(path, n, fields{
			"chat": r.role(&f.Defaults.Chat), "fast": r.role(&f.Defaults.Fast),
			"background": r.role(&f.Defaults.Background), "summarization": r.role(&f.Defaults.Summarization),
		})
	}
	known["permissions"] = func(path string, n ast.Node) { r.permissions(path, n, &f.Permissions) }
	known["gold"] = func(path string, n ast.Node) { f.Gold = r.gold(path, n) }
	r.mapping("", root, known)
}

func (r *reader) provider(path string, n ast.Node) Provider {
	p := Provider{Enabled: true}
	r.mapping(path, n, fields{
		"id": r.text(&p.ID, maxText), "type": r.text(&p.Type, maxText), "enabled": r.flag(&p.Enabled), "default": r.flag(&p.Default),
		"base_url": r.text(&p.BaseURL, maxText), "api_key_env": r.text(&p.APIKeyEnv, maxText),
		"models": r.texts(&p.Models, routing.MaxModels, maxText), "reasoning_effort": r.text(&p.ReasoningEffort, maxText),
		"file": r.text(&p.File, maxText), "pace": r.duration(&p.Pace, 0, maxPace),
	})
	return p
}

func (r *reader) role(into **events.Model) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		m := new(events.Model)
		r.mapping(path, n, fields{"provider": r.text(&m.Provider, maxText), "model": r.text(&m.Model, maxText)})
		*into = m
	}
}

func (r *reader) permissions(path string, n ast.Node, c *policy.Config) {
	r.mapping(path, n, fields{
		"mode": r.text(&c.Mode, maxText), "risk_threshold": r.text(&c.RiskThreshold, maxText), "checks_off": r.flag(&c.ChecksOff),
		"session_lifetime":  r.duration(&c.SessionLifetime, time.Second, 365*24*time.Hour),
		"question_lifetime": r.duration(&c.QuestionLifetime, 0, 365*24*time.Hour),
		"protected_paths":   r.texts(&c.ProtectedPaths, policy.MaxRules, policy.MaxPattern),
		"always_ask": func(path string, n ast.Node) {
			r.list(path, n, policy.MaxRules, func(at string, n ast.Node) { c.AlwaysAsk = append(c.AlwaysAsk, r.askRule(at, n)) })
		},
		"hard_dangerous": func(path string, n ast.Node) {
			r.list(path, n, policy.MaxRules, func(at string, n ast.Node) {
				c.HardDangerous = append(c.HardDangerous, r.danger(at, n, len(c.HardDangerous)))
			})
		},
	})
}

func (r *reader) askRule(path string, n ast.Node) policy.AskRule {
	var a policy.AskRule
	r.mapping(path, n, fields{
		"permission_type": r.text(&a.PermissionType, maxText),
		"matcher": func(path string, n ast.Node) {
			r.mapping(path, n, fields{"kind": r.text(&a.Matcher.Kind, maxText), "pattern": r.text(&a.Matcher.Pattern, policy.MaxPattern)})
		},
	})
	return a
}

// danger reads a pattern alone, or one with an id and what it is for. Without
// an id it is named by its place in the list.
func (r *reader) danger(path string, n ast.Node, index int) policy.DangerPattern {
	var d policy.DangerPattern
	if _, ok := textOf(n); ok {
		r.text(&d.Pattern, policy.MaxPattern)(path, n)
	} else {
		r.mapping(path, n, fields{
			"id": r.text(&d.ID, maxText), "permission_type": r.text(&d.PermissionType, maxText),
			"pattern": r.text(&d.Pattern, policy.MaxPattern), "why": r.text(&d.Why, maxText),
		})
	}
	if d.ID == "" {
		d.ID = fmt.Sprintf("hard_dangerous:%d", index)
	}
	return d
}
