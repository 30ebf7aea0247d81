package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"culm/internal/config"
)

// FuzzParse: no text makes the reader panic or take long; what it accepts is
// bounded and passes Check, and what it refuses has a line within the text.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../../examples/engine.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		"", "---", "{}", "providers: [{id: a, type: openai}]", "a: &x\n  - *x", "? [a]\n: {b: c}", "\xef\xbb\xbflease: 15s", "data: |2-\n   x\n", "data: >+\n\n",
		"providers:\n- id: a\n  type: recorded\n  file: !!binary aGk=\n", "gold: {goal: \"\\u0000\", max_output_tokens: 0x7fffffff}", "lease: 1_5s", "%YAML 1.2\n---\n", "- - - - -", "[[[[[[[[[", "{a: {a: {a: {a",
		"permissions: {hard_dangerous: ['(', {pattern: x}], always_ask: [{matcher: {kind: x}}]}", "data: \"\\", "data: 'x\n\n\ny'", ": :", "a:\n\tb: c", "\"a\": !<x> y", "x: .inf\ny: .nan\nz: 0b11\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := time.Now()
		file, err := config.Parse("c.yaml", text)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
		if err == nil {
			checkAccepted(t, file)
			return
		}
		es, ok := errors.AsType[config.Errors](err)
		if !ok || len(es) == 0 || file != nil {
			t.Fatalf("%T %v", err, err)
		}
		for _, e := range es {
			if e.Line < 0 || e.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+1 || e.Problem == "" {
				t.Errorf("%+v", e)
			}
		}
	})
}

func checkAccepted(t *testing.T, f *config.File) {
	t.Helper()
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	names := strings.Join(config.SettingNames(), " ")
	for name := range f.Settings {
		if !strings.Contains(names, name) {
			t.Errorf("setting %q", name)
		}
	}
	if first, again := f.Digest(), f.Digest(); first != again {
		t.Error("two digests of one file")
	}
}
