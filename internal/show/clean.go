package show

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes s safe for one line of a terminal: runs of white space become
// one space; control characters, format characters (text direction marks
// among them), bytes that are not UTF-8 and other unprintable characters
// become visible escapes such as \x1b or \u202e.
func Clean(s string) string { return clean(s, false) }

// CleanBlock is Clean for text of several lines: it keeps line feeds and tabs.
// A carriage return before a line feed is dropped.
func CleanBlock(s string) string { return clean(strings.ReplaceAll(s, "\r\n", "\n"), true) }

func clean(s string, block bool) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false // a space is owed before the next character
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		raw := s[i : i+size]
		i += size
		switch {
		case block && (r == '\n' || r == '\t'):
			b.WriteRune(r)
			continue
		case !block && isSpace(r):
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		writeVisible(&b, r, raw)
	}
	return b.String()
}

// isSpace names the white space that one line folds into a space.
func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

func writeVisible(b *strings.Builder, r rune, raw string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case printable(r):
		b.WriteRune(r)
	case r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// printable holds for what unicode calls printable and for the two joiners that
// ordinary scripts and emoji need; they move no cursor and turn no text around.
func printable(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	return unicode.IsPrint(r) || r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// CleanJSON makes well-formed JSON safe for a terminal without changing what it
// says: unprintable characters, which can stand only inside strings, become
// \uXXXX escapes.
func CleanJSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case printable(r) || isSpace(r):
			out = append(out, doc[:size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		doc = doc[size:]
	}
	return out
}

// Clip shortens s to at most limit characters, the last one an ellipsis if
// something was cut. A limit below 1 cuts nothing.
func Clip(s string, limit int) string {
	if limit < 1 || utf8.RuneCountInString(s) <= limit {
		return s
	}
	kept := 0
	for i := range s {
		if kept == limit-1 {
			return s[:i] + "…"
		}
		kept++
	}
	return s
}

// Quote is Clean between quotation marks, clipped to what a line can hold.
func Quote(s string, limit int) string { return "“" + Clip(Clean(s), limit) + "”" }
