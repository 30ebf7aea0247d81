package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"culm/internal/show"
)

// table is rows of cells; the first row is the head.
type table [][]string

// filled is the table without columns in which nothing stands but the head.
func (t table) filled() table {
	for col := len(t[0]) - 1; col >= 0; col-- {
		if slices.ContainsFunc(t[1:], func(row []string) bool { return row[col] != "" }) {
			continue
		}
		for i := range t {
			t[i] = slices.Delete(t[i], col, col+1)
		}
	}
	return t
}

// leastClipped is how narrow the last column of a table may become before it is
// left out.
const leastClipped = 12

// print aligns the columns. Cells are made safe for a terminal. The last column
// gives way where a line would be wider than width; 0 is any width.
func (t table) print(w io.Writer, width int) error { return t.align(w, width, "%-*s") }

// printNumbers is print with all columns but the first aligned to the right.
func (t table) printNumbers(w io.Writer) error { return t.align(w, 0, "%*s") }

func (t table) align(w io.Writer, width int, format string) error {
	var widths []int
	for _, row := range t {
		for i, cell := range row {
			row[i] = show.Clean(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if last := len(widths) - 1; width > 0 && last > 0 {
		for _, w := range widths[:last] {
			width -= w + 2
		}
		for i, row := range t {
			if width < min(leastClipped, widths[last]) {
				t[i] = row[:last]
			} else {
				row[last] = show.Clip(row[last], width)
			}
		}
	}
	for _, row := range t {
		var b strings.Builder
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
			} else {
				fmt.Fprintf(&b, format+"  ", widths[i], cell)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
