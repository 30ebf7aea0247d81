package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"culm/events"
	"culm/projection"
)

// TestViews_AdviceForADamagedFile: who reads the log is told what heals it.
func TestViews_AdviceForADamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, viewsFile)
	if err := os.WriteFile(file, []byte(strings.Repeat("no database. ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := projection.Open(t.Context(), projection.Options{File: file, Log: events.NewMem(), Feed: nil})
	if err == nil {
		t.Fatal("it was opened")
	}
	v := &views{e: &engine{cfg: Config{Data: dir}}}
	if got := v.advice(err); !strings.Contains(got, "remove "+file) || !strings.Contains(got, "projector rebuild") {
		t.Errorf("%v: %s", err, got)
	}
	if got := v.advice(events.ErrUnavailable); strings.Contains(got, "remove") {
		t.Error(got)
	}
}
