package tool

import "strings"

// Permission types of calls; risk follows from them.
const (
	Read      = "read"
	WriteFile = "write_file"
	Execute   = "execute_command"
	HTTP      = "http_request"
)

// reading are the tools that change nothing in the world and may run in plan
// mode, in lower case. What is not listed mutates. The rules hold the same list.
var reading = map[string]bool{
	"read": true, "getfileinfo": true, "glob": true, "grep": true, "webfetch": true, "websearch": true,
	"viewimage": true, "workspace": true, "bashoutput": true, "sleep": true, "update_goal": true, "notify": true,
	"enterplanmode": true, "exitplanmode": true, "request_permissions": true,
	"session_note": true, "session_history": true, "session_inspector": true, "recall": true, "memory_note": true,
	"archive_context": true, "compact_context": true,
}

// Mutates says whether a tool changes the world, by its name alone: case does
// not count, and a tool that is not known counts as mutating.
func Mutates(name string) bool { return !reading[strings.ToLower(name)] }

// AccessByName describes a call of which no more than the name is known. The
// resource is the name of the tool.
func AccessByName(name string) Access {
	a := Access{Mutating: Mutates(name), PermissionType: Execute, Resource: name, Risk: "high"}
	switch strings.ToLower(name) {
	case "write", "edit", "multiedit", "notebookedit":
		a.PermissionType, a.Risk = WriteFile, "medium"
	case "webfetch", "websearch":
		a.PermissionType, a.Risk = HTTP, "medium"
	default:
		if !a.Mutating {
			a.PermissionType, a.Risk = Read, "low"
		}
	}
	return a
}
