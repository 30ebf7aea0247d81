package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"culm/events"
)

// textSettings are the settings that are texts, and what is wrong with a value.
var textSettings = map[string]func(string) string{
	"nats": func(string) string { return "" }, // the connection says more than a check could
	"data": func(v string) string { return when(v == "", "is empty") },
	"listen": func(v string) string {
		_, _, err := net.SplitHostPort(v)
		return when(err != nil, "is no host:port")
	},
	"http": func(v string) string {
		_, _, err := net.SplitHostPort(v)
		return when(err != nil && !strings.EqualFold(v, "off"), "is neither host:port nor off")
	},
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
	minLease = time.Second
	maxLease = 24 * time.Hour
)

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
		r.duration(&v, minLease, maxLease)(at, n)
		into["lease"] = v.String()
	}
	return known
}
