package main

import (
	"regexp"
	"strings"
)

var suggestions = regexp.MustCompile(`^(\S+), did you mean one of (.+)\?$`)

// nearest leaves of the words that the parser suggests those that are nearest to
// what was typed: those that begin with it, or else those with the fewest slips.
func nearest(text string) string {
	m := suggestions.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	var near []string
	least := 0
	for word := range strings.SplitSeq(m[2], ", ") {
		d := slips(m[1], strings.Trim(word, `"`))
		if len(near) == 0 || d < least {
			near, least = nil, d
		}
		if d == least {
			near = append(near, word)
		}
	}
	return m[1] + ", did you mean " + oneOf(near) + "?"
}

// slips is how many letters must be changed, added or left out to get from what
// was typed to the word; the beginning of a word counts as one slip.
func slips(typed, word string) int {
	if strings.HasPrefix(word, typed) {
		return 1
	}
	row := make([]int, len(word)+1) // from what was typed so far to each beginning of the word
	for i := range row {
		row[i] = i
	}
	for i := range len(typed) {
		before := row[0]
		row[0]++
		for j := range len(word) {
			cost := before
			if typed[i] != word[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(word)]
}
