package events_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"culm/events"
)

var update = flag.Bool("update", false, "write docs/events.md and golden files that are not there yet")

func goldenFile(eventType string, version int) string {
	return filepath.Join("testdata", "golden", fmt.Sprintf("%s.v%d.json", eventType, version))
}

// TestGolden_OneForEachTypeAndVersion: what was ever stored stays readable.
// A golden file is added and never changed: a shape that no longer fits its
// file needs a new version and an upcaster (docs/events.md).
func TestGolden_OneForEachTypeAndVersion(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, d := range events.Definitions() {
		for version := 1; version <= d.Version; version++ {
			name := goldenFile(d.Type, version)
			known[name] = true
			t.Run(filepath.Base(name), func(t *testing.T) {
				checkGolden(t, d, version, readGolden(t, d, version))
			})
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil || len(files) < len(known) {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s: no registered type and version; types are never taken away", f)
		}
	}
}

// readGolden returns the stored bytes; with -update it first adds the file of a
// newest version that has none.
func readGolden(t *testing.T, d events.Definition, version int) []byte {
	t.Helper()
	name := goldenFile(d.Type, version)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && *update && version == d.Version {
		if b, err = events.Encode(sampleEvent(full(d))); err == nil {
			err = os.WriteFile(name, b, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkGolden(t *testing.T, d events.Definition, version int, stored []byte) {
	t.Helper()
	e, err := events.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if e.Type != d.Type || e.Version != version || reflect.TypeOf(e.Data) != d.GoType() {
		t.Fatalf("decodes as %s version %d, %T", e.Type, e.Version, e.Data)
	}
	again, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if version < d.Version {
		return
	}
	if !bytes.Equal(stored, again) {
		t.Errorf("encodes to other bytes (-stored +encoded):\n%s", cmp.Diff(string(stored), string(again)))
	}
	want := pathsOf(d.GoType(), "")
	slices.Sort(want)
	got := presentPaths(e.Raw, want, "")
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the fields of the type and of its golden file differ (-type +golden): bump the version and add an upcaster\n%s", diff)
	}
}

// presentPaths lists the paths in v as far as known goes: what is inside raw
// objects and maps is the writer's own.
func presentPaths(v jsontext.Value, known []string, prefix string) (out []string) {
	var list []jsontext.Value
	var members map[string]jsontext.Value
	switch v.Kind() {
	case '[':
		must(json.Unmarshal(v, &list))
	case '{':
		must(json.Unmarshal(v, &members))
	}
	for _, e := range list {
		out = append(out, presentPaths(e, known, prefix)...)
	}
	if !slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(p, prefix) }) {
		return out
	}
	for k, e := range members {
		out = append(out, prefix+k)
		out = append(out, presentPaths(e, known, prefix+k+".")...)
	}
	return out
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
