package tool

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Names of the arguments that say what a call touches.
var (
	pathNames = []string{"file_path", "path", "notebook_path"}
	named     = map[string][]string{
		"write": pathNames, "edit": pathNames, "multiedit": pathNames, "notebookedit": pathNames,
		"read": pathNames, "getfileinfo": pathNames, "viewimage": pathNames,
		"bash": {"command"}, "shell": {"command"},
		"webfetch": {"url"},
		"glob":     {"pattern"}, "grep": {"pattern"},
	}
)

// Describe says what a call of a well-known tool touches, as its name and its
// arguments say: the file, the command, the URL. Arguments that do not say it
// beyond doubt (no JSON object, a name twice, two names for the same thing) are
// the resource themselves, as they stand. Tools that ask a person have the
// question as Ask.
func Describe(name, arguments string) Access {
	a := AccessByName(name)
	fields := object(arguments)
	if names, ok := named[strings.ToLower(name)]; ok {
		a.Resource = cmp.Or(only(fields, names), strings.TrimSpace(arguments), name)
	}
	a.Ask = question(strings.ToLower(name), fields)
	return a
}

// object reads a JSON object; nil for anything else.
func object(arguments string) map[string]jsontext.Value {
	var fields map[string]jsontext.Value
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return nil
	}
	return fields
}

// only is the text of the one field that is there of those named, "" for none
// or several.
func only(fields map[string]jsontext.Value, names []string) string {
	found := ""
	for _, name := range names {
		raw, there := fields[name]
		if !there {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil || text == "" || found != "" {
			return ""
		}
		found = text
	}
	return found
}
