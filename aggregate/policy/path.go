package policy

import (
	"path"
	"strings"
	"unicode/utf8"
)

// maxPath bounds a path as common file systems do.
const maxPath = 4096

// cleanPath is the lexical normal form of an absolute path: no empty, "." or
// ".." elements, no trailing slash. It returns false for a relative path, one
// with control characters or broken UTF-8, and one that is too long.
//
// Lexical means that no link is followed: "/a/link/../b" is "/a/b" here. Tools
// that may meet symbolic links resolve them before they state their resource.
func cleanPath(p string) (string, bool) {
	if !strings.HasPrefix(p, "/") || !isPathText(p) {
		return "", false
	}
	return path.Clean(p), true
}

func isPathText(p string) bool {
	return p != "" && len(p) <= maxPath && utf8.ValidString(p) && !strings.ContainsFunc(p, isControl)
}

// checkPathPattern says what is wrong with the pattern of a path_subtree, or "".
func checkPathPattern(p string) string {
	clean, ok := cleanPath(p)
	switch {
	case !ok:
		return "is no absolute path in plain text"
	case p != clean && p != clean+"/":
		return "is not clean; write it as " + clip(clean)
	}
	return ""
}

// inside says that the clean path p is root or lies below it.
func inside(p, root string) bool {
	return p == root || root == "/" || strings.HasPrefix(p, root+"/")
}

// matchSubtree is the narrow reading of path_subtree: absolute on both sides,
// case counts.
func matchSubtree(pattern, resource string) bool {
	root, ok := cleanPath(pattern)
	if !ok {
		return false
	}
	p, ok := cleanPath(resource)
	return ok && inside(p, root)
}

// samePath says that both are absolute and clean to the same path.
func samePath(a, b string) bool {
	x, ok := cleanPath(a)
	y, also := cleanPath(b)
	return ok && also && x == y
}

// touchesSubtree is the wide reading of path_subtree: case does not count, a
// relative path is taken from the workspace, and deleting a folder touches all
// that lies in it. A relative path that climbs out of a workspace nobody knows
// could be anywhere, and so it is there.
func touchesSubtree(pattern string, r Request) bool {
	root, ok := cleanPath(strings.ToLower(pattern))
	if !ok {
		return true
	}
	p, where := resolve(r.Resource, r.Workspace)
	switch where {
	case nowhere:
		return false
	case anywhere:
		return true
	}
	p = strings.ToLower(p)
	return inside(p, root) || r.Type == DeleteOperation && inside(root, p)
}

// place is what resolve found out about a path.
type place int

const (
	nowhere  place = iota // a relative path below a workspace that is not known
	known                 // an absolute path
	anywhere              // it could be any path
)

// resolve makes a path absolute, from the workspace if it is relative.
func resolve(resource, workspace string) (string, place) {
	p := strings.TrimSpace(resource)
	if !isPathText(p) {
		return "", anywhere
	}
	if strings.HasPrefix(p, "/") {
		return path.Clean(p), known
	}
	if strings.HasPrefix(p, "~") { // a home folder, whose is not known here
		return "", anywhere
	}
	if ws, ok := cleanPath(strings.TrimSpace(workspace)); ok {
		return path.Join(ws, p), known
	}
	if climbs(p) {
		return "", anywhere
	}
	return "", nowhere
}

// climbs says that a relative path leaves the folder it starts in.
func climbs(p string) bool {
	c := path.Clean(p)
	return c == ".." || strings.HasPrefix(c, "../")
}

// sameWorkspace says that both sides have a workspace and it is the same one.
func sameWorkspace(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	return a != "" && b != "" && (a == b || samePath(a, b))
}
