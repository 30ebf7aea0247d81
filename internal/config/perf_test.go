package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"culm/internal/config"
)

// TestParse_LongFilesDoNotTakeLong fills files of the greatest size with what
// parsers are slow at.
func TestParse_LongFilesDoNotTakeLong(t *testing.T) {
	fill := func(piece string) string { return strings.Repeat(piece, config.MaxSize/len(piece)) }
	var keys, nested, flows strings.Builder
	for i := 0; keys.Len() < config.MaxSize-20; i++ {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	for i := 0; nested.Len() < config.MaxSize-2000; i++ {
		fmt.Fprintf(&nested, "%sk:\n", strings.Repeat(" ", i))
	}
	for i := 0; flows.Len() < config.MaxSize-20; i++ {
		fmt.Fprintf(&flows, "- [a, {b: c}, \"d\"]\n")
	}
	for name, text := range map[string]string{
		"keys": keys.String(), "one key": fill("a: 1\n"), "indentation": nested.String(), "flows": flows.String(), "entries": "providers:\n" + fill("- x\n")[:config.MaxSize-20],
		"quotes": fill("\"\n"), "escapes": "a: \"" + fill("\\\"\\\n")[:config.MaxSize-20] + "\"", "block": "a: |\n" + fill(" x\n")[:config.MaxSize-20],
		"folded": "a: >\n" + fill(" x\n\n")[:config.MaxSize-20], "comments": fill("#\n"), "colons": fill(":\n"), "dashes": fill("-\n"), "documents": fill("---\n"),
		"commas": "[" + fill(",\n")[:config.MaxSize-20], "plain": "a: b" + fill("\n  b")[:config.MaxSize-20], "blank": fill("\n"), "spaces": fill("       \n"),
		"single": "a: '" + fill("''\n")[:config.MaxSize-20] + "'", "brackets": fill("[]\n"), "braces": "{" + fill("a,\n")[:config.MaxSize-20], "CR": fill("\r"), "closing": fill("]\n"),
		"most keys": keys.String()[:55_000], "most braces": "{" + fill("a,\n")[:29_000], "most dashes": fill("-\n")[:39_000], "most flows": flows.String()[:36_000],
	} {
		start := time.Now()
		_, err := config.Parse("c.yaml", []byte(text))
		took := time.Since(start)
		shown := fmt.Sprint(err)
		t.Logf("%-12s %8s %.90q", name, took.Round(time.Millisecond), shown)
		if took > time.Minute { // a loaded machine with the race detector; what is squared takes minutes
			t.Errorf("%s took %s", name, took)
		}
	}
}
