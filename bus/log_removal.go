package bus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

const (
	// abandonedAfter is when a removal that stands still is taken over.
	abandonedAfter = 3 * time.Second
	claimPoll      = 20 * time.Millisecond
)

var (
	// errClaimLost: somebody else has taken the removal over.
	errClaimLost = errors.New("the removal was taken over")
	// errClaimed: somebody else removes the session's stream.
	errClaimed = errors.New("the session is being deleted")
)

// grave is a tombstone: the last sequence of a deleted session and the birth of
// the life that ended there ("" if it had no event), who removes the stream ("" if
// nobody does), and the revision it was read at (0 for none).
type grave struct {
	last, revision  uint64
	birth, removing string
}

// stone is the tombstone as it is stored; birth and removing came later than last.
type stone struct {
	Last     uint64 `json:"last"`
	Birth    string `json:"birth,omitempty"`
	Removing string `json:"removing,omitempty"`
}

// tombstone reads the session's tombstone from the bucket's leader; the zero
// value if it was never deleted.
func (l *JetStreamLog) tombstone(ctx context.Context, session string) (grave, error) {
	msg, err := l.api.getMsg(ctx, "KV_"+tombstoneBucket, `{"last_by_subj":"`+tombstoneSubject(session)+`"}`)
	if errCode(err) == codeNoMessage {
		return grave{}, nil
	}
	if err != nil {
		return grave{}, err
	}
	var stored stone
	if err := json.Unmarshal(msg.Data, &stored); err != nil {
		return grave{}, fmt.Errorf("tombstone %q: %w", msg.Data, err)
	}
	return grave{last: stored.Last, birth: stored.Birth, removing: stored.Removing, revision: msg.Seq}, nil
}

// Buried is the last sequence of the session's last deleted life, 0 if it was
// never deleted.
func (l *JetStreamLog) Buried(ctx context.Context, session string) (uint64, error) {
	g, err := l.tombstone(ctx, session)
	if err != nil {
		return 0, fmt.Errorf("tombstone of %s: %w", session, unanswered(err))
	}
	return g.last, nil
}

func tombstoneSubject(session string) string { return "$KV." + tombstoneBucket + "." + session }

// removal is the claim to remove a session's stream; it is written on the tombstone.
type removal struct {
	log     *JetStreamLog
	session string
	grave   grave
}

// claims is since when claims of others have not changed, by session.
type claims struct {
	mu   sync.Mutex
	seen map[string]claimSeen
}

type claimSeen struct {
	revision uint64
	since    time.Time
}

// standing is for how long the session's tombstone has had the claim of g.
func (c *claims) standing(session string, g grave) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.removing == "" {
		delete(c.seen, session)
		return 0
	}
	if old, ok := c.seen[session]; ok && old.revision == g.revision {
		return time.Since(old.since)
	}
	if c.seen == nil {
		c.seen = map[string]claimSeen{}
	}
	c.seen[session] = claimSeen{g.revision, time.Now()}
	return 0
}

// claim waits until nobody else removes the session's stream; with wait false it
// returns errClaimed instead. A claim that stands still is taken over.
func (l *JetStreamLog) claim(ctx context.Context, session string, wait bool) (*removal, error) {
	token := rand.Text()
	for {
		old, err := l.tombstone(ctx, session)
		if err != nil {
			return nil, err
		}
		if stood := l.claims.standing(session, old); old.removing != "" && stood < l.abandoned {
			if !wait {
				return nil, errClaimed
			}
			if err := sleep(ctx, min(claimPoll, l.abandoned)); err != nil {
				return nil, err
			}
			continue
		}
		r, mine := &removal{l, session, old}, old
		mine.removing = token
		err = r.write(ctx, mine)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errClaimLost) {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// write replaces the tombstone that r knows, or returns errClaimLost if it is
// another one by now. What was not answered is looked up.
func (r *removal) write(ctx context.Context, g grave) error {
	data, err := json.Marshal(stone{g.last, g.birth, g.removing})
	if err != nil {
		return err
	}
	for began, n := time.Now(), 0; ; n++ {
		answer, err := r.log.api.once(ctx, &nats.Msg{
			Subject: tombstoneSubject(r.session),
			Header:  nats.Header{"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(r.grave.revision, 10)}},
			Data:    data,
		})
		if err == nil {
			if g.revision, err = parseAck(answer.Data, "KV_"+tombstoneBucket); err == nil {
				r.grave = g
				return nil
			}
		}
		now, lookErr := r.log.tombstone(ctx, r.session)
		switch {
		case lookErr != nil:
			return lookErr
		case now.revision != r.grave.revision && now.last == g.last && now.birth == g.birth && now.removing == g.removing:
			r.grave = now
			return nil
		case now.revision != r.grave.revision:
			return errClaimLost
		}
		if err := r.log.api.pause(ctx, began, n, err); err != nil {
			return err
		}
	}
}

// held returns errClaimLost if the removal was taken over.
func (r *removal) held(ctx context.Context) error {
	now, err := r.log.tombstone(ctx, r.session)
	if err == nil && now.revision != r.grave.revision {
		err = errClaimLost
	}
	return err
}

// bury makes the tombstone say at least that the life of that birth ended at
// last, and waits until it is durable.
func (r *removal) bury(ctx context.Context, last uint64, birth string) error {
	g := r.grave
	if g.last < last {
		g.last, g.birth = last, birth
	}
	if err := r.write(ctx, g); err != nil {
		return err
	}
	return r.log.durable(ctx)
}

// release lets others remove and make the session's stream.
func (r *removal) release(ctx context.Context) error {
	g := r.grave
	g.removing = ""
	return overtaken(r.write(ctx, g))
}

// complete removes a sealed stream that was made at created, unless somebody does
// so now: a listing waits for nobody.
func (l *JetStreamLog) complete(ctx context.Context, session string, created time.Time) error {
	r, err := l.claim(ctx, session, false)
	if errors.Is(err, errClaimed) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.remove(ctx, created); errCode(err) != codeStreamNotFound { // else somebody has
		return err
	}
	return nil
}

// atRest waits until nobody removes the session's stream, completes a removal that
// was abandoned, and returns the tombstone.
func (l *JetStreamLog) atRest(ctx context.Context, session string) (grave, error) {
	for {
		g, err := l.tombstone(ctx, session)
		if err != nil || g.removing == "" {
			return g, err
		}
		r, err := l.claim(ctx, session, true)
		if err != nil {
			return grave{}, err
		}
		info, err := l.api.streamInfo(ctx, streamPrefix+session)
		if err != nil && errCode(err) != codeStreamNotFound {
			return grave{}, err
		}
		if err == nil {
			config, err := info.config()
			if err != nil {
				return grave{}, err
			}
			if config.Sealed {
				if err := r.remove(ctx, info.Created); err != nil && !errors.Is(err, events.ErrBirthChanged) {
					return grave{}, err
				}
				continue
			}
		}
		if err := r.release(ctx); err != nil { // it ended before the removal began, or after it
			return grave{}, err
		}
	}
}
