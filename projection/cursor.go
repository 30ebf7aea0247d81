package projection

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// cursor names the row that a page ended with.
func cursor[R any](l *listing, m *mapper[R], row *R) string {
	v := reflect.ValueOf(row).Elem()
	parts := []any{l.name}
	for _, o := range l.order {
		parts = append(parts, v.Field(m.index(o)).Interface())
	}
	b, err := json.Marshal(parts)
	if err != nil {
		panic("cursor: " + err.Error()) // of strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// errCursor: a cursor that no page of this query gave.
var errCursor = invalid("the cursor is not one of this query's: give back next as it was, with the same filters")

// resume makes the listing begin after its cursor's row.
func resume[R any](l *listing, m *mapper[R]) error {
	b, err := base64.RawURLEncoding.DecodeString(l.Cursor)
	if err != nil {
		return errCursor
	}
	var parts []jsontext.Value
	var name string
	if json.Unmarshal(b, &parts) != nil || len(parts) != 1+len(l.order) || json.Unmarshal(parts[0], &name) != nil || name != l.name {
		return errCursor
	}
	t := reflect.TypeFor[R]()
	for i, o := range l.order {
		v := reflect.New(t.Field(m.index(o)).Type)
		if json.Unmarshal(parts[i+1], v.Interface()) != nil {
			return errCursor
		}
		l.args = append(l.args, v.Elem().Interface())
	}
	than := ">"
	if l.desc {
		than = "<"
	}
	l.where = append(l.where, fmt.Sprintf("(%s) %s (?%s)", strings.Join(l.order, ", "), than, strings.Repeat(", ?", len(l.order)-1)))
	return nil
}

// index is the place of a column.
func (m *mapper[T]) index(column string) int {
	for i, c := range m.cols {
		if c == column {
			return i
		}
	}
	panic("projection: " + m.table + " has no column " + column)
}
