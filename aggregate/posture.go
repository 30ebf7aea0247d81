package aggregate

import "culm/aggregate/policy"

// Session kinds.
const (
	kindRoot  = "root"
	kindChild = "child"
)

// modeDefault is the permission mode of a session that asks for none.
const modeDefault = policy.ModeDefault

// checkMode checks a mode that a session may ask for.
func checkMode(mode string) *Rejection { return oneOf("mode", mode, policy.RequestedModes()...) }
