package policy

import (
	"path"
	"strings"

	"culm/events"
)

// subcommanded are programs whose first word of arguments says what they do.
var subcommanded = map[string]bool{
	"git": true, "go": true, "cargo": true, "npm": true, "pnpm": true, "yarn": true, "make": true, "docker": true, "podman": true,
	"kubectl": true, "helm": true, "gh": true, "pip": true, "uv": true, "poetry": true, "mvn": true, "gradle": true, "dotnet": true,
	"brew": true, "apt": true, "terraform": true, "systemctl": true, "just": true, "bazel": true, "nats": true, "bundle": true,
}

// unsuggested are programs of which no prefix is suggested: with other
// arguments they do anything at all. A person may still write such a rule.
func unsuggested(program string) bool {
	return wrappers[program] || shells[program] || interpreters[strings.TrimRight(program, "0123456789.")] || fetchers[program] || removers[program] ||
		program == "eval" || program == "source" || program == "." || program == "su" || program == "ssh" || program == "awk" ||
		program == "sed" || program == "kill" || program == "npx" || program == "vim" || program == "ed"
}

// SuggestMatchers are the matchers that a person may choose from when a
// decision on the request is to be remembered: the exact resource first, then
// wider ones. Each covers the request and has the id by which a decision names
// it. None is suggested where no rule could be written for the request.
func SuggestMatchers(r Request) []events.Matcher {
	var out []events.Matcher
	add := func(id, kind, pattern string) {
		m := events.Matcher{ID: id, Kind: kind, Pattern: pattern}
		for _, o := range out {
			if o.Kind == kind && o.Pattern == pattern {
				return
			}
		}
		if Match(m, r) {
			out = append(out, m)
		}
	}
	add(ExactResource, ExactResource, r.Resource)
	switch shapeOf(r.Type) {
	case shapePath:
		suggestPaths(r, add)
	case shapeCommand:
		if p := suggestPrefix(r.Resource); p != "" {
			add(CommandPrefix, CommandPrefix, p)
		}
	case shapeURL:
		if o, ok := writtenOrigin(r.Resource); ok {
			add(HTTPOrigin, HTTPOrigin, o)
		}
	case shapeText:
		add(ToolAction, ToolAction, r.Resource)
	}
	return out
}

// suggestPaths suggests the folder of the file, and for writing the whole
// workspace. Never the root or a folder right below it.
func suggestPaths(r Request, add func(id, kind, pattern string)) {
	p, ok := cleanPath(r.Resource)
	if !ok {
		return
	}
	if dir := path.Dir(p); strings.Count(dir, "/") > 1 {
		add(PathSubtree, PathSubtree, dir)
	}
	if ws, ok := cleanPath(strings.TrimSpace(r.Workspace)); ok && r.Type == WriteFile && strings.Count(ws, "/") > 1 {
		add("path_subtree:workspace", PathSubtree, ws)
	}
}

// suggestPrefix is the program, with its subcommand if it has such; "" where
// that would let too much pass.
func suggestPrefix(command string) string {
	words, ok := SplitCommand(command)
	if !ok || unsuggested(path.Base(words[0])) || strings.ContainsAny(words[0], " \t'\"") {
		return ""
	}
	if !subcommanded[words[0]] {
		return words[0]
	}
	if len(words) < 2 || strings.Trim(words[1], "abcdefghijklmnopqrstuvwxyz-") != "" || words[1][:1] == "-" {
		return ""
	}
	return words[0] + " " + words[1]
}

// writtenOrigin is the origin of a URL as people write it.
func writtenOrigin(raw string) (string, bool) {
	_, rest, ok := parseOrigin(raw)
	return strings.ToLower(strings.TrimSuffix(raw, rest)), ok
}
