package projection

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var itemField = regexp.MustCompile("`([a-z_]+\\??)`")

// TestItems_AreThoseOfTheContract: the tables of docs/contract.md name each field
// of each item, and mark those that may be left out.
func TestItems_AreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Items\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for query, item := range map[string]any{
		"sessions.list": SessionItem{}, "runs.list": RunItem{}, "loops.list": LoopItem{}, "rounds.list": RoundItem{}, "tools.list": ToolItem{},
		"approvals.list": ApprovalItem{}, "transcript.get": MessageItem{}, "timeline.get": TimelineItem{}, "messages.search": SearchItem{}, "usage.get": UsageItem{},
	} {
		_, table, found := strings.Cut(section, "\n`"+query+"`")
		_, table, _ = strings.Cut(table, "\n| field |")
		table, _, _ = strings.Cut(table, "\n\n")
		if !found {
			t.Errorf("the contract has no items of %s", query)
			continue
		}
		var documented []string
		for row := range strings.Lines(table) {
			cells := strings.SplitN(row, "|", 3)
			for _, m := range itemField.FindAllStringSubmatch(cells[min(1, len(cells)-1)], -1) {
				documented = append(documented, m[1])
			}
		}
		if query == "loops.list" { // "session and the fields of loop above"
			documented = append(documented, append(fieldsOf(reflect.TypeFor[LoopProgress]()), "session")...)
		}
		slices.Sort(documented)
		if fields := fieldsOf(reflect.TypeOf(item)); !slices.Equal(documented, fields) {
			t.Errorf("%s:\nthe contract %v\nthe code     %v", query, documented, fields)
		}
	}
}

// fieldsOf are the JSON names of a struct's fields, sorted; ? marks what may be
// left out.
func fieldsOf(s reflect.Type) (names []string) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			names = append(names, fieldsOf(f.Type)...)
		case options == "omitzero":
			names = append(names, name+"?")
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
