package events

import (
	"context"
	"maps"
	"slices"
)

// Follow implements Feed. The backlog comes session by session, sorted by
// name; what is live comes in the order in which it was appended. It returns
// the error of handle, or of ctx.
func (m *Mem) Follow(ctx context.Context, opts FollowOptions, handle func(Record) error) error {
	batch, seen := m.backlog(opts)
	for first := true; ; first = false {
		for _, r := range batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !opts.wants(r) {
				continue
			}
			if err := handle(r); err != nil {
				return err
			}
		}
		if first && opts.CaughtUp != nil {
			opts.CaughtUp()
		}
		var err error
		if batch, seen, err = m.live(ctx, seen); err != nil {
			return err
		}
	}
}

// wants says whether a record is of the sessions and after the sequence asked for.
func (o *FollowOptions) wants(r Record) bool {
	return (o.Session == "" || o.Session == r.Session) && r.Seq > o.From[r.Session]
}

// backlog returns what is stored and asked for, and where the live feed goes on.
func (m *Mem) backlog(opts FollowOptions) (stored []Record, seen int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, session := range slices.Sorted(maps.Keys(m.logs)) {
		if after, known := opts.From[session]; known || opts.All {
			stored = append(stored, m.logs[session].between(after, 0)...)
		}
	}
	return stored, len(m.feed)
}

// live waits until the feed is longer than seen and returns what is new.
func (m *Mem) live(ctx context.Context, seen int) ([]Record, int, error) {
	for {
		m.mu.Lock()
		batch, grown := m.feed[seen:len(m.feed):len(m.feed)], m.grown
		m.mu.Unlock()
		if len(batch) > 0 {
			return batch, seen + len(batch), nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, seen, ctx.Err()
		}
	}
}
