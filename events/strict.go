package events

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// MaxDepth bounds the nesting of any JSON that comes from outside.
const MaxDepth = 64

// ErrTooDeep: JSON nested deeper than MaxDepth.
var ErrTooDeep = errors.New("nested too deep")

var strictOptions = json.JoinOptions(json.RejectUnknownMembers(true))

// UnmarshalStrict decodes exactly one JSON value of valid UTF-8 into v. It
// refuses duplicate keys, unknown members, keys that differ in case, trailing
// data, lone surrogates and nesting over MaxDepth; the error is a *JSONError or
// wraps ErrTooDeep. A null leaves the zero value.
func UnmarshalStrict(b []byte, v any) error { return unmarshalStrict(b, v, MaxDepth) }

func unmarshalStrict(b []byte, v any, maxDepth int) error {
	if err := checkDepth(b, maxDepth); err != nil {
		return err
	}
	return decodeJSON(b, v)
}

// checkDepth says nothing about whether the bytes are JSON.
func checkDepth(b []byte, limit int) error {
	// The usual case needs no walk: too few brackets to nest that deep.
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= limit {
		return nil
	}
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return fmt.Errorf("%w: more than %d levels", ErrTooDeep, limit)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
