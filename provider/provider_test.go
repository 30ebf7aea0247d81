package provider_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"culm/provider"
)

func TestChunks_NeverCutsInsideACharacter(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat(strings.Repeat("a", 47)+"é", 100), // a cut at 48 falls inside the é
		strings.Repeat("😀", 33), "", "a", "é", "añb", "\x00é\x00",
	} {
		for _, size := range []int{-1, 0, 1, 2, 3, 4, 5, 47, 48, 49, 4096} {
			pieces := slices.Collect(provider.Chunks(text, size))
			if got := strings.Join(pieces, ""); got != text {
				t.Fatalf("Chunks(%q, %d) joined = %q", text, size, got)
			}
			for _, p := range pieces {
				if !utf8.ValidString(p) {
					t.Errorf("Chunks(%q, %d): %q is cut inside a character", text, size, p)
				}
				if len(p) > max(size, utf8.UTFMax) {
					t.Errorf("Chunks(%q, %d): %q is too long", text, size, p)
				}
			}
		}
	}
}

func TestChunks_EndsOnBytesThatAreNotText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\x80", 100)
	for _, size := range []int{0, 1, 3, 7} {
		if got := strings.Join(slices.Collect(provider.Chunks(text, size)), ""); got != text {
			t.Errorf("Chunks of %d: joined = %q", size, got)
		}
	}
}

func TestRegistry_HoldsOneInstancePerID(t *testing.T) {
	t.Parallel()
	var r provider.Registry
	if err := errors.Join(r.Add("b", nil), r.Add("a", nil)); err != nil {
		t.Fatal(err)
	}
	if r.Add("a", nil) == nil || r.Add("", nil) == nil {
		t.Error("a taken and an empty id were accepted")
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.IDs()); diff != "" {
		t.Errorf("IDs (-want +got):\n%s", diff)
	}
	if _, ok := r.Get("c"); ok {
		t.Error("Get found an instance nobody added")
	}
}
