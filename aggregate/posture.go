package aggregate

import "strings"

// Session kinds.
const (
	kindRoot  = "root"
	kindChild = "child"
)

// Permission modes. The first three can be requested by a session; all but
// plan can be configured for the installation.
const (
	modeDefault           = "default"
	modeBypass            = "bypass"
	modeAuto              = "auto"
	modePlan              = "plan"
	modeAcceptEdits       = "accept_edits"
	modeDontAsk           = "dont_ask"
	modeBypassPermissions = "bypass_permissions"
)

func checkMode(mode string) *Rejection {
	return oneOf("mode", mode, modeDefault, modeBypass, modeAuto)
}

// effectiveMode is the table of docs/rules.md#effective-mode: the plan overlay
// wins, then the session's own wish, then the configured mode.
func effectiveMode(configured, requested string, plan bool) string {
	switch {
	case plan || configured == modePlan:
		return modePlan
	case requested == modeBypass || requested == modeAuto:
		return requested
	case configured == modeBypassPermissions:
		return modeBypass
	case configured == "":
		return modeDefault
	}
	return configured
}

// planAllowed are the tools that may run in plan mode; names compare without
// case, anything else counts as mutating.
var planAllowed = map[string]bool{
	"read": true, "getfileinfo": true, "glob": true, "grep": true, "webfetch": true, "websearch": true,
	"viewimage": true, "workspace": true, "bashoutput": true, "sleep": true, "update_goal": true, "notify": true,
	"enterplanmode": true, "exitplanmode": true, "request_permissions": true,
	"session_note": true, "session_history": true, "session_inspector": true, "recall": true, "memory_note": true,
	"archive_context": true, "compact_context": true,
}

// PlanAllowed says whether a tool of this name may run in plan mode.
func PlanAllowed(tool string) bool { return planAllowed[strings.ToLower(tool)] }
