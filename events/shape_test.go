package events_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

var (
	rawType  = reflect.TypeFor[jsontext.Value]()
	timeType = reflect.TypeFor[time.Time]()
)

// field is one member of a record on the wire; the fields of embedded structs
// stand among those of the struct around them.
type field struct {
	name     string // on the wire
	optional bool
	goName   string
	goOwner  string // struct that declares it
	goType   reflect.Type
}

func fieldsOf(t reflect.Type) (out []field) {
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, fieldsOf(f.Type)...)
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, field{name, opts == "omitzero", f.Name, t.Name(), f.Type})
	}
	return out
}

// element strips pointers and lists.
func element(t reflect.Type) reflect.Type {
	for t != rawType && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

func isRecord(t reflect.Type) bool { return t.Kind() == reflect.Struct && t != timeType }

// pathsOf lists every path that data of type t can have: "loop.status".
func pathsOf(t reflect.Type, prefix string) (out []string) {
	for _, f := range fieldsOf(t) {
		path := prefix + f.name
		out = append(out, path)
		if e := element(f.goType); isRecord(e) {
			out = append(out, pathsOf(e, path+".")...)
		}
	}
	return out
}

// TestShapes_AreSpelledOnPurpose: names on the wire are never Go names, so that
// renaming a Go type or field changes nothing that is stored.
func TestShapes_AreSpelledOnPurpose(t *testing.T) {
	t.Parallel()
	for _, d := range events.Definitions() {
		paths := pathsOf(d.GoType(), "")
		for _, p := range paths {
			name := p[strings.LastIndex(p, ".")+1:]
			if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
				t.Errorf("%s: field %q is not in lower snake case", d.Type, p)
			}
		}
		slices.Sort(paths)
		if n := len(paths); len(slices.Compact(paths)) != n {
			t.Errorf("%s: two fields share one name: %q", d.Type, paths)
		}
		checkKinds(t, d.Type, d.GoType())
	}
}

// checkKinds admits what reads the same in every language: no floats, no
// signed numbers, no interfaces, no maps but of strings.
func checkKinds(t *testing.T, name string, goType reflect.Type) {
	t.Helper()
	for _, f := range fieldsOf(goType) {
		e := element(f.goType)
		switch e.Kind() {
		case reflect.String, reflect.Bool, reflect.Uint32, reflect.Uint64:
		case reflect.Map:
			if e != reflect.TypeFor[map[string]string]() {
				t.Errorf("%s.%s is %s", name, f.name, e)
			}
		case reflect.Struct:
			if e != timeType {
				checkKinds(t, name+"."+f.name, e)
			}
		default:
			if e != rawType {
				t.Errorf("%s.%s is %s", name, f.name, e)
			}
		}
	}
}
