package policy

import (
	"slices"
	"strings"
)

// removers are the programs that take away or replace whatever they are given,
// a folder with all that lies in it included.
var removers = map[string]bool{
	"rm": true, "rmdir": true, "mv": true, "shred": true, "unlink": true, "chmod": true, "chown": true, "truncate": true,
	"find": true, "rsync": true, "dd": true, "tee": true, "cp": true, "ln": true, "install": true, "tar": true, "unzip": true,
}

// protected says that the request writes to, deletes or, in a command, names
// one of the protected paths, or reads a private one. Only what is certain counts
// here, since nobody can lift this denial: paths that depend on what is not known
// do not.
func (s *subject) protected(paths, private []string) (string, bool) {
	for i, p := range slices.Concat(private, paths) {
		root, ok := cleanPath(strings.ToLower(p))
		reads := i < len(private) && s.Type == Read && s.hits(s.Resource, root, false)
		if ok && (reads || s.reaches(root)) {
			return p, true
		}
	}
	return "", false
}

// reaches says that the request gets at the clean lower-case path root.
func (s *subject) reaches(root string) bool {
	switch shapeOf(s.Type) {
	case shapePath:
		return s.hits(s.Resource, root, s.Type == DeleteOperation)
	case shapeCommand:
		return slices.ContainsFunc(s.script, func(c simple) bool { return s.commandReaches(c, root) })
	}
	return false
}

func (s *subject) commandReaches(c simple, root string) bool {
	if slices.ContainsFunc(c.targets, func(t string) bool { return s.hits(t, root, false) }) {
		return true
	}
	removes := removers[c.program()]
	return slices.ContainsFunc(c.words, func(w string) bool {
		if _, value, ok := strings.Cut(w, "="); ok { // --dir=/x, of=/x
			w = value
		}
		// A plain word is most often no path: `npm run data`.
		return (removes || strings.Contains(w, "/")) && !strings.HasPrefix(w, "-") && s.hits(strings.TrimRight(w, "*"), root, removes)
	})
}

// hits says that p is root or lies below it; with around, also that root lies
// below p.
func (s *subject) hits(p, root string, around bool) bool {
	c, where := resolve(p, s.Workspace)
	if where != known {
		return false
	}
	c = strings.ToLower(c)
	return inside(c, root) || around && inside(root, c)
}
