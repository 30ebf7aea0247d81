package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one thing that is wrong with a configuration file.
type Error struct {
	File    string
	Line    int    // 1-based, 0 for the file as a whole
	Key     string // path of the key, "providers[0].type"; "" for the file as a whole
	Problem string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	return b.String() + ": " + e.Problem
}

// Errors is everything that is wrong with a file, in the order of its lines.
type Errors []*Error

// maxShown bounds how many errors are spelled out at once.
const maxShown = 10

func (es Errors) Error() string {
	var lines []string
	for i, e := range es {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(es)-maxShown))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the single errors.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}
