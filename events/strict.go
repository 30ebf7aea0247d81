package events

import (
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
// data, lone surrogates and nesting over MaxDepth.
func UnmarshalStrict(b []byte, v any) error {
	if err := checkDepth(b); err != nil {
		return err
	}
	return json.Unmarshal(b, v, strictOptions)
}

// checkDepth walks the bytes once, outside of strings; it says nothing about
// whether they are JSON.
func checkDepth(b []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("%w: more than %d levels", ErrTooDeep, MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
