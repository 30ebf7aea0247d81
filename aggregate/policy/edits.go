package policy

import (
	"path"
	"strings"
)

// editFlags are the commands that mode accept_edits lets pass, each with the
// short flags that may stand with it. A flag that takes a value or names a
// place is not among them.
var editFlags = map[string]string{
	"mkdir": "pv",
	"touch": "acm",
	"cp":    "rRapvnif",
	"mv":    "finv",
}

// isSafeEdit says that the command only makes, copies or moves files of the
// workspace: one simple command of editFlags, every operand plain text that
// names a place below the workspace (docs/permissions.md#accept-edits).
func isSafeEdit(command, workspace string) bool {
	words, ok := splitWords(command)
	if !ok || !words[0].literal {
		return false
	}
	flags, ok := editFlags[words[0].text]
	if !ok {
		return false
	}
	operands := 0
	for _, w := range words[1:] {
		switch {
		case !w.literal || w.text == "":
			return false
		case strings.HasPrefix(w.text, "-"):
			if len(w.text) < 2 || strings.Trim(w.text[1:], flags) != "" {
				return false
			}
		case !isBelow(w.text, workspace):
			return false
		default:
			operands++
		}
	}
	return operands > 0
}

// isBelow says that the path is strictly below the workspace; a relative path
// must not climb, and is taken as standing in the workspace.
func isBelow(p, workspace string) bool {
	if !strings.HasPrefix(p, "/") {
		return isPathText(p) && path.Clean(p) != "." && !climbs(p)
	}
	ws, ok := cleanPath(strings.TrimSpace(workspace))
	if !ok {
		return false
	}
	c, ok := cleanPath(p)
	return ok && c != ws && inside(c, ws)
}
