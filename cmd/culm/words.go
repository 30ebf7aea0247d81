package main

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// plainly says what is wrong with the arguments in the words of --help: the
// parser's own speak of types and show lists as they stand in the source.
func plainly(e *kong.ParseError) string {
	text := e.Error()
	if strings.HasPrefix(text, "expected one of ") {
		return missingCommand(e.Context)
	}
	if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok && grouped(e.Context) {
		return "there is no command " + nearest(rest)
	}
	for _, p := range phrases {
		if m := p.parser.FindStringSubmatchIndex(text); m != nil {
			text = string(p.parser.ExpandString(nil, p.plain, text, m))
			break
		}
	}
	return allowedValues(text)
}

// phrases are the parser's texts that need other words.
var phrases = []struct {
	parser *regexp.Regexp
	plain  string
}{
	{regexp.MustCompile(`^expected "(<.+>)(?: \.\.\.)?"$`), "missing: $1"},
	{regexp.MustCompile(`^\S+: (session ".*)$`), "$1"},
	{regexp.MustCompile(`^missing (?:flags:|positional arguments) (.+)$`), "missing: $1"},
	{regexp.MustCompile(`^(.+): expected a valid \d+ bit uint but got (.+)$`), "$1 takes a whole number, not $2"},
	{regexp.MustCompile(`^(.+): expected a valid \d+ bit int but got (.+)$`), "$1 takes a whole number, not $2"},
	{regexp.MustCompile(`^(.+): expected duration but got ("[^"]*").*$`), "$1 takes a duration such as 500ms, 10s or 2m, not $2"},
	{regexp.MustCompile(`^(.+): expected "<key>=<value>" but got (.+)$`), "$1 takes KEY=VALUE, not $2"},
	{regexp.MustCompile(`^(.+): expected .+ value but got "EOL" .*$`), "$1 takes a value, and none is given"},
	{regexp.MustCompile(`^(--limit)[^:]*: expected .+ value but got "(-\d+)" \((?:short|long) flag\).*$`), "$1 takes 0 or more, not $2"},
	{regexp.MustCompile(`^(.+): expected .+ value but got ("[^"]*") \((?:short|long) flag\).*$`), "$1 takes a value, not $2"},
	{regexp.MustCompile(`^unknown flag --(after|since)\b.*$`), "unknown flag --$1, did you mean \"--from\"?"},
	{regexp.MustCompile(`^(.+): missing value, expecting .*$`), "$1 takes a value, and none is given"},
}

var enumeration = regexp.MustCompile(`^(.+) must be one of (.+) but got (".*")$`)

// allowedValues spells the list of an enumeration. The empty value in a list
// stands for leaving the flag out and is no value to give.
func allowedValues(text string) string {
	m := enumeration.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	var allowed []string
	for v := range strings.SplitSeq(m[2], ",") {
		if v = strings.Trim(v, `"`); v != "" {
			allowed = append(allowed, v)
		}
	}
	name, _, _ := strings.Cut(m[1], "=")
	return name + " takes " + oneOf(allowed) + ", not " + m[3]
}

// oneOf lists words: "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// grouped says that a command is wanted where the parser has come to.
func grouped(c *kong.Context) bool {
	n := c.Selected()
	return n == nil || len(n.Children) > 0
}

// missingCommand names the commands of a group that is given without one.
func missingCommand(c *kong.Context) string {
	n := c.Selected()
	if n == nil {
		return "a command is missing; culm alone shows the commonest"
	}
	var names []string
	for _, child := range n.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return n.FullPath() + " takes one of " + strings.Join(names, ", ")
}
