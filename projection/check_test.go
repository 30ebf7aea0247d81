package projection

import (
	"testing"

	"culm/events"
)

// TestCheck_FindsDifferences: every kind of damage to every column is found.
func TestCheck_FindsDifferences(t *testing.T) {
	t.Parallel()
	log := events.NewMem()
	newHistory(t, log, 31).run(2, 250)
	o := options(t, log)
	r := start(t, o).awaitReady()
	find := func(damage string) {
		t.Helper()
		tx, err := r.db.pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), damage); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		c := &checker{o: CheckOptions{File: o.File, Log: log}, db: r.db.read, tx: tx}
		if err := c.all(t.Context()); err != nil || c.out.Differences == 0 {
			t.Errorf("%s: %d differences, %v", damage, c.out.Differences, err)
		}
	}
	for _, v := range views {
		table := v.tables[0]
		one := " WHERE rowid = (SELECT min(rowid) FROM " + table + ")"
		key := map[string]string{"runs": "run_id", "rounds": "run_id", "usage": "day", "timeline": "seq"}[table]
		if key != "" { // without rowids
			one = " WHERE (session, " + key + ") IN (SELECT session, " + key + " FROM " + table + " LIMIT 1)"
		}
		find("DELETE FROM " + table + one)
		for _, c := range columns(t, r, table) {
			if c.name != "session" && c.name != "id" && !(table == "timeline" && c.name == "text") {
				find("UPDATE " + table + " SET " + c.name + " = " + c.other + one)
			}
		}
	}
	find("UPDATE checkpoints SET hash = 'x'")
	find("DELETE FROM checkpoints WHERE session = 's1'")
	find("DELETE FROM messages_fts WHERE rowid = 1")
	find("INSERT INTO usage VALUES ('s1', '2026-01-01', '', '', 1, 1, 1, 1)")
}

type column struct{ name, other string }

func columns(t *testing.T, r *running, table string) (out []column) {
	t.Helper()
	rows, err := r.db.read.QueryContext(t.Context(), "SELECT name, type FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		other := name + " || 'x'"
		if name == "idx" || name == "round" {
			other = name + " + 100000"
		} else if kind == "INTEGER" {
			other = "CASE WHEN " + name + " IN (0, 1) THEN 1 - " + name + " ELSE " + name + " + 100000 END"
		}
		out = append(out, column{name, other})
	}
	return out
}
