package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// Page is the answer of a query.
type Page[I any] struct {
	OK    bool   `json:"ok"` // always true
	AsOf  AsOf   `json:"as_of"`
	Items []I    `json:"items"`
	Next  string `json:"next,omitzero"` // cursor of the next page, "" after the last
}

// AsOf says up to where the views are that a page was read from. It names a
// session where the query does.
type AsOf struct {
	Session  string `json:"session,omitzero"`
	Sequence uint64 `json:"sequence,omitzero"`
}

// List is the part of a request that asks for a page.
type List struct {
	Limit  *int   `json:"limit,omitzero"`  // 1 to 500, 50 if absent
	Cursor string `json:"cursor,omitzero"` // the former page's next
}

// Bounds of List.Limit.
const (
	defaultLimit = 50
	maxLimit     = 500
)

func (l List) limit() (int, error) {
	switch {
	case l.Limit == nil:
		return defaultLimit, nil
	case *l.Limit < 1 || *l.Limit > maxLimit:
		return 0, invalid("limit is %d, allowed are 1 to %d", *l.Limit, maxLimit)
	}
	return *l.Limit, nil
}

// listing is a SELECT of rows in pages. A page begins after the cursor's row,
// in the order of columns whose values together are unique; so rows that come
// or go meanwhile neither repeat others nor hide them.
type listing struct {
	name  string // of the query and order; a cursor is good for one
	from  string // instead of the table
	where []string
	args  []any
	order []string
	desc  bool
	List
}

func (l *listing) filter(condition string, args ...any) {
	l.where, l.args = append(l.where, condition), append(l.args, args...)
}

// equal adds a filter unless the value is empty.
func (l *listing) equal(column, value string) {
	if value != "" {
		l.filter(column+" = ?", value)
	}
}

func (l *listing) statement(selects string, limit int) string {
	direction := ""
	if l.desc {
		direction = " DESC"
	}
	where := ""
	if len(l.where) > 0 {
		where = " WHERE " + strings.Join(l.where, " AND ")
	}
	return fmt.Sprintf("%s%s ORDER BY %s%s LIMIT %d", selects, where, strings.Join(l.order, direction+", "), direction, limit)
}

// list reads one page of rows, as many as fit into an answer.
func list[R, I any](ctx context.Context, p *Projector, tx *sql.Tx, m *mapper[R], l listing, item func(*R) (I, error)) (items []I, next string, err error) {
	limit, err := l.limit()
	if err != nil {
		return nil, "", err
	}
	if l.Cursor != "" {
		if err := resume(&l, m); err != nil {
			return nil, "", err
		}
	}
	selects := m.selects()
	if l.from != "" {
		selects = "SELECT " + strings.Join(m.cols, ", ") + " FROM " + l.from
	}
	rows, err := tx.QueryContext(ctx, l.statement(selects, limit+1), l.args...)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", l.name, err)
	}
	defer rows.Close()
	items, room, last := []I{}, p.opts.MaxReply-1024, new(R)
	for rows.Next() {
		row := new(R)
		if err := rows.Scan(m.pointers(row)...); err != nil {
			return nil, "", fmt.Errorf("%s: %w", l.name, err)
		}
		if len(items) == limit {
			return items, cursor(&l, m, last), nil
		}
		it, err := item(row)
		if err != nil {
			return nil, "", err
		}
		size := measure(&it, room, len(items) == 0)
		if room -= size; room < 0 && len(items) > 0 {
			return items, cursor(&l, m, last), nil
		}
		items, last = append(items, it), row
	}
	return items, "", rows.Err()
}

// shrinker is an item that can be shown with less text.
type shrinker interface{ shrink(limit int) }

// measure is the size of an item's JSON. An item that alone is too large for
// an answer is shown with less text if it must be shown now.
func measure[I any](item *I, room int, must bool) int {
	size := jsonSize(item)
	if s, ok := any(item).(shrinker); ok && must && size > room {
		s.shrink(room / 16) // JSON spells a control character with six bytes
		size = jsonSize(item)
	}
	return size
}

func jsonSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // the answer's own encoding will tell
	}
	return len(b) + 1
}

// asOf is up to where a session is, read in the same transaction as the rows.
func asOf(ctx context.Context, tx *sql.Tx, session string) (AsOf, error) {
	var seq int64
	err := tx.QueryRowContext(ctx, "SELECT seq FROM checkpoints WHERE session = ?", session).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return AsOf{}, notFound(session)
	}
	return AsOf{Session: session, Sequence: uint64(seq)}, err //nolint:gosec // was a sequence
}

// query waits, reads a page in one transaction, and says as of what.
func query[I any](ctx context.Context, p *Projector, w Wait, session string, read func(tx *sql.Tx, out *Page[I]) error) (Page[I], error) {
	out := Page[I]{OK: true, Items: []I{}}
	if session != "" && !events.ValidToken(session) {
		return out, &Error{Code: CodeInvalidToken, Message: "session is no token"}
	}
	if err := p.whole(); err != nil {
		return out, err
	}
	for {
		if err := w.until(ctx, &p.pos); err != nil {
			return out, err
		}
		err := p.look(ctx, func(tx *sql.Tx) (err error) {
			if !w.reached(&p.pos) {
				return errWentBack
			}
			if session != "" {
				if out.AsOf, err = asOf(ctx, tx, session); err != nil {
					return err
				}
			}
			return read(tx, &out)
		})
		if !errors.Is(err, errWentBack) {
			return out, err
		}
	}
}

// errWentBack: after the wait, and before the look, another database took the
// place of the one that was waited for.
var errWentBack = errors.New("the views went back")

// whole refuses while views are being computed anew: they would show a part as
// if it were all.
func (p *Projector) whole() error {
	var name any
	p.stats.rebuilding.Range(func(key, _ any) bool { name = key; return false })
	if name == nil {
		return nil
	}
	return &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the view %s is being computed anew, try again later", name)}
}

// oneOf checks an optional enumeration.
func oneOf(field, value string, allowed ...string) error {
	if value == "" {
		return nil
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return invalid("%s is %.40q, allowed are %s", field, value, strings.Join(allowed, ", "))
}

// when is a time of the views; the zero time for none.
func when(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// ageMS is how long ago a time of the views was, 0 for none and for what lies
// ahead: clocks differ.
func (p *Projector) ageMS(ns int64) int64 {
	if ns == 0 {
		return 0
	}
	return max(0, p.opts.Now().Sub(when(ns)).Milliseconds())
}

// object is JSON that a view keeps as text.
func object(s string) jsontext.Value {
	if s == "" {
		return nil
	}
	return jsontext.Value(s)
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
