package config

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

var confidences = []string{"low", "medium", "high"}

// gold reads the configuration of the goal judge as the JSON object that a
// session would give; keys that are left out are left out of it.
func (r *reader) gold(path string, n ast.Node) []byte {
	values := map[string]any{}
	known := fields{}
	for _, name := range []string{"enabled", "auto_answer_enabled", "auto_continue_enabled"} {
		known[name] = func(at string, n ast.Node) {
			var v bool
			r.flag(&v)(at, n)
			values[name] = v
		}
	}
	for _, name := range []string{"model_name", "goal", "evaluation_prompt", "minimum_confidence"} {
		known[name] = func(at string, n ast.Node) {
			var v string
			r.text(&v, maxGoal)(at, n)
			values[name] = v
			if name == "minimum_confidence" && !slices.Contains(confidences, v) {
				r.failf(line(n), at, "is none of %s", strings.Join(confidences, ", "))
			}
		}
	}
	for name, most := range map[string]int{"max_output_tokens": math.MaxInt32, "max_auto_continuations": 1000} {
		known[name] = func(at string, n ast.Node) {
			var v int
			r.number(&v, 0, most)(at, n)
			values[name] = v
		}
	}
	r.mapping(path, n, known)
	text, err := json.Marshal(values) // its keys come out in order
	if err != nil {
		r.failf(line(n), path, "cannot be spelled as JSON")
	}
	return text
}
