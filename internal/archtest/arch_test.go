package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// source is one file of the module.
type source struct {
	folder string // from the root of the module
	name   string
	file   *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func sources(t *testing.T) []source {
	t.Helper()
	if mod, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of module %s: %v", root, module, err)
	}
	var out []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		out = append(out, source{filepath.ToSlash(folder), d.Name(), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImportsAreThoseOfThePicture(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := judge(s.folder, path, s.test()); why != "" {
				t.Errorf("%s/%s imports %s: %s", s.folder, s.name, path, why)
			}
		}
	}
}

func TestPurePackagesCallNoClockAndMintNoIDs(t *testing.T) {
	for _, s := range sources(t) {
		if !withinAny(s.folder, pure) || s.test() || shell(s.folder, s.name) {
			continue
		}
		names := map[string]string{} // in this file -> import path
		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			name := packageName(path)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = path
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && isImpure(names[x.Name], sel.Sel.Name) {
				t.Errorf("%s/%s uses %s.%s: times and ids come from the caller", s.folder, s.name, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// packageName guesses the name from the path: its last element that is no version.
func packageName(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && strings.HasPrefix(last, "v") && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	return last
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		folder, path  string
		test, allowed bool
	}{
		{"events", "culm/aggregate", false, false},
		{"events", "culm/aggregate", true, true},
		{"events", "fmt", false, true},
		{"events", "os", false, false},
		{"aggregate", "culm/events", false, true},
		{"aggregate", "github.com/nats-io/nats.go", false, false},
		{"bus", "github.com/nats-io/nats.go", false, true},
		{"bus", "culm/aggregate", false, true},
		{"bus", "culm/runner", false, false},
		{"bus", "culm/internal/natstest", false, false},
		{"bus", "culm/internal/natstest", true, true},
		{"runner", "culm/bus", false, false},
		{"runner", "culm/tool/recorded", false, true},
		{"tool/recorded", "culm/provider/transcript", false, true},
		{"provider/recorded", "culm/provider/transcript", false, true},
		{"provider", "culm/tool", false, false},
		{"internal/show", "culm/bus", false, false},
		{"internal/engine", "culm/bus", false, true},
		{"internal/natstest", "github.com/google/go-cmp/cmp", false, true},
		{"cmd/culm", "culm/internal/show", false, true},
		{"cmd/culm", "culm/internal/natstest", false, false},
		{"cmd/engine", "culm/cmd/culm", true, false},
		{"events", "github.com/google/go-cmp/cmp", false, false},
		{"elsewhere", "culm/events", false, false},
	} {
		if why := judge(c.folder, c.path, c.test); (why == "") != c.allowed {
			t.Errorf("%s imports %s (test %v): %q", c.folder, c.path, c.test, why)
		}
	}
}
