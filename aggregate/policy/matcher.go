package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"culm/events"
)

// Matcher kinds (docs/permissions.md#matchers).
const (
	ExactResource = "exact_resource"
	PathSubtree   = "path_subtree"
	CommandPrefix = "command_prefix"
	HTTPOrigin    = "http_origin"
	ToolAction    = "tool_action"
)

// Kinds lists the matcher kinds in the order of docs/permissions.md.
func Kinds() []string {
	return []string{ExactResource, PathSubtree, CommandPrefix, HTTPOrigin, ToolAction}
}

// Bounds of what rules and calls may hold, in bytes.
const (
	MaxPattern  = 4096
	MaxResource = 64 << 10
)

// FieldError names the field that is wrong and what is wrong with it.
type FieldError struct {
	Field   string // as in the command or the configuration, "matcher.pattern"
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// CheckMatcher judges a matcher for a permission type before a rule or a grant
// is made of it. The error is a *FieldError whose field is permission_type,
// matcher.kind or matcher.pattern.
func CheckMatcher(permissionType string, m events.Matcher) error {
	problem := func(field, format string, args ...any) error {
		return &FieldError{field, fmt.Sprintf(format, args...)}
	}
	switch {
	case !KnownType(permissionType):
		return problem("permission_type", "%.40q is none of %s", permissionType, strings.Join(Types(), ", "))
	case !slices.Contains(Kinds(), m.Kind):
		return problem("matcher.kind", "%.40q is none of %s", m.Kind, strings.Join(Kinds(), ", "))
	case !kindFits(m.Kind, permissionType):
		return problem("matcher.kind", "%s does not go with permission type %s", m.Kind, permissionType)
	case strings.TrimSpace(m.Pattern) == "":
		return problem("matcher.pattern", "is empty")
	case len(m.Pattern) > MaxPattern:
		return problem("matcher.pattern", "is %d bytes long, at most %d are allowed", len(m.Pattern), MaxPattern)
	case !utf8.ValidString(m.Pattern) || strings.ContainsRune(m.Pattern, 0):
		return problem("matcher.pattern", "is no plain text: it holds a NUL or broken UTF-8")
	}
	if p := patternProblem(m); p != "" {
		return problem("matcher.pattern", "%s", p)
	}
	return nil
}

// kindFits says whether a matcher of the kind can be written for the type.
func kindFits(kind, permissionType string) bool {
	switch kind {
	case PathSubtree:
		return shapeOf(permissionType) == shapePath
	case CommandPrefix:
		return shapeOf(permissionType) == shapeCommand
	case HTTPOrigin:
		return shapeOf(permissionType) == shapeURL
	}
	return true
}

func patternProblem(m events.Matcher) string {
	switch m.Kind {
	case PathSubtree:
		return checkPathPattern(m.Pattern)
	case HTTPOrigin:
		return checkOriginPattern(m.Pattern)
	case CommandPrefix:
		if _, ok := prefixWords(m.Pattern); !ok {
			return "is no plain beginning of one command: no shell operators, globs, variables or assignments"
		}
	}
	return ""
}

// Match is the narrow reading, for what allows: it says that the matcher,
// given for the request's permission type, covers the request beyond doubt.
// What CheckMatcher would refuse matches nothing.
func Match(m events.Matcher, r Request) bool {
	if CheckMatcher(r.Type, m) != nil || hardProblem(r) != "" {
		return false
	}
	switch m.Kind {
	case PathSubtree:
		return matchSubtree(m.Pattern, r.Resource)
	case CommandPrefix:
		return matchPrefix(m.Pattern, r.Resource)
	case HTTPOrigin:
		return matchOrigin(m.Pattern, r.Resource)
	case ExactResource:
		return m.Pattern == r.Resource || shapeOf(r.Type) == shapePath && samePath(m.Pattern, r.Resource)
	}
	return m.Pattern == r.Resource
}

// Touches is the wide reading, for what denies or asks: it says that the
// request may be what the matcher, given for the request's permission type,
// names. It holds wherever Match does, and for a matcher that CheckMatcher
// would refuse: a restriction that is not understood restricts.
func Touches(m events.Matcher, r Request) bool { return newSubject(r).touchedBy(m) }

// subject is a request with what is read of it once for all rules.
type subject struct {
	Request
	script  []simple // of a command
	clipped bool     // the command is nested too deep to be read whole
}

func newSubject(r Request) *subject {
	s := &subject{Request: r}
	if shapeOf(r.Type) == shapeCommand {
		s.script, s.clipped = readScript(r.Resource)
		if r.Type == GitWrite {
			s.script = withGit(s.script)
		}
	}
	return s
}

// withGit adds the program that tools for git leave out: "push -f" is
// "git push -f".
func withGit(script []simple) []simple {
	for _, c := range slices.Clone(script) {
		if c.program() != "git" && len(c.words) > 0 {
			c.words = append([]string{"git"}, c.words...)
			script = append(script, c)
		}
	}
	return script
}

func (s *subject) touchedBy(m events.Matcher) bool {
	if m.Pattern == s.Resource || CheckMatcher(s.Type, m) != nil {
		return true
	}
	switch m.Kind {
	case PathSubtree:
		return touchesSubtree(m.Pattern, s.Request)
	case CommandPrefix:
		return s.clipped || touchesPrefix(m.Pattern, s.script)
	case HTTPOrigin:
		return touchesOrigin(m.Pattern, s.Resource)
	case ExactResource:
		return s.touchesExact(m.Pattern)
	}
	return false
}

func (s *subject) touchesExact(pattern string) bool {
	switch shapeOf(s.Type) {
	case shapePath:
		want, where := resolve(pattern, s.Workspace)
		got, at := resolve(s.Resource, s.Workspace)
		return where == known && at == known && strings.EqualFold(want, got)
	case shapeCommand:
		return touchesCommand(pattern, s.script)
	}
	return strings.TrimSpace(pattern) == strings.TrimSpace(s.Resource)
}
