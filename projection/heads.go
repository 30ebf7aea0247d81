package projection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"culm/events"
)

// Heads are the heads of the sessions as the views in the file know them: what
// the log had at least. Nothing is changed; without a file there are none. It is
// for whoever wants to know, before a projector runs, whether the log has become
// shorter: the projector follows the log and forgets what is not in it any more.
func Heads(ctx context.Context, file string) (map[string]events.Head, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no views, no heads
	}
	db, err := openReader(file)
	if err != nil {
		return nil, fmt.Errorf("heads in %s: %w", file, err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT session, birth, seq, hash, event_id FROM checkpoints WHERE seq > 0")
	if err != nil {
		return nil, fmt.Errorf("heads in %s: %w", file, err)
	}
	defer rows.Close()
	heads := map[string]events.Head{}
	for rows.Next() {
		var session string
		var h events.Head
		if err := rows.Scan(&session, &h.Birth, &h.Seq, &h.Hash, &h.ID); err != nil {
			return nil, fmt.Errorf("heads in %s: %w", file, err)
		}
		heads[session] = h
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("heads in %s: %w", file, err)
	}
	return heads, nil
}
