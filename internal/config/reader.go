package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the nodes of one file. It goes on after an error, so that all of
// them are told at once.
type reader struct {
	file  string
	lines map[string]int // by path of a key: where it stands
	errs  Errors
}

func (r *reader) failf(line int, key, format string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.file, Line: line, Key: key, Problem: fmt.Sprintf(format, args...)})
}

// failAtf tells an error about a key that was read before; where the key itself
// is missing the line is that of what it is missing in.
func (r *reader) failAtf(key, format string, args ...any) {
	for at := key; ; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if line, ok := r.lines[at]; ok || at == "" {
			r.failf(line, key, format, args...)
			return
		}
	}
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// fields are the keys of a mapping and what reads each.
type fields map[string]func(path string, n ast.Node)

// mapping reads a mapping; a key without a value is as if it were left out.
func (r *reader) mapping(path string, n ast.Node, known fields) {
	values, ok := entries(n)
	if !ok {
		r.failf(line(n), path, "is %s, not a mapping", kind(n))
		return
	}
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.failf(line(v.Key), path, "holds a key that is no text")
			continue
		}
		at := join(path, key.Value)
		read, ok := known[key.Value]
		switch {
		case !ok:
			r.failf(line(v.Key), at, "is not known here%s", advice(key.Value, known))
		case seen[key.Value]:
			r.failf(line(v.Key), at, "stands here twice")
		default:
			seen[key.Value], r.lines[at] = true, line(v.Key)
			if !isNull(v.Value) {
				read(at, v.Value)
			}
		}
	}
}

// entries are the pairs of a mapping; a mapping of one may be its pair alone.
func entries(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func isNull(n ast.Node) bool { _, ok := n.(*ast.NullNode); return ok || n == nil }

func join(path, key string) string {
	if len(key) > 64 {
		key = key[:64] + "…"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// advice helps with a key that is not known.
func advice(key string, known fields) string {
	if secretName(key) {
		return ": secrets do not belong in this file; name the environment variable that holds the key in a provider's api_key_env"
	}
	return "; known are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// list reads a list of at most limit entries.
func (r *reader) list(path string, n ast.Node, limit int, each func(path string, n ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	switch {
	case !ok:
		r.failf(line(n), path, "is %s, not a list", kind(n))
		return
	case len(s.Values) > limit:
		r.failf(line(n), path, "holds %d entries, at most %d are allowed", len(s.Values), limit)
		return
	}
	for i, v := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.lines[at] = max(line(v), r.lines[path])
		if isNull(v) {
			r.failf(r.lines[at], at, "is empty")
			continue
		}
		each(at, v)
	}
}

// kind says what a node is, for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	}
	return "empty"
}

// The readers of single values return a function for fields.

func (r *reader) text(into *string, limit int) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		s, ok := textOf(n)
		switch {
		case !ok && (kind(n) == "a number" || kind(n) == "true or false"):
			r.failf(line(n), path, "is %s, not a text: put it in quotes", kind(n))
		case !ok:
			r.failf(line(n), path, "is %s, not a text", kind(n))
		case len(s) > limit:
			r.failf(line(n), path, "is %d bytes long, at most %d are allowed", len(s), limit)
		default:
			*into = s
		}
	}
}

func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return n.Value.Value, true
	}
	return "", false
}

func (r *reader) flag(into *bool) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			r.failf(line(n), path, "is %s, not true or false", kind(n))
			return
		}
		*into = b.Value
	}
}

func (r *reader) number(into *int, least, most int) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		i, ok := n.(*ast.IntegerNode)
		if !ok {
			r.failf(line(n), path, "is %s, not a whole number", kind(n))
			return
		}
		v, ok := i.Value.(uint64)
		if !ok || v < uint64(least) || v > uint64(most) {
			r.failf(line(n), path, "is out of bounds: %d to %d are allowed", least, most)
			return
		}
		*into = int(v)
	}
}

func (r *reader) duration(into *time.Duration, least, most time.Duration) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		s, ok := textOf(n)
		d, err := time.ParseDuration(s)
		switch {
		case !ok || err != nil:
			r.failf(line(n), path, "is no duration: write it with its unit, like 15s or 250ms")
		case d < least || d > most:
			r.failf(line(n), path, "is %s, allowed are %s to %s", d, least, most)
		default:
			*into = d
		}
	}
}

// texts reads a list of texts.
func (r *reader) texts(into *[]string, limit, size int) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		r.list(path, n, limit, func(at string, n ast.Node) {
			var s string
			r.text(&s, size)(at, n)
			*into = append(*into, s)
		})
	}
}
