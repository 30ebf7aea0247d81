package config

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"culm/events"
)

// textSettings are the settings that are texts, and what is wrong with a value.
var textSettings = map[string]func(string) string{
	"nats":        NATSProblem,
	"data":        func(v string) string { return when(v == "", "is empty") },
	"listen":      listenProblem,
	"http":        HTTPProblem,
	"http-hosts":  func(string) string { return "" }, // names, separated by commas
	"http-tokens": func(string) string { return "" }, // a file, read at the start
	"http-actor": func(v string) string {
		return when(!events.ValidToken(v) || strings.HasPrefix(v, "_"), "is no actor: 1 to 64 letters, digits, - and _ are, not beginning with _")
	},
	"sync":   oneOf("group", "always", "none"),
	"layout": oneOf("per-session", "sharded"),
	"prefix": func(v string) string {
		for part := range strings.SplitSeq(v, ".") {
			if !events.ValidToken(part) || strings.HasPrefix(part, "_") {
				return "is no prefix: tokens of letters, digits, - and _ are, joined by dots, none beginning with _"
			}
		}
		return ""
	},
	"log-level": func(v string) string {
		return when(new(slog.Level).UnmarshalText([]byte(v)) != nil, "is none of debug, info, warn, error")
	},
}

var flagSettings = []string{"no-runner", "no-projector"}

var numberSettings = map[string][2]int{"replicas": {1, 5}, "sessions": {1, 100_000}}

// Bounds of a lease, the upper one so that a dead run is found some day.
const (
	MinLease = time.Second
	MaxLease = 24 * time.Hour
)

// SettingProblem says what is wrong with a setting that did not come from a
// file, by the rules of the file; "" for nothing. The value is spelled as for
// its flag.
func SettingProblem(name, value string) string {
	if problem, ok := textSettings[name]; ok {
		return problem(value)
	}
	if bounds, ok := numberSettings[name]; ok {
		n, err := strconv.Atoi(value)
		return when(err != nil || n < bounds[0] || n > bounds[1], fmt.Sprintf("is not from %d to %d", bounds[0], bounds[1]))
	}
	if name == "lease" {
		d, err := time.ParseDuration(value)
		return when(err != nil || d < MinLease || d > MaxLease, fmt.Sprintf("is not from %s to %gh", MinLease, MaxLease.Hours()))
	}
	return ""
}

func when(wrong bool, problem string) string {
	if wrong {
		return problem
	}
	return ""
}

func oneOf(allowed ...string) func(string) string {
	return func(v string) string {
		return when(!slices.Contains(allowed, v), "is none of "+strings.Join(allowed, ", "))
	}
}

// SettingNames lists the settings of the engine that the file can hold, in
// order. Each is the name of a flag.
func SettingNames() []string {
	names := append(slices.Collect(maps.Keys(textSettings)), append(flagSettings, "lease")...)
	return slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(numberSettings))))
}

// settings are the readers of the engine's settings.
func (r *reader) settings(into map[string]string) fields {
	known := fields{}
	for name, problem := range textSettings {
		known[name] = func(at string, n ast.Node) {
			var v string
			before := len(r.errs)
			r.text(&v, maxText)(at, n)
			if p := problem(v); p != "" && len(r.errs) == before {
				r.failf(line(n), at, "%s", p)
			}
			into[name] = v
		}
	}
	for _, name := range flagSettings {
		known[name] = func(at string, n ast.Node) {
			var v bool
			r.flag(&v)(at, n)
			into[name] = fmt.Sprint(v)
		}
	}
	for name, bounds := range numberSettings {
		known[name] = func(at string, n ast.Node) {
			var v int
			r.number(&v, bounds[0], bounds[1])(at, n)
			into[name] = fmt.Sprint(v)
		}
	}
	known["lease"] = func(at string, n ast.Node) {
		var v time.Duration
		r.duration(&v, MinLease, MaxLease)(at, n)
		into["lease"] = v.String()
	}
	return known
}
