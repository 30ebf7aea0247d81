package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"culm/aggregate/policy"
	"culm/events"
)

// Digest is the hex SHA-256 of the canonical spelling: the same for two files
// that mean the same, another one as soon as a decision may differ. Order of
// keys and providers, comments, quotes, and defaults spelled out or not make no
// difference. The names of environment variables are part of it, their values
// are not.
func (r Rules) Digest() string {
	sum := sha256.Sum256(r.canonical())
	return hex.EncodeToString(sum[:])
}

// The canonical spelling has names of its own, so that renaming a field in the
// program leaves the digests of stored events true. A field that is added
// changes them, and version says so, unless it is left out at its default.
type canonicalRules struct {
	Version     int                  `json:"culm_rules"`
	Providers   []canonicalProvider  `json:"providers"`
	Defaults    map[string]any       `json:"defaults"`
	Permissions canonicalPermissions `json:"permissions"`
	Gold        json.RawMessage      `json:"gold"`
}

type canonicalProvider struct {
	ID              string   `json:"id"`
	Type            string   `json:"type"`
	Enabled         bool     `json:"enabled"`
	Default         bool     `json:"default"`
	Models          []string `json:"models"`
	ReasoningEffort string   `json:"reasoning_effort"`
	BaseURL         string   `json:"base_url"`
	APIKeyEnv       string   `json:"api_key_env"`
	File            string   `json:"file"`
	Pace            string   `json:"pace"`
}

type canonicalPermissions struct {
	Mode            string            `json:"mode"`
	RiskThreshold   string            `json:"risk_threshold"`
	ChecksOff       bool              `json:"checks_off"`
	AlwaysAsk       []canonicalAsk    `json:"always_ask"`
	HardDangerous   []canonicalDanger `json:"hard_dangerous"`
	ProtectedPaths  []string          `json:"protected_paths"`
	SessionLifetime string            `json:"session_lifetime"`
	// Left out where items wait for ever, so that digests from before this field stay true.
	QuestionLifetime string `json:"question_lifetime,omitempty"`
}

type canonicalAsk struct {
	PermissionType string         `json:"permission_type"`
	Matcher        events.Matcher `json:"matcher"`
}

type canonicalDanger struct {
	ID             string `json:"id"`
	PermissionType string `json:"permission_type"`
	Pattern        string `json:"pattern"`
	Why            string `json:"why"`
}

func (r Rules) canonical() []byte {
	c := canonicalRules{Version: 1, Defaults: map[string]any{}, Permissions: canonicalPolicy(r.Permissions), Gold: r.Gold}
	for _, p := range r.Providers {
		c.Providers = append(c.Providers, canonicalProvider{
			p.ID, p.Type, p.Enabled, p.Default, p.Models, p.ReasoningEffort, p.BaseURL, p.APIKeyEnv, p.File, p.Pace.String(),
		})
	}
	slices.SortFunc(c.Providers, func(a, b canonicalProvider) int { return cmp.Compare(a.ID, b.ID) })
	for role, ref := range map[string]*events.Model{
		"chat": r.Defaults.Chat, "fast": r.Defaults.Fast, "background": r.Defaults.Background, "summarization": r.Defaults.Summarization,
	} {
		if ref != nil {
			c.Defaults[role] = *ref
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic("config: rules that were read cannot be spelled: " + err.Error())
	}
	return text
}

func canonicalPolicy(p policy.Config) canonicalPermissions {
	c := canonicalPermissions{
		Mode: cmp.Or(p.Mode, policy.ModeDefault), RiskThreshold: cmp.Or(p.RiskThreshold, policy.RiskLow), ChecksOff: p.ChecksOff,
		ProtectedPaths: p.ProtectedPaths, SessionLifetime: cmp.Or(p.SessionLifetime, policy.DefaultSessionLifetime).Round(time.Nanosecond).String(),
	}
	if p.QuestionLifetime > 0 {
		c.QuestionLifetime = p.QuestionLifetime.String()
	}
	if c.Mode == policy.ModeBypass {
		c.Mode = policy.ModeBypassPermissions
	}
	for _, a := range p.AlwaysAsk {
		c.AlwaysAsk = append(c.AlwaysAsk, canonicalAsk{a.PermissionType, a.Matcher})
	}
	for _, d := range p.HardDangerous {
		c.HardDangerous = append(c.HardDangerous, canonicalDanger{d.ID, d.PermissionType, d.Pattern, d.Why})
	}
	return c
}
