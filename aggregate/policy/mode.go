package policy

import (
	"fmt"
	"slices"
	"strings"

	"culm/events"
)

// Permission modes (docs/permissions.md#modes). A session requests one of the
// first three; an installation configures any of the first five or
// bypass_permissions. In effect is any of the first six.
const (
	ModeDefault           = "default"
	ModeAuto              = "auto"
	ModeBypass            = "bypass"
	ModePlan              = "plan"
	ModeAcceptEdits       = "accept_edits"
	ModeDontAsk           = "dont_ask"
	ModeBypassPermissions = "bypass_permissions"
)

// RequestedModes are the modes that a session may request.
func RequestedModes() []string { return []string{ModeDefault, ModeBypass, ModeAuto} }

// ConfiguredModes are the modes that an installation may configure.
func ConfiguredModes() []string {
	return []string{ModePlan, ModeDefault, ModeAcceptEdits, ModeDontAsk, ModeBypassPermissions, ModeAuto}
}

// CheckMode judges a configured mode, "" being default. `bypass` is accepted
// for bypass_permissions.
func CheckMode(mode string) error {
	if mode == "" || mode == ModeBypass || slices.Contains(ConfiguredModes(), mode) {
		return nil
	}
	return &FieldError{"mode", fmt.Sprintf("%.40q is none of %s", mode, strings.Join(ConfiguredModes(), ", "))}
}

// EffectiveMode is the mode in force (docs/permissions.md#effective-mode): the
// plan overlay wins, then what the session requests, then what is configured.
// A text that is no mode counts as default.
func EffectiveMode(configured, requested string, plan bool) string {
	switch {
	case plan || configured == ModePlan:
		return ModePlan
	case requested == ModeBypass || requested == ModeAuto:
		return requested
	case configured == ModeBypassPermissions || configured == ModeBypass:
		return ModeBypass
	case configured == ModeAcceptEdits || configured == ModeDontAsk || configured == ModeAuto:
		return configured
	}
	return ModeDefault
}

// Flags are what the effective mode means for a call. AutoApprove and
// PlanReadOnly may both be set: then reading calls run unasked and all others
// are denied.
func Flags(configured, requested string, plan bool) events.ReplayFlags {
	mode := EffectiveMode(configured, requested, plan)
	return events.ReplayFlags{
		Bypass:       mode == ModeBypass,
		AutoApprove:  requested == ModeAuto || mode == ModeAuto,
		PlanReadOnly: mode == ModePlan,
	}
}
