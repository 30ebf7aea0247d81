package projection

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// writer writes rows of some views over the writing connection, within a
// transaction that the caller holds.
type writer struct {
	db       *database
	ctx      context.Context //nolint:containedctx // of the transaction
	views    []view
	prepared map[string]*sql.Stmt
	indexed  []indexed // messages for the index of words, at the end of the transaction
}

// indexed is a message whose words are to be found.
type indexed struct {
	id      int64
	content string
}

func newWriter(ctx context.Context, db *database, views []view) *writer {
	return &writer{db: db, ctx: ctx, views: views, prepared: map[string]*sql.Stmt{}}
}

// close gives the prepared statements back.
func (w *writer) close() {
	for _, s := range w.prepared {
		_ = s.Close() // of statements only
	}
	w.prepared = map[string]*sql.Stmt{}
}

// put runs one statement.
func (w *writer) put(statement string, args []any) error {
	_, err := w.exec(statement, args)
	return err
}

func (w *writer) exec(statement string, args []any) (sql.Result, error) {
	s := w.prepared[statement]
	if s == nil {
		var err error
		if s, err = w.db.write.PrepareContext(w.ctx, statement); err != nil {
			return nil, err
		}
		w.prepared[statement] = s
	}
	return s.ExecContext(w.ctx, args...)
}

// message writes a message; its words follow with index.
func (w *writer) message(m *messageRow) error {
	r, err := w.exec(messagesInsert, messagesTable.values(m))
	if err != nil {
		return err
	}
	id, err := r.LastInsertId()
	w.indexed = append(w.indexed, indexed{id, m.Content})
	return err
}

// index adds the transaction's messages to the index of words. It comes last,
// and not by a trigger: SQLite makes the index write itself out before every
// statement that it might have to undo (triggers and upserts are such), which
// costs more than all else.
func (w *writer) index() error {
	for _, m := range w.indexed {
		if err := w.put("INSERT INTO messages_fts (rowid, content) VALUES (?, ?)", []any{m.id, m.content}); err != nil {
			return fmt.Errorf("view messages: %w", err)
		}
	}
	return nil
}

// transact runs f in a transaction of the process that owns the database, and
// returns ErrTaken if that is another one by now.
func (w *writer) transact(f func() error) error {
	defer func() { w.indexed = w.indexed[:0] }()
	return inTransaction(w.ctx, w.db.write, func() error {
		var owner string
		if err := w.db.write.QueryRowContext(w.ctx, "SELECT value FROM meta WHERE key = 'owner'").Scan(&owner); err != nil {
			return err
		}
		if owner != w.db.owner {
			return ErrTaken
		}
		if err := f(); err != nil {
			return err
		}
		return w.index()
	})
}

// write writes what has changed of one session.
func (w *writer) write(l *live) error {
	for i := range w.views {
		if err := w.views[i].write(w, l); err != nil {
			return fmt.Errorf("view %s: %w", w.views[i].name, err)
		}
	}
	return nil
}

// remove removes all rows of a session from the views.
func (w *writer) remove(session string) error {
	for i := range w.views {
		if err := w.put("DELETE FROM "+w.views[i].tables[0]+" WHERE session = ?", []any{session}); err != nil {
			return fmt.Errorf("view %s: %w", w.views[i].name, err)
		}
	}
	return nil
}

// renew drops the tables of the writer's views and makes them anew, empty; the
// views count as unfinished until finish.
func (w *writer) renew() error {
	return w.transact(func() error {
		for i := range w.views {
			v := &w.views[i]
			var b strings.Builder
			for _, t := range v.tables {
				b.WriteString("DROP TABLE IF EXISTS " + t + ";\n")
			}
			create, err := schema.ReadFile("views/" + v.name + ".sql")
			if err != nil {
				return err
			}
			b.Write(create)
			if _, err := w.db.write.ExecContext(w.ctx, b.String()); err != nil {
				return fmt.Errorf("view %s: %w", v.name, err)
			}
			if err := w.setVersion(v.name, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// finish notes that the views stand at their versions.
func (w *writer) finish() error {
	return w.transact(func() error {
		for i := range w.views {
			if err := w.setVersion(w.views[i].name, w.views[i].version); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) setVersion(name string, version int) error {
	return w.put("INSERT INTO views VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET version = ?2", []any{name, version})
}

// staleViews are the views whose version in the database is not the program's,
// and the names of views that the program does not have any more.
func staleViews(ctx context.Context, db querier, have []view) (stale []view, unknown []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name, version FROM views")
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	stored := map[string]int{}
	for rows.Next() {
		var name string
		var version int
		if err := rows.Scan(&name, &version); err != nil {
			return nil, nil, err
		}
		stored[name] = version
	}
	for _, v := range have {
		if stored[v.name] != v.version {
			stale = append(stale, v)
		}
		delete(stored, v.name)
	}
	for name := range stored {
		unknown = append(unknown, name)
	}
	return stale, unknown, rows.Err()
}
