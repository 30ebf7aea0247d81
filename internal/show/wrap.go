package show

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a line between words where it would be wider than width, and
// indents what follows by indent characters. A word that is wider than what is
// left of a line stays whole. Colours take no room. A width below twice the
// indent breaks nothing, nor does 0.
func Wrap(line string, width, indent int) string {
	if width < 2*indent || width < 1 || columns(line) <= width {
		return line
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(line, " ") {
		n := columns(word)
		switch {
		case i == 0:
		case at+1+n > width && n > 0:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// columns counts characters without the sequences of colours.
func columns(s string) int {
	n := utf8.RuneCountInString(s)
	for {
		_, after, found := strings.Cut(s, "\x1b[")
		if !found {
			return n
		}
		code, rest, ended := strings.Cut(after, "m")
		if !ended {
			return n
		}
		n -= len("\x1b[") + utf8.RuneCountInString(code) + len("m")
		s = rest
	}
}
