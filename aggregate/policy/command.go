package policy

import (
	"strings"
	"unicode/utf8"
)

// word is one word of a command, its quotes removed.
type word struct {
	text string
	// literal says that the shell passes the text on as it stands: no glob,
	// brace or tilde stands outside of quotes.
	literal bool
}

// SplitCommand splits a simple command into its words, quotes removed. It
// returns false where the text is anything but one simple command, or could be
// read as more by some shell (docs/permissions.md#command-prefix):
//
//   - outside of quotes any of & | ; < > ( ) # ! \ $ or a backtick
//   - in double quotes any of $ ! \ or a backtick, which stay active there
//   - anywhere a newline, another control character but tab, or broken UTF-8
//   - a quote that is not closed, and no word at all
//
// That is narrower than any shell: a command that is refused here is asked
// about, never run unseen.
func SplitCommand(command string) ([]string, bool) {
	words, ok := splitWords(command)
	if !ok {
		return nil, false
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out, true
}

const (
	activeUnquoted = "&|;<>()#!\\$`"
	activeQuoted   = "!\\$`"
	expanding      = "*?[]{}~"
)

func splitWords(s string) ([]word, bool) {
	if !utf8.ValidString(s) {
		return nil, false
	}
	var (
		out   []word
		text  strings.Builder
		in    bool // in a word
		quote rune // the open quote, or 0
		lit   = true
	)
	flush := func() {
		if in {
			out = append(out, word{text.String(), lit})
			text.Reset()
			in, lit = false, true
		}
	}
	for _, c := range s {
		switch {
		case isControl(c) && c != '\t':
			return nil, false
		case quote != 0 && c == quote:
			quote = 0
		case quote == '"' && strings.ContainsRune(activeQuoted, c):
			return nil, false
		case quote != 0:
			text.WriteRune(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t':
			flush()
		case strings.ContainsRune(activeUnquoted, c):
			return nil, false
		default:
			lit = lit && !strings.ContainsRune(expanding, c)
			text.WriteRune(c)
			in = true
		}
	}
	flush()
	return out, quote == 0 && len(out) > 0
}

func isControl(c rune) bool { return c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 }

// prefixWords splits the pattern of a command_prefix: a simple command whose
// words are all literal and whose first is a program, not an assignment.
func prefixWords(pattern string) ([]string, bool) {
	words, ok := splitWords(pattern)
	if !ok || words[0].text == "" || strings.Contains(words[0].text, "=") {
		return nil, false
	}
	out := make([]string, len(words))
	for i, w := range words {
		if !w.literal {
			return nil, false
		}
		out[i] = w.text
	}
	return out, true
}

// matchPrefix says that command is one simple command that begins with the
// words of pattern. What follows them may hold globs: a prefix lets any
// arguments pass.
func matchPrefix(pattern, command string) bool {
	prefix, ok := prefixWords(pattern)
	if !ok {
		return false
	}
	words, ok := splitWords(command)
	if !ok || len(words) < len(prefix) {
		return false
	}
	for i, p := range prefix {
		if !words[i].literal || words[i].text != p {
			return false
		}
	}
	return true
}
