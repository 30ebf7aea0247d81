package events

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSONError says what is wrong with JSON from outside in the words of JSON: the
// field, what it is and what it must be. The decoder's own error, which it
// wraps, names types of Go, which nobody outside knows.
type JSONError struct {
	Where   string // JSON pointer to the value, "" for all of it
	Problem string
	inside  bool // Problem names what stands inside of Where, not Where itself
	cause   error
}

// Error is a sentence without the name of what was decoded; see In.
func (e *JSONError) Error() string {
	switch {
	case e.inside && e.Where == "":
		return e.Problem
	case e.inside:
		return e.Problem + " in " + quotePointer(e.Where)
	case e.Where == "":
		return "it " + e.Problem
	}
	return quotePointer(e.Where) + " " + e.Problem
}

// In is Error for something that has a name, a command for example.
func (e *JSONError) In(name string) string {
	switch {
	case e.inside && e.Where == "":
		return e.Problem + " in " + name
	case e.inside:
		return e.Error() + " of " + name
	}
	return name + ": " + e.Error()
}

// Unwrap gives a *jsontext.SyntacticError for what is not well-formed.
func (e *JSONError) Unwrap() error { return e.cause }

// decodeJSON is json.Unmarshal with strict options and a *JSONError.
func decodeJSON(b []byte, v any) error { return problem(json.Unmarshal(b, v, strictOptions)) }

// problem puts an error of the decoder into words.
func problem(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		text := strings.TrimPrefix(syntax.Error(), "jsontext: ")
		return &JSONError{Problem: strings.Replace(text, "unexpected EOF", "unexpected end", 1), inside: true, cause: syntax}
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	if errors.Is(e, json.ErrUnknownName) {
		return &JSONError{Problem: "unknown field " + clip(e.JSONPointer.LastToken()), inside: true, Where: string(e.JSONPointer.Parent()), cause: err}
	}
	return &JSONError{Problem: "is " + got(e) + ", must be " + wanted(e.GoType), Where: string(e.JSONPointer), cause: err}
}

// got names the value that was found; a number also by its digits.
func got(e *json.SemanticError) string {
	switch e.JSONKind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		if len(e.JSONValue) > 0 {
			return fmt.Sprintf("the number %.40s", e.JSONValue)
		}
		return "a number"
	case 'n':
		return "null"
	case 't', 'f':
		return e.JSONKind.String()
	}
	return "another value"
}

// wanted names what a field of type t takes.
func wanted(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "another value"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		least := int64(-1) << (t.Bits() - 1)
		return fmt.Sprintf("a whole number from %d to %d", least, -(least + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 to " + strconv.FormatUint(^uint64(0)>>(64-t.Bits()), 10)
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "another value"
}

// mostName bounds the bytes of a name from outside in an error.
const mostName = 100

func clip(name string) string {
	if len(name) <= mostName {
		return strconv.Quote(name)
	}
	cut := mostName
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return strconv.Quote(name[:cut]) + "…"
}

// quotePointer leaves out the beginning of a long one.
func quotePointer(p string) string {
	if len(p) <= mostName {
		return strconv.Quote(p)
	}
	cut := len(p) - mostName
	for cut < len(p) && !utf8.RuneStart(p[cut]) {
		cut++
	}
	return "…" + strconv.Quote(p[cut:])
}
