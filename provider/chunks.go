package provider

import (
	"iter"
	"unicode/utf8"
)

// Chunks cuts text into pieces of at most size bytes, never inside a UTF-8
// character; a character longer than size is a piece of its own. The pieces
// joined are the text.
func Chunks(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := cut(text, size)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// cut returns the length of the first piece, at least 1.
func cut(text string, size int) int {
	if len(text) <= size {
		return len(text)
	}
	n := max(size, 0)
	// Bytes that are no UTF-8 may be cut anywhere: look back one character only.
	for back := 0; back < utf8.UTFMax && n > 0; back++ {
		if utf8.RuneStart(text[n]) {
			return n
		}
		n--
	}
	if n > 0 {
		return max(size, 1)
	}
	_, width := utf8.DecodeRuneInString(text)
	return width
}
