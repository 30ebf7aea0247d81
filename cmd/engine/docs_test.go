package main

import (
	"os"
	"strings"
	"testing"

	"culm/aggregate/routing"
	"culm/internal/config"
)

// TestDocs_ConfigurationShowsWhatTheEngineSays: the output in the page is real,
// and every setting and type is named.
func TestDocs_ConfigurationShowsWhatTheEngineSays(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	const command = "$ go run ./cmd/engine --config examples/engine.yaml --check-config\n"
	_, shown, ok := strings.Cut(string(page), command)
	shown, _, ended := strings.Cut(shown, "```")
	status, out, errs := engineRun(t, "--config", "examples/engine.yaml", "--check-config")
	if !ok || !ended || status != exitOK || shown != out {
		t.Errorf("status %d %s; the page shows\n%s\nthe engine says\n%s", status, errs, shown, out)
	}
	for _, name := range append(config.SettingNames(), routing.Types()...) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}
