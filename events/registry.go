package events

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Upcaster turns the data of version n into that of version n+1. It must be
// pure; it sees well-formed JSON only.
type Upcaster func(jsontext.Value) (jsontext.Value, error)

// Definition registers one event type.
type Definition struct {
	Type    string // noun.verb_past, lower snake case
	Version int    // newest version, 1-based
	// Ignorable types change no state; readers that do not know them pass over.
	Ignorable bool
	// Upcasters[i] lifts version i+1; there are exactly Version-1 of them.
	Upcasters []Upcaster
	goType    reflect.Type
}

// catalogue is a set of event types by name.
type catalogue map[string]*Definition

var registry = buildRegistry(definitions())

// define describes the event type whose data is T.
func define[T Data](version int, upcasters ...Upcaster) Definition {
	var zero T
	return Definition{Type: zero.EventType(), Version: version, Upcasters: upcasters, goType: reflect.TypeFor[T]()}
}

func ignorable(d Definition) Definition { d.Ignorable = true; return d }

// buildRegistry panics on a definition that breaks the rules of names,
// versions or shapes: such a build must not start.
func buildRegistry(defs []Definition) catalogue {
	m := make(catalogue, len(defs))
	for i := range defs {
		d := &defs[i]
		if err := d.validate(); err != nil {
			panic(fmt.Sprintf("events: %s: %v", d.Type, err))
		}
		if _, dup := m[d.Type]; dup {
			panic("events: " + d.Type + " is registered twice")
		}
		m[d.Type] = d
	}
	return m
}

func (d *Definition) validate() error {
	noun, verb, ok := strings.Cut(d.Type, ".")
	switch {
	case !ok || !isSnake(noun) || !isSnake(verb):
		return fmt.Errorf("name is not noun.verb_past in lower snake case")
	case d.Version < 1 || len(d.Upcasters) != d.Version-1 || slices.ContainsFunc(d.Upcasters, func(u Upcaster) bool { return u == nil }):
		return fmt.Errorf("version %d needs %d upcasters", d.Version, d.Version-1)
	case d.goType.Kind() != reflect.Struct:
		return fmt.Errorf("data is %s, not a struct", d.goType.Kind())
	}
	zero := reflect.New(d.goType)
	b, err := json.Marshal(zero.Interface(), writeOptions)
	if err != nil {
		return fmt.Errorf("zero value: %w", err)
	}
	return UnmarshalStrict(b, reflect.New(d.goType).Interface())
}

func isSnake(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" && s[0] != '_' && s[len(s)-1] != '_'
}

// Definitions lists the registry, sorted by type.
func Definitions() []Definition {
	out := make([]Definition, 0, len(registry))
	for _, d := range registry {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Definition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// GoType is the struct that holds the data in its newest version.
func (d Definition) GoType() reflect.Type { return d.goType }
