package projection

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"culm/events"
)

// TestOpen_SecondProjector: one process at a time writes to a file.
func TestOpen_SecondProjector(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	o := options(t, log)
	r := start(t, o).awaitReady()
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLocked) {
		t.Errorf("a second projector: %v", err)
	}
	// Where locks do not work, the one that came first ends.
	if _, err := r.db.pool.ExecContext(t.Context(), "UPDATE meta SET value = 'another' WHERE key = 'owner'"); err != nil {
		t.Fatal(err)
	}
	fill(t, log, "s", 2)
	select {
	case err := <-r.ended:
		if !errors.Is(err, ErrTaken) {
			t.Errorf("Run: %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		t.Error("the former projector goes on")
	}
	var rows int
	if err := r.db.read.QueryRowContext(t.Context(), "SELECT count(*) FROM timeline").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestRun_ChangedViews: a view of another version is computed anew, the others
// are left alone.
func TestRun_ChangedViews(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	newHistory(t, log, 21).run(5, 400)
	o := options(t, log)
	r := start(t, o).awaitReady()
	for _, spoil := range []string{"DELETE FROM tools", "UPDATE messages SET content = 'x'", "UPDATE views SET version = 0 WHERE name IN ('tools', 'messages')"} {
		if _, err := r.db.write.ExecContext(t.Context(), spoil); err != nil {
			t.Fatal(err)
		}
	}
	r.stop()
	r = start(t, o).awaitReady()
	if n := r.stats.applied.Load(); n != 0 {
		t.Errorf("%d events were applied to views that were up to date", n)
	}
	check(t, o.File, log)
}

// TestRebuild switches to a database that was built beside a running one.
func TestRebuild(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	h := newHistory(t, log, 23).run(5, 400)
	o := options(t, log)
	r := start(t, o).awaitReady()
	spoil := func(statement string) {
		if _, err := r.db.write.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	spoil("UPDATE messages SET content = 'x'")
	if err := Rebuild(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	h.run(5, h.Events+50)
	r.await(log)
	check(t, o.File, log)
	r.stop()
	if err := Rebuild(t.Context(), o); err != nil { // with nobody there
		t.Fatal(err)
	}
	check(t, o.File, log)
	left, err := filepath.Glob(o.File + ".*")
	if err != nil || len(left) > 1 {
		t.Errorf("left beside the database: %v", left)
	}
	if _, err := os.Stat(o.File); err != nil {
		t.Error(err)
	}
}
