package projection

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"culm/events"
)

// TestOpen_FilesAreTheOwners: the views hold all that was said, so nobody but
// the owner reads them, whatever the umask and whoever made the files.
func TestOpen_FilesAreTheOwners(t *testing.T) {
	log := events.NewMem()
	fill(t, log, "s", 3)
	o := options(t, log)
	dir := filepath.Join(t.TempDir(), "deep", "views")
	o.File = filepath.Join(dir, "views.db")
	start(t, o).awaitReady().stop()
	wantMode(t, dir, 0o700)
	wantMode(t, o.File, 0o600)
	if err := os.Chmod(o.File, 0o644); err != nil { // as an earlier version made it
		t.Fatal(err)
	}
	r := start(t, o).awaitReady()
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		wantMode(t, o.File+suffix, 0o600)
	}
	if err := Rebuild(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	// The new one is in its place before it is open; a query waits for that.
	if _, err := r.Session(t.Context(), SessionQuery{Session: "s"}); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		wantMode(t, o.File+suffix, 0o600)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	o.File = filepath.Join(open, "views.db")
	start(t, o).awaitReady()
	wantMode(t, open, 0o755) // somebody else's folder stays as it is
}

// TestOpen_ForeignFilesStayAsTheyAre: what is no database of views is neither
// changed nor taken, and a folder gets no lock beside it.
func TestOpen_ForeignFilesStayAsTheyAre(t *testing.T) {
	o := options(t, events.NewMem())
	dir := t.TempDir()
	o.File = filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(o.File, []byte("Dear Ada, this is a letter and no database."), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := Open(t.Context(), o); err == nil {
		t.Error("opened a letter", p.Close())
	}
	wantMode(t, o.File, 0o644)
	o.File = filepath.Join(dir, "folder")
	if err := os.Mkdir(o.File, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := Open(t.Context(), o); err == nil {
		t.Error("opened a folder", p.Close())
	}
	if _, err := os.Stat(o.File + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock beside a folder: %v", err)
	}
}

func wantMode(t *testing.T, name string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
	}
}
