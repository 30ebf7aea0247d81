package archtest

import (
	"slices"
	"strings"
)

// module is the path that begins every import of the module itself.
const module = "culm"

// layer is one folder of the module, its subfolders included, and what its
// code, tests aside, may import of the module. A folder always may import its
// own subfolders.
type layer struct {
	folder string
	may    []string
}

// all is every layer but the commands, which nobody imports.
var all = []string{"events", "aggregate", "bus", "provider", "tool", "runner", "projection", "examples", "internal/show", "internal/config", "internal/version", "internal/engine"}

// layers is the import picture, from the core outwards. Folders of internal
// that are not named here are help for tests and imported by tests only.
var layers = []layer{
	{"events", nil},
	{"aggregate", []string{"events"}},
	{"bus", []string{"events", "aggregate"}},
	{"provider", nil},
	{"tool", []string{"provider"}},
	{"runner", []string{"events", "aggregate", "provider", "tool"}},
	{"projection", []string{"events", "aggregate"}},
	{"examples", nil},
	{"internal/show", []string{"events"}},
	{"internal/config", []string{"events", "aggregate"}},
	{"internal/version", nil},
	{"internal/engine", all},
	{"cmd", all},
}

// library is an outside import and the folders whose code may have it.
type library struct {
	path string // a package and all below it
	in   []string
	why  string
}

var libraries = []library{
	{"github.com/nats-io", []string{"bus", "cmd", "internal"}, "the core, the runner and the views do not know how events travel"},
	{"database/sql", []string{"projection"}, "views alone know SQL"},
	{"modernc.org/sqlite", []string{"projection"}, "views alone know SQL"},
	{"net/http", []string{"provider", "tool", "projection", "cmd", "internal/engine"}, "the core, the bus and the runner speak no HTTP"},
	{"github.com/alecthomas/kong", []string{"cmd"}, "flags belong to commands"},
	{"os", []string{"bus", "provider", "tool", "projection", "cmd", "internal"}, "the core and the runner do no input or output"},
	{"net", []string{"bus", "provider", "tool", "projection", "cmd", "internal"}, "the core and the runner do no input or output"},
	{"pgregory.net/rapid", nil, "for tests"},
	{"github.com/google/go-cmp", nil, "for tests"},
	{"github.com/anishathalye/porcupine", nil, "for tests"},
	{"github.com/cockroachdb/datadriven", nil, "for tests"},
}

// pure folders decide nothing by chance and take times and ids from their callers.
var pure = []string{"events", "aggregate"}

// shell says that a file of a pure folder is the shell around the core, which
// has the clock and waits between attempts: the files of aggregate.Handler.
func shell(folder, file string) bool {
	return folder == "aggregate" && strings.HasPrefix(file, "handler")
}

// impure are the functions that pure folders do not call; "*" is all of them.
var impure = map[string][]string{
	"time":                     {"Now", "Since", "Until"},
	"github.com/google/uuid":   {"New", "NewString", "NewRandom", "NewUUID", "NewV6", "NewV7"},
	"math/rand":                {"*"},
	"math/rand/v2":             {"*"},
	"crypto/rand":              {"*"},
	"github.com/oklog/ulid/v2": {"Make", "Now", "MustNew", "New"},
}

// isImpure says that name of the package at path is not for the core.
func isImpure(path, name string) bool {
	names := impure[path]
	return slices.Contains(names, name) || slices.Contains(names, "*")
}

// within says that path is folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// judge says why code in folder may not import path, or "". Tests and the
// folders that only tests import may import anything but commands.
func judge(folder, path string, test bool) string {
	own, inside := strings.CutPrefix(path, module+"/")
	switch {
	case inside && within(own, "cmd") && !within(folder, own):
		return "commands are not imported"
	case test || helpsTests(folder):
		return ""
	case inside:
		return judgeOwn(folder, own)
	}
	for _, l := range libraries {
		if within(path, l.path) && !withinAny(folder, l.in) {
			return l.why
		}
	}
	return ""
}

func judgeOwn(folder, path string) string {
	if helpsTests(path) {
		return "it is help for tests"
	}
	for _, l := range layers {
		if within(folder, l.folder) {
			if within(path, l.folder) || withinAny(path, l.may) {
				return ""
			}
			return "the picture does not have this import"
		}
	}
	return "the folder is not in the picture: add it to the layers"
}

// helpsTests says that the folder is one of internal that the picture does not name.
func helpsTests(folder string) bool {
	return within(folder, "internal") && !slices.ContainsFunc(layers, func(l layer) bool { return within(folder, l.folder) })
}
