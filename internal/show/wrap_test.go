package show_test

import (
	"strings"
	"testing"

	"culm/internal/show"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line          string
		width, indent int
		want          string
	}{
		{"one two three four", 0, 4, "one two three four"},
		{"one two three four", 18, 4, "one two three four"},
		{"one two three four", 12, 4, "one two\n    three\n    four"},
		{"one  two   three four five", 16, 2, "one  two   three\n  four five"},
		{"a " + strings.Repeat("w", 20) + " b", 10, 2, "a\n  " + strings.Repeat("w", 20) + "\n  b"},
		{"\x1b[31mone two\x1b[0m three", 13, 2, "\x1b[31mone two\x1b[0m three"},
		{"\x1b[31mone two three\x1b[0m four", 10, 2, "\x1b[31mone two\n  three\x1b[0m\n  four"},
		{"ä ö ü ß é", 9, 2, "ä ö ü ß é"},
		{"one two three", 5, 4, "one two three"},
	} {
		if got := show.Wrap(c.line, c.width, c.indent); got != c.want {
			t.Errorf("Wrap(%q, %d, %d) = %q, want %q", c.line, c.width, c.indent, got, c.want)
		}
	}
}
