package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"culm/internal/show"
)

// table is rows of cells; the first row is the head.
type table [][]string

// print aligns the columns. Cells are made safe for a terminal.
func (t table) print(w io.Writer) error {
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
	for _, row := range t {
		var b strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
