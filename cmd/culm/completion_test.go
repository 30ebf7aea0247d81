package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCompletionScriptsHoldEveryCommand(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := culm(t, &fake{}, "completion", shell)
		for _, want := range []string{"session create", "audit", "iterations", "completion"} {
			if r.status != exitOK || !strings.Contains(r.out, want) {
				t.Errorf("%s: status %d, %q is missing", shell, r.status, want)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(r.out)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s does not take it: %v\n%s", shell, err, out)
			}
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	script := culm(t, &fake{}, "completion", "bash").out
	for line, want := range map[string]string{
		"culm se":                        "session send search",
		"culm session cr":                "create",
		"culm --json session cr":         "create",
		"culm loop start demo --iter":    "--iterations",
		"culm session ''":                "create list show close delete",
		"culm session show ''":           "", // a session is wanted, not a flag
		"culm session show --fu":         "",
		"culm completion ''":             "bash zsh fish",
		"culm completion f":              "fish",
		"culm audit session --al":        "--all",
		"culm run session create --foll": "--follow",
	} {
		words := strings.Fields(line)
		ask := script + "\nCOMP_WORDS=(" + line + "); COMP_CWORD=" + string(rune('0'+len(words)-1)) + "; _culm; echo ${COMPREPLY[@]}"
		out, err := exec.Command(bash, "-c", ask).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s<TAB> gives %q (%v), want %q", line, got, err, want)
		}
	}
}
