package projection

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// What can go wrong with a database, by what the caller should do.
var (
	// ErrLocked: another process writes to the database. Stop it, or use
	// another file.
	ErrLocked = errors.New("another projector uses this database")
	// ErrTaken: another process has taken the database over; this one must end.
	ErrTaken = errors.New("another projector has taken this database over")
	// ErrNewer: a newer program made the database. Use that one, or another file.
	ErrNewer = errors.New("the database was made by a newer program")
	// ErrOtherLog: the database belongs to another log, whose views would be
	// lost. Use another file.
	ErrOtherLog = errors.New("these views are of another server")
)

// database is one file: one connection that writes, a few that read.
type database struct {
	file  string
	lock  *fileLock
	pool  *sql.DB // of the writing connection
	write *sql.Conn
	read  *sql.DB
	owner string // token that every transaction compares

	logID    string // Options.LogID
	takeOver bool
	log      *slog.Logger
}

// readers is how many queries run at once.
const readers = 4

// openDatabase opens the file for writing, makes it if it is not there, takes
// over one that a rebuild left, and brings its tables up to date. It returns
// ErrLocked, ErrNewer, ErrOtherLog, or what SQLite says.
func openDatabase(ctx context.Context, o *Options) (*database, error) {
	file := o.File
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: it is no file", file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil { // one that is there keeps its mode
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	lock, err := lockFile(file + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	d := &database{file: file, lock: lock, owner: rand.Text(), logID: o.LogID, takeOver: o.TakeOver, log: o.Logger}
	err = adopt(file, o.Logger)
	if err == nil {
		err = begin(file)
	}
	if err == nil {
		err = d.open(ctx)
	}
	if err == nil { // not before it is known to be a database of views
		err = private(file)
	}
	if err != nil {
		_ = d.close() // the first error is the one to tell
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return d, nil
}

// begin makes the file, for its owner only, if it is not there: SQLite would
// make it for everybody, and gives the files that it adds the mode of this one.
func begin(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// private keeps the database and what stands beside it from everybody but its
// owner, whoever made it: the views hold all that was said.
func private(file string) error {
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if err := os.Chmod(file+suffix, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (d *database) open(ctx context.Context) (err error) {
	if d.pool, err = sql.Open("sqlite", dataSource(d.file, "journal_mode(WAL)", "synchronous(NORMAL)", "wal_autocheckpoint(4000)", "cache_size(-32768)")); err != nil {
		return err
	}
	if d.write, err = d.pool.Conn(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, d.write); err != nil {
		return err
	}
	if err := d.belong(ctx); err != nil {
		return err
	}
	if err := d.setMeta(ctx, "owner", d.owner); err != nil {
		return err
	}
	d.read, err = openReader(d.file)
	return err
}

// belong makes sure that the views are of this log, and says so in a database
// that does not know yet whose it is.
func (d *database) belong(ctx context.Context) error {
	if d.logID == "" {
		return nil
	}
	var was string
	err := d.write.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'log'").Scan(&was)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case was == d.logID:
		return nil
	case was != "" && !d.takeOver:
		return ErrOtherLog
	case was != "":
		d.log.Warn("the views were computed from another log, and follow the one that is here now", "file", d.file)
	}
	return d.setMeta(ctx, "log", d.logID)
}

func (d *database) setMeta(ctx context.Context, key, value string) error {
	_, err := d.write.ExecContext(ctx, "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2", key, value)
	return err
}

// openReader opens connections that only read.
func openReader(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dataSource(file, "query_only(1)", "cache_size(-4096)"))
	if err == nil {
		db.SetMaxOpenConns(readers)
		db.SetMaxIdleConns(readers)
	}
	return db, err
}

func dataSource(file string, pragmas ...string) string {
	q := url.Values{"_pragma": append(pragmas, "busy_timeout(5000)", "temp_store(MEMORY)"), "_txlock": {"deferred"}}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + q.Encode()
}

// close waits for queries that run and gives the lock back.
func (d *database) close() error { return errors.Join(d.closeFiles(), d.lock.release()) }

// closeFiles closes the connections and keeps the lock.
func (d *database) closeFiles() error {
	var errs []error
	if d.read != nil {
		errs = append(errs, d.read.Close())
	}
	if d.write != nil {
		errs = append(errs, d.write.Close())
	}
	if d.pool != nil {
		errs = append(errs, d.pool.Close())
	}
	d.read, d.write, d.pool = nil, nil, nil
	return errors.Join(errs...)
}

// migrate runs the migrations that the database has not seen, in the order of
// their names, each in a transaction.
func migrate(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID"); err != nil {
		return err
	}
	files, err := fs.Glob(schema, "migrations/*.sql") // sorted
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f), ".sql")
		known[name] = true
		if err := migrateOne(ctx, c, f, name); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return unknownMigrations(ctx, c, known)
}

func migrateOne(ctx context.Context, c *sql.Conn, file, name string) error {
	var n int
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM migrations WHERE name = ?", name).Scan(&n); err != nil || n > 0 {
		return err
	}
	statements, err := schema.ReadFile(file)
	if err != nil {
		return err
	}
	return inTransaction(ctx, c, func() error {
		if _, err := c.ExecContext(ctx, string(statements)); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, "INSERT INTO migrations VALUES (?)", name)
		return err
	})
}

func unknownMigrations(ctx context.Context, c *sql.Conn, known map[string]bool) error {
	rows, err := c.QueryContext(ctx, "SELECT name FROM migrations")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if !known[name] {
			return fmt.Errorf("%w: it has the migration %s", ErrNewer, name)
		}
	}
	return rows.Err()
}

// inTransaction commits what f does, or undoes it if f fails.
func inTransaction(ctx context.Context, c *sql.Conn, f func() error) error {
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// Also where ctx has ended: the connection goes on without a transaction.
		_, undo := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, undo)
	}
	return nil
}
