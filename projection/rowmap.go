package projection

import (
	"reflect"
	"slices"
	"strings"
)

// mapper ties a struct of strings, int64s and bools to a table with a column
// for each field, named like the field in snake case.
type mapper[T any] struct {
	table string
	cols  []string
	keys  []string
}

// mapOf panics if a key is no column: such a program must not start.
func mapOf[T any](table string, keys ...string) *mapper[T] {
	m := &mapper[T]{table: table, keys: keys}
	for f := range reflect.TypeFor[T]().Fields() {
		m.cols = append(m.cols, snake(f.Name))
	}
	for _, k := range keys {
		if !slices.Contains(m.cols, k) {
			panic("projection: " + table + " has no column " + k)
		}
	}
	return m
}

// snake spells ToolCallID as tool_call_id.
func snake(name string) string {
	isUpper := func(i int) bool { return 'A' <= name[i] && name[i] <= 'Z' }
	var b strings.Builder
	for i := range len(name) {
		if isUpper(i) && i > 0 && (!isUpper(i-1) || i+1 < len(name) && !isUpper(i+1)) {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(name[i : i+1]))
	}
	return b.String()
}

// values are the row's fields in the order of the columns.
func (m *mapper[T]) values(row *T) []any {
	v := reflect.ValueOf(row).Elem()
	out := make([]any, len(m.cols))
	for i := range out {
		out[i] = v.Field(i).Interface()
	}
	return out
}

// pointers are where a scan puts a row, in the order of the columns.
func (m *mapper[T]) pointers(row *T) []any {
	v := reflect.ValueOf(row).Elem()
	out := make([]any, len(m.cols))
	for i := range out {
		out[i] = v.Field(i).Addr().Interface()
	}
	return out
}

// selects is SELECT of all columns, without a condition.
func (m *mapper[T]) selects() string {
	return "SELECT " + strings.Join(m.cols, ", ") + " FROM " + m.table
}

func (m *mapper[T]) insert() string {
	return "INSERT INTO " + m.table + " (" + strings.Join(m.cols, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(m.cols)-1) + ")"
}

// upsert inserts a row or, under the same key, sets all its other columns.
func (m *mapper[T]) upsert() string {
	var set []string
	for _, c := range m.cols {
		if !slices.Contains(m.keys, c) {
			set = append(set, c+" = excluded."+c)
		}
	}
	return m.insert() + " ON CONFLICT (" + strings.Join(m.keys, ", ") + ") DO UPDATE SET " + strings.Join(set, ", ")
}
