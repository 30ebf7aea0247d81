package policy

import (
	"path"
	"strings"
)

// simple is one command of a script as the wide reading sees it.
type simple struct {
	words []string
	// fetched says that what a program loaded from the network reaches this
	// command: through a pipe or as part of its words.
	fetched bool
	// targets are the files that it writes to by redirection.
	targets []string
}

// program is the base name of the command's program, "" if it has none.
func (s simple) program() string {
	if len(s.words) == 0 {
		return ""
	}
	return path.Base(s.words[0])
}

// Bounds of the wide reading; a text beyond them is no honest command.
const (
	maxNesting  = 6
	maxCommands = 20_000
	maxWords    = 60_000 // of all commands; those behind a wrapper count again
)

// readScript reads every command that a shell could run of the text: those
// between operators, in substitutions and in groups, those given to sh -c or
// eval, and those behind sudo, env, xargs and the like. It reads more rather
// than less, comments too, and never fails; it serves what restricts only.
// clipped says that the text was nested deeper or longer than the reader goes.
func readScript(text string) (out []simple, clipped bool) {
	r := &reader{src: text, lastFetch: -1}
	r.commands(0)
	return r.out, r.clipped
}

type reader struct {
	src     string
	pos     int
	depth   int
	out     []simple
	clipped bool
	// lastFetch is the index in out of the last command that loads from the
	// network, or -1.
	lastFetch int
	words     int // stored so far
}

// cursor is the command that is being read.
type cursor struct {
	simple
	text     strings.Builder
	inWord   bool
	redirect bool // the next word is the target of a redirection
}

func (c *cursor) add(s string)   { c.text.WriteString(s); c.inWord = true }
func (c *cursor) addByte(b byte) { c.text.WriteByte(b); c.inWord = true }

func (c *cursor) endWord() {
	if !c.inWord {
		return
	}
	w := c.text.String()
	c.text.Reset()
	c.inWord = false
	if c.redirect {
		c.targets, c.redirect = append(c.targets, w), false
		return
	}
	c.words = append(c.words, w)
}

// commands reads up to the closing byte, or to the end for 0, and says whether
// one of the commands loads from the network.
func (r *reader) commands(closing byte) bool {
	first := len(r.out)
	r.depth++
	defer func() { r.depth-- }()
	c, group := &cursor{}, 0
	next := func(fetched bool) {
		r.end(c)
		c = &cursor{simple: simple{fetched: fetched}}
	}
	for r.pos < len(r.src) {
		b := r.src[r.pos]
		r.pos++
		switch {
		case closing != 0 && b == closing && group == 0:
			r.end(c)
			return r.lastFetch >= first
		case b == ' ' || b == '\t':
			c.endWord()
		case b == '|' && !r.skip('|'):
			r.skip('&')
			r.end(c)
			next(c.fetched || r.lastFetch >= first)
		case b == '|' || b == '&' || b == ';' || b == '\n' || b == '\r':
			next(group > 0 && c.fetched) // what is piped into a group reaches all of it
		case b == '(' || b == ')':
			if b == '(' {
				group++
			} else if group > 0 {
				group--
			}
			next(c.fetched)
		case b == '#' && !c.inWord:
			next(false)
		default:
			r.piece(c, b)
		}
	}
	r.end(c)
	return r.lastFetch >= first
}

// piece reads one piece of a word, of which b is already consumed.
func (r *reader) piece(c *cursor, b byte) {
	switch b {
	case '\'':
		c.add(r.until('\''))
	case '"':
		r.quoted(c)
	case '\\':
		r.escaped(c)
	case '`':
		c.add("`")
		c.fetched = r.nested(r.until('`')) || c.fetched
	case '$':
		r.dollar(c)
	case '<', '>':
		r.redirection(c, b)
	default:
		c.addByte(b)
	}
}

func (r *reader) escaped(c *cursor) {
	if r.pos < len(r.src) {
		if r.src[r.pos] != '\n' {
			c.addByte(r.src[r.pos])
		}
		r.pos++
	}
}

// quoted reads to the end of a double-quoted piece.
func (r *reader) quoted(c *cursor) {
	c.add("")
	for r.pos < len(r.src) {
		b := r.src[r.pos]
		r.pos++
		switch b {
		case '"':
			return
		case '\\', '`', '$':
			r.piece(c, b)
		default:
			c.addByte(b)
		}
	}
}

func (r *reader) dollar(c *cursor) {
	switch {
	case r.skip('('):
		c.add("$()")
		r.inner(c)
	case r.skip('{'):
		c.add("${" + r.until('}') + "}")
	case r.pos < len(r.src) && (r.src[r.pos] == '\'' || r.src[r.pos] == '"'): // $'...' and $"..."
	default:
		c.add("$")
	}
}

func (r *reader) redirection(c *cursor, b byte) {
	if r.skip('(') { // process substitution
		c.add("/dev/fd")
		r.inner(c)
		return
	}
	if strings.Trim(c.text.String(), "0123456789") == "" { // the number of a file descriptor
		c.text.Reset()
		c.inWord = false
	}
	c.endWord()
	for r.skip('>') || r.skip('<') || r.skip('|') || r.skip('&') || r.skip('-') {
	}
	c.redirect = b == '>'
}

// inner reads a substitution up to its closing parenthesis; what runs in it
// feeds the command.
func (r *reader) inner(c *cursor) {
	if r.depth >= maxNesting {
		r.clipped = true
		return
	}
	c.fetched = r.commands(')') || c.fetched
}

// nested reads a text that is a script of its own, and says whether something
// in it loads from the network.
func (r *reader) nested(text string) bool {
	if r.depth >= maxNesting {
		r.clipped = true
		return true
	}
	sub := &reader{src: text, depth: r.depth, out: r.out, lastFetch: r.lastFetch, words: r.words}
	fetched := sub.commands(0)
	r.out, r.lastFetch, r.words, r.clipped = sub.out, sub.lastFetch, sub.words, r.clipped || sub.clipped
	return fetched
}

// until returns the text up to the byte and moves behind it.
func (r *reader) until(b byte) string {
	rest := r.src[r.pos:]
	if i := strings.IndexByte(rest, b); i >= 0 {
		r.pos += i + 1
		return rest[:i]
	}
	r.pos = len(r.src)
	return rest
}

func (r *reader) skip(b byte) bool {
	if r.pos < len(r.src) && r.src[r.pos] == b {
		r.pos++
		return true
	}
	return false
}

// end stores the command that was read, and what stands behind it.
func (r *reader) end(c *cursor) {
	c.endWord()
	if len(c.words) == 0 && len(c.targets) == 0 {
		return
	}
	s := c.simple
	c.words, c.targets = nil, nil
	r.emit(s)
}
