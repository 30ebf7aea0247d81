package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const handBackBucket = "culm_handback"

// Held is a run that its holder gave back at a graceful stop, with nothing of
// it under way: whoever has the fence may go on with it.
type Held struct {
	RunID string `json:"run_id"`
	Fence uint64 `json:"fence"`
}

// HandBacks keeps the runs that engines gave back when they stopped, by
// session, until an engine that starts takes them. It is a hint: the fence
// decides whether the run is still to be had.
type HandBacks struct{ kv jetstream.KeyValue }

// NewHandBacks opens the bucket, and makes it if it is missing.
func NewHandBacks(ctx context.Context, nc *nats.Conn, replicas int) (*HandBacks, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("hand-backs: %w", err)
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: handBackBucket, Description: "runs given back at a graceful stop", History: 1,
		Storage: jetstream.FileStorage, Replicas: max(replicas, 1),
	})
	if err != nil {
		return nil, fmt.Errorf("hand-backs: bucket %s: %w", handBackBucket, err)
	}
	return &HandBacks{kv}, nil
}

// Put gives a run back.
func (h *HandBacks) Put(ctx context.Context, session string, run Held) error {
	b, err := json.Marshal(run)
	if err == nil {
		_, err = h.kv.Put(ctx, session, b)
	}
	if err != nil {
		return fmt.Errorf("hand back %s: %w", session, err)
	}
	return nil
}

// Take removes and returns all runs that were given back, by session. Of two
// engines that take at once each run goes to one of them.
func (h *HandBacks) Take(ctx context.Context) (map[string]Held, error) {
	keys, err := h.kv.Keys(ctx)
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, nil //nolint:nilnil // nothing was given back
	}
	if err != nil {
		return nil, fmt.Errorf("take hand-backs: %w", err)
	}
	out := map[string]Held{}
	for _, session := range keys {
		entry, err := h.kv.Get(ctx, session)
		if err != nil {
			continue // somebody else took it
		}
		var run Held
		if err := json.Unmarshal(entry.Value(), &run); err != nil {
			continue
		}
		if err := h.kv.Purge(ctx, session, jetstream.LastRevision(entry.Revision())); err == nil {
			out[session] = run
		}
	}
	return out, nil
}
