package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	handBackBucket = "culm_handback"
	handBackStream = "KV_" + handBackBucket
	handBackPrefix = "$KV." + handBackBucket + "."

	// handBackLife is how long a run waits for an engine that can go on with it.
	handBackLife = 30 * 24 * time.Hour
)

// Held is a run that its holder gave back at a graceful stop: whoever has the
// fence may go on with it.
type Held struct {
	RunID    string `json:"run_id"`
	Fence    uint64 `json:"fence"`
	Provider string `json:"provider,omitempty"` // the instance it needs; "" if its session names none
}

// HandedBack is one entry of the bucket.
type HandedBack struct {
	Session string
	Held    Held
	seq     uint64
}

// HandBacks keeps the runs that engines gave back when they stopped, one for
// each session at most, in the bucket culm_handback until an engine takes them.
// An entry is a hint: the fence decides whether the run is still to be had.
type HandBacks struct {
	nc  *nats.Conn
	api jsAPI
}

// NewHandBacks opens the bucket, and makes it if it is missing. The connection
// stays the caller's.
func NewHandBacks(ctx context.Context, nc *nats.Conn, replicas int) (*HandBacks, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("hand-backs: %w", err)
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: handBackBucket, Description: "runs given back at a graceful stop", History: 1, TTL: handBackLife,
		Storage: jetstream.FileStorage, Replicas: max(replicas, 1),
	})
	if err != nil {
		return nil, fmt.Errorf("hand-backs: bucket %s: %w", handBackBucket, err)
	}
	return &HandBacks{nc: nc, api: jsAPI{req: nc, wait: 2 * time.Second, retry: 2 * time.Second}}, nil
}

// Put gives a run back; it takes the place of what the session had there.
func (h *HandBacks) Put(ctx context.Context, session string, run Held) error {
	if !ValidToken(session) {
		return fmt.Errorf("hand back %q: bad session", session)
	}
	b, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("hand back %s: %w", session, err)
	}
	err = h.api.repeat(ctx, func() error {
		answer, err := h.api.once(ctx, &nats.Msg{Subject: handBackPrefix + session, Data: b})
		if err == nil {
			_, err = parseAck(answer.Data, handBackStream)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("hand back %s: %w", session, err)
	}
	return nil
}

// List returns what was given back and not taken yet, the oldest first. With
// nothing there it costs one request.
func (h *HandBacks) List(ctx context.Context) ([]HandedBack, error) {
	var out []HandedBack
	for seq := uint64(1); ; {
		m, err := h.api.getMsg(ctx, handBackStream, fmt.Sprintf(`{"seq":%d,"next_by_subj":%q}`, seq, handBackPrefix+">"))
		if errCode(err) == codeNoMessage {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list hand-backs: %w", err)
		}
		seq = m.Seq + 1
		one := HandedBack{Session: strings.TrimPrefix(m.Subject, handBackPrefix), seq: m.Seq}
		if json.Unmarshal(m.Data, &one.Held) == nil && ValidToken(one.Session) { // else the mark of a removal, or none of ours
			out = append(out, one)
		}
	}
}

// Take removes the entry and says whether this call did: of several engines one
// is told so. False, too, if the run was given back again since it was listed.
// With an error nobody may have it: the run goes on if it is listed again.
func (h *HandBacks) Take(ctx context.Context, one HandedBack) (bool, error) {
	var done struct {
		Purged uint64 `json:"purged"`
	}
	body := fmt.Appendf(nil, `{"filter":%q,"seq":%d}`, handBackPrefix+one.Session, one.seq+1)
	if err := h.api.call(ctx, "STREAM.PURGE."+handBackStream, body, &done); err != nil {
		return false, fmt.Errorf("take the run of %s that was handed back: %w", one.Session, err)
	}
	return done.Purged > 0, nil
}

// Appear calls f, which must not block, about when a run is given back: it may
// not be listed yet, and some are missed. stop ends that.
func (h *HandBacks) Appear(f func()) (stop func(), err error) {
	sub, err := h.nc.Subscribe(handBackPrefix+"*", func(*nats.Msg) { f() })
	if err != nil {
		return nil, fmt.Errorf("hand-backs: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // it fails where the connection is gone, and the subscription with it
}
