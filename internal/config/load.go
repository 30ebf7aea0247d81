package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file.
const (
	MaxSize  = 128 << 10 // bytes
	MaxDepth = 8         // lists and mappings within each other
	maxLine  = 16 << 10  // bytes
	// maxTokens bounds what the parser takes squared time for.
	maxTokens = 20_000
)

// Load reads the file at path. The error is that of the system, or Errors.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	return Parse(path, text)
}

// Parse reads the text of a file; name stands for it in errors. The error is
// Errors, and then no part of the file is returned. An empty text is a file
// that configures nothing.
func Parse(name string, text []byte) (*File, error) {
	r := &reader{file: name, lines: map[string]int{}}
	f := r.read(text)
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
		return nil, r.errs
	}
	return f, nil
}

func (r *reader) read(text []byte) *File {
	if r.checkBytes(text) || r.checkLines(text) {
		return nil
	}
	body := r.parse(text)
	if len(r.errs) > 0 || r.checkValues(body) {
		return nil
	}
	f := &File{Settings: map[string]string{}}
	if body != nil {
		r.top(f, body)
	}
	if len(r.errs) == 0 {
		r.checkRules(&f.Rules)
	}
	return f
}

// checkBytes says that the text is none that a person writes.
func (r *reader) checkBytes(text []byte) bool {
	switch {
	case len(text) > MaxSize:
		r.failf(0, "", "is longer than %d bytes", MaxSize)
	case !utf8.Valid(text):
		r.failf(lineOf(text, firstBroken(text)), "", "is no UTF-8 here")
	case bytes.IndexByte(text, 0) >= 0:
		r.failf(lineOf(text, bytes.IndexByte(text, 0)), "", "holds a NUL")
	}
	return len(r.errs) > 0
}

func firstBroken(text []byte) int {
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// parse returns the root of the file, nil for an empty one. What the parser
// says about the text is told without the text itself.
func (r *reader) parse(text []byte) (body ast.Node) {
	defer func() {
		if recover() != nil { // a fault of the library must not end the process
			r.failf(0, "", "cannot be read as YAML")
			body = nil
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if r.checkTokens(tokens) {
		return nil
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		var at yaml.Error
		if !errors.As(err, &at) || at.GetToken() == nil {
			r.failf(0, "", "cannot be read as YAML")
			return nil
		}
		r.failf(at.GetToken().Position.Line, "", "cannot be read as YAML: %.200s", at.GetMessage())
		return nil
	}
	for _, d := range f.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			r.failf(line(d.Body), "", "begins a second document: a configuration is one")
			return nil
		}
		body = d.Body
	}
	return body
}

// refused are the parts of YAML that a configuration does without.
var refused = map[token.Type]string{
	token.AnchorType:     "an anchor (&)",
	token.AliasType:      "an alias (*)",
	token.TagType:        "a tag (!)",
	token.MergeKeyType:   "a merge key (<<)",
	token.MappingKeyType: "an explicit key (?)",
	token.DirectiveType:  "a directive (%)",
}

// checkTokens keeps from the parser what it would take long for, and what a
// configuration does without.
func (r *reader) checkTokens(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		r.failf(tokens[maxTokens].Position.Line, "", "is where the file holds more than %d words and marks", maxTokens)
		return true
	}
	depth, entries, last := 0, 0, 0
	for _, t := range tokens {
		at := t.Position.Line
		if what, ok := refused[t.Type]; ok {
			r.failf(at, "", "%s stands here: the configuration does without; put a text that begins so in quotes", what)
			return true
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if at != last {
				entries, last = 0, at
			}
			entries++
		default:
		}
		if depth > MaxDepth || entries > MaxDepth {
			r.failf(at, "", "holds lists and mappings deeper than %d", MaxDepth)
			return true
		}
	}
	return false
}
