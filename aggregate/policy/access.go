package policy

import (
	"slices"
	"strings"
)

// Permission types: what a call does to its resource
// (docs/permissions.md#types).
const (
	Read               = "read"
	WriteFile          = "write_file"
	ExecuteCommand     = "execute_command"
	GitWrite           = "git_write"
	HTTPRequest        = "http_request"
	DeleteOperation    = "delete_operation"
	TerminalSession    = "terminal_session"
	BrowserInteraction = "browser_interaction"
)

// Risks, in rising order.
const (
	RiskLow    = "low"
	RiskMedium = "medium"
	RiskHigh   = "high"
)

var risks = []string{RiskLow, RiskMedium, RiskHigh}

// shape is how the resource of a type is to be read.
type shape int

const (
	shapeText shape = iota // no inner structure
	shapePath
	shapeCommand
	shapeURL
)

type typeInfo struct {
	risk  string
	shape shape
}

var types = map[string]typeInfo{
	Read:               {RiskLow, shapeText},
	WriteFile:          {RiskMedium, shapePath},
	ExecuteCommand:     {RiskHigh, shapeCommand},
	GitWrite:           {RiskHigh, shapeCommand},
	HTTPRequest:        {RiskMedium, shapeURL},
	DeleteOperation:    {RiskHigh, shapePath},
	TerminalSession:    {RiskHigh, shapeCommand},
	BrowserInteraction: {RiskHigh, shapeText},
}

// Types lists the permission types in the order of docs/permissions.md.
func Types() []string {
	return []string{Read, WriteFile, ExecuteCommand, GitWrite, HTTPRequest, DeleteOperation, TerminalSession, BrowserInteraction}
}

// KnownType says whether rules can be written for the permission type.
func KnownType(permissionType string) bool { _, ok := types[permissionType]; return ok }

// TypeRisk is the risk of a permission type. A type that is not known counts
// as high.
func TypeRisk(permissionType string) string {
	if t, ok := types[permissionType]; ok {
		return t.risk
	}
	return RiskHigh
}

func shapeOf(permissionType string) shape { return types[permissionType].shape }

// RiskLess says that risk a is lower than b; what is not a risk counts as high.
func RiskLess(a, b string) bool { return riskRank(a) < riskRank(b) }

func riskRank(r string) int {
	if i := riskAt(r); i >= 0 {
		return i
	}
	return len(risks) - 1
}

func riskAt(r string) int { return slices.Index(risks, r) }

// Request is what a call wants to do, as its runner states it.
type Request struct {
	Tool     string // name of the tool
	Type     string // permission type
	Resource string // path, command, URL, or the name of an action
	Risk     string // as stated; "" means that of the type
	// Mutating says that the call may change the world: see Mutates.
	Mutating bool
	// Workspace of the session, "" if it has none.
	Workspace string
}

// EffectiveRisk is the risk that the policy judges by. A call that may change
// the world is never below the risk of its type; one that only reads has the
// risk that its tool states, and that of its type where none is stated
// (docs/permissions.md#risks).
func (r Request) EffectiveRisk() string {
	base := TypeRisk(r.Type)
	switch {
	case r.Risk == "":
		return base
	case r.Mutating && RiskLess(r.Risk, base):
		return base
	}
	return risks[riskRank(r.Risk)]
}

// planAllowed are the tools that may run in plan mode, in lower case.
var planAllowed = map[string]bool{
	"read": true, "getfileinfo": true, "glob": true, "grep": true, "webfetch": true, "websearch": true,
	"viewimage": true, "workspace": true, "bashoutput": true, "sleep": true, "update_goal": true, "notify": true,
	"enterplanmode": true, "exitplanmode": true, "request_permissions": true,
	"session_note": true, "session_history": true, "session_inspector": true, "recall": true, "memory_note": true,
	"archive_context": true, "compact_context": true,
}

// PlanAllowed says whether a tool of this name may run in plan mode. Case does
// not count; a tool that is not listed counts as mutating.
func PlanAllowed(tool string) bool { return planAllowed[strings.ToLower(tool)] }

// changing are the tools, in lower case, and the permission types that change
// the world by their kind, whatever is stated of a single call.
var (
	changingTools = map[string]bool{"write": true, "edit": true, "multiedit": true, "notebookedit": true}
	changingTypes = map[string]bool{WriteFile: true, GitWrite: true, DeleteOperation: true, TerminalSession: true, BrowserInteraction: true}
)

// Mutates says whether a call may change the world: always where its tool or
// its permission type ("" if not known) is one that does; else as its runner
// stated, and where it stated nothing, by the name of the tool.
func Mutates(tool, permissionType string, stated *bool) bool {
	switch {
	case changingTools[strings.ToLower(tool)], changingTypes[permissionType]:
		return true
	case stated != nil:
		return *stated
	}
	return !PlanAllowed(tool)
}

// ReadsOnly says whether a call may run where nothing may change the world: in
// plan mode, and in a read-only session. That takes more than a statement: its
// tool must be one that PlanAllowed knows (docs/permissions.md#plan).
func ReadsOnly(tool, permissionType string, stated *bool) bool {
	return PlanAllowed(tool) && !Mutates(tool, permissionType, stated)
}
