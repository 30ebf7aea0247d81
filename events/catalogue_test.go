package events_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"culm/events"
)

const catalogueFile = "../docs/events.md"

// TestCatalogue_IsCurrent: docs/events.md says what the registry and the
// comments of its types say. Regenerate it with go generate ./events.
func TestCatalogue_IsCurrent(t *testing.T) {
	want := writeCatalogue(t)
	if *update {
		if err := os.WriteFile(catalogueFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(catalogueFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s has drifted; run go generate ./events (-want +got):\n%s", catalogueFile, diff)
	}
}

func writeCatalogue(t *testing.T) string {
	t.Helper()
	c := catalogue{docs: parseDocs(t), records: map[string]reflect.Type{}}
	c.WriteString(catalogueHead)
	defs := events.Definitions()
	slices.SortStableFunc(defs, func(a, b events.Definition) int { return cmp.Compare(nounRank(a.Type), nounRank(b.Type)) })
	for _, d := range defs {
		c.collect(d.GoType())
		fmt.Fprintf(&c, "| [`%s`](#%s) | %d | %s |\n", d.Type, anchor(d.Type), d.Version, c.summary(d))
	}
	c.WriteString("\n## Events\n")
	for _, d := range defs {
		c.event(d)
	}
	c.WriteString("\n## Records\n\nWhat stands inside the data of several events.\n")
	for _, name := range sortedKeys(c.records) {
		c.record(name)
	}
	return c.String()
}

// nounRank orders the catalogue as a session goes, not by the alphabet.
func nounRank(eventType string) int {
	noun, _, _ := strings.Cut(eventType, ".")
	return slices.Index([]string{"session", "message", "run", "round", "loop", "tool", "approval", "question", "replay", "policy", "note"}, noun)
}

type catalogue struct {
	strings.Builder
	docs    map[string]string       // "Type" or "Type.Field" -> comment
	records map[string]reflect.Type // wire name -> struct
}

// collect notes the records that stand inside t, at any depth.
func (c *catalogue) collect(t reflect.Type) {
	for _, f := range fieldsOf(t) {
		if e := element(f.goType); isRecord(e) {
			c.records[snake(e.Name())] = e
			c.collect(e)
		}
	}
}

func (c *catalogue) event(d events.Definition) {
	fmt.Fprintf(c, "\n### %s\n\n%s\n\nVersion %d", d.Type, c.doc(d.GoType(), d.Type), d.Version)
	if d.Ignorable {
		c.WriteString(", ignorable")
	}
	fmt.Fprintf(c, "; [example](../events/%s).\n\n", filepath.ToSlash(goldenFile(d.Type, d.Version)))
	c.table(d.GoType())
}

func (c *catalogue) record(name string) {
	fmt.Fprintf(c, "\n### %s\n\n%s\n\n", name, c.doc(c.records[name], name))
	c.table(c.records[name])
}

func (c *catalogue) table(t reflect.Type) {
	fields := fieldsOf(t)
	c.WriteString("| field | type | presence | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		presence := "always"
		if f.optional {
			presence = "optional"
		}
		fmt.Fprintf(c, "| `%s` | %s | %s | %s |\n", f.name, c.typeName(f.goType), presence, c.fieldDoc(f, fields))
	}
}

func (c *catalogue) typeName(t reflect.Type) string {
	switch {
	case t == rawType:
		return "object"
	case t == timeType:
		return "time"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return c.typeName(t.Elem())
	case reflect.Slice:
		return "list of " + c.typeName(t.Elem())
	case reflect.Map:
		return "map of strings"
	case reflect.Struct:
		name := snake(t.Name())
		return "[" + name + "](#" + anchor(name) + ")"
	default:
		return t.Kind().String()
	}
}

// doc is the comment of a struct, its Go name replaced by the one on the wire.
func (c *catalogue) doc(t reflect.Type, name string) string {
	return c.prose(replaceWord(c.docs[t.Name()], t.Name(), "`"+name+"`"), fieldsOf(t))
}

func (c *catalogue) fieldDoc(f field, all []field) string {
	return c.prose(c.docs[f.goOwner+"."+f.goName], all)
}

var rulesLink = regexp.MustCompile(`docs/(rules\.md#[a-z-]+)`)

// prose turns a Go comment into one line of Markdown.
func (c *catalogue) prose(s string, fields []field) string {
	for _, f := range fields {
		s = replaceWord(s, f.goName, "`"+f.name+"`")
	}
	s = rulesLink.ReplaceAllString(s, "[rules]($1)")
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

func replaceWord(s, word, by string) string {
	return regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(s, by)
}

// parseDocs collects the comments of all structs and their fields.
func parseDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				collectDocs(docs, g)
			}
		}
	}
	return docs
}

func collectDocs(docs map[string]string, g *ast.GenDecl) {
	for _, s := range g.Specs {
		spec := s.(*ast.TypeSpec)
		docs[spec.Name.Name] = cmp.Or(spec.Doc.Text(), g.Doc.Text())
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				docs[spec.Name.Name+"."+name.Name] = cmp.Or(f.Doc.Text(), f.Comment.Text())
			}
		}
	}
}

var (
	humps      = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	notAnchor  = regexp.MustCompile(`[^a-z0-9_-]`)
	sentenceAt = regexp.MustCompile(`\.(\s|$)`)
)

func snake(s string) string { return strings.ToLower(humps.ReplaceAllString(s, "${1}_$2")) }

// anchor is the fragment that GitHub gives a heading.
func anchor(heading string) string { return notAnchor.ReplaceAllString(heading, "") }

// summary is the first sentence about the type, without its name.
func (c *catalogue) summary(d events.Definition) string {
	s := strings.TrimLeft(strings.TrimPrefix(c.doc(d.GoType(), d.Type), "`"+d.Type+"`"), ": ")
	if at := sentenceAt.FindStringIndex(s); at != nil {
		return s[:at[0]+1]
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestCatalogue_SaysSomethingOfEachType: an event nobody explains is not ready.
func TestCatalogue_SaysSomethingOfEachType(t *testing.T) {
	t.Parallel()
	docs := parseDocs(t)
	for _, d := range events.Definitions() {
		if docs[d.GoType().Name()] == "" {
			t.Errorf("%s: the type has no comment", d.Type)
		}
		if nounRank(d.Type) < 0 {
			t.Errorf("%s: the noun has no place in the catalogue", d.Type)
		}
	}
}

const catalogueHead = `# Event catalogue

<!-- Generated from package events by "go generate ./events"; do not edit. -->

Every event that a log can hold. What an event is and how a reader treats one
is in [contract.md](contract.md#events).

An event is one JSON object, a [CloudEvents 1.0](https://cloudevents.io) event
in structured form. Its attributes stand in this order:

| attribute | type | presence | meaning |
|---|---|---|---|
| ` + "`specversion`" + ` | string | always | ` + "`1.0`" + ` |
| ` + "`id`" + ` | string | always | ULID; increases within the session |
| ` + "`source`" + ` | string | always | ` + "`culm/sessions/`" + ` and the session |
| ` + "`type`" + ` | string | always | name of the event, as below |
| ` + "`subject`" + ` | string | always | the session |
| ` + "`time`" + ` | time | always | clock of the engine that appended it; no order follows from it |
| ` + "`datacontenttype`" + ` | string | always | ` + "`application/json`" + ` |
| ` + "`dataschema`" + ` | string | always | ` + "`culm:`" + `, the type, ` + "`:`" + ` and the version of the data's shape |
| ` + "`seq`" + ` | uint64 | always | position in the session, without gaps |
| ` + "`birth`" + ` | string | always | ULID of this lifetime of the session id |
| ` + "`actor`" + ` | string | always | who gave the command; ` + "`_engine`" + ` for the engine's own facts |
| ` + "`command`" + ` | string | optional | command id; absent for the engine's own facts |
| ` + "`commanddigest`" + ` | string | optional | hex SHA-256 of the command's subject, a zero byte and its body |
| ` + "`run`" + ` | string | optional | run that the event belongs to |
| ` + "`prevhash`" + ` | string | always | hex SHA-256 of the stored bytes of the event before; empty for the first |
| ` + "`traceparent`" + ` | string | optional | W3C trace context of the command |
| ` + "`ignorable`" + ` | bool | optional | true: changes no state, a reader that does not know the type passes over it |
| ` + "`data`" + ` | object | always | as below |

Types: *string* is Unicode text; *uint32* and *uint64* are whole numbers from 0
(readers whose numbers are doubles must read uint64 as text); *time* is RFC 3339
in UTC; *object* is the writer's own JSON object, kept as given but for white
space between its tokens. *Optional* fields are absent instead of empty, zero,
false or null. A field that is not listed makes an event malformed: a new field
is a new version of its event.

## Index

| type | version | meaning |
|---|---|---|
`
