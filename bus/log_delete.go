package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

// Delete implements events.Log. Deleting what does not exist changes nothing.
//
// The steps: look whose life it is; seal the stream, so that no append can be
// stored any more; write its last sequence as tombstone, durably; remove the
// stream. Each may be repeated, by anybody, and each looks whether the stream is
// still the one that was looked at. JetStream has no conditional update and no
// conditional removal, so one request stays open: a deletion that stands still
// between such a look and its request, while another one completes and the id
// is created again, closes or removes the new stream. It is noticed for the
// former, and then ErrBirthChanged.
func (l *JetStreamLog) Delete(ctx context.Context, session, birth string) error {
	err := l.deleteLife(ctx, session, birth)
	switch {
	case errCode(err) == codeStreamNotFound:
		return nil
	case errors.Is(err, events.ErrBirthChanged):
		return fmt.Errorf("delete %s: %w", session, err)
	case err != nil:
		return fmt.Errorf("delete %s: %w", session, unanswered(err))
	}
	return nil
}

func (l *JetStreamLog) deleteLife(ctx context.Context, session, birth string) error {
	if !ValidToken(session) {
		return fmt.Errorf("%w: not a session name", events.ErrNotFound)
	}
	if l.opts.ReadOnly {
		return errReadOnly
	}
	info, err := l.api.streamInfo(ctx, streamPrefix+session)
	if err != nil {
		return err
	}
	if birth != "" {
		found, err := l.birth(ctx, session, info.State)
		if err != nil {
			return err
		}
		if found != birth {
			return fmt.Errorf("%w: it is %q", events.ErrBirthChanged, found)
		}
	}
	return l.remove(ctx, session, info.Created)
}

// birth is that of the stream's first event, "" if there is none or it does not
// say.
func (l *JetStreamLog) birth(ctx context.Context, session string, st streamState) (string, error) {
	if st.Messages == 0 {
		return "", nil
	}
	msg, err := l.api.getMsg(ctx, streamPrefix+session, `{"seq":`+strconv.FormatUint(st.FirstSeq, 10)+`}`)
	if errCode(err) == codeNoMessage {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	e, _ := events.Decode(msg.Data)
	return e.Birth, nil
}

// remove takes the stream that was made at created away; another one stays.
func (l *JetStreamLog) remove(ctx context.Context, session string, created time.Time) error {
	stream := streamPrefix + session
	info, err := l.seal(ctx, stream, created)
	if err != nil || info == nil {
		return err
	}
	if err := l.reached("sealed"); err != nil {
		return err
	}
	birth, err := l.birth(ctx, session, info.State)
	if err != nil {
		return err
	}
	if err := l.bury(ctx, session, grave{last: info.State.LastSeq, birth: birth}); err != nil {
		return err
	}
	if err := l.reached("buried"); err != nil {
		return err
	}
	now, err := l.api.streamInfo(ctx, stream)
	if err != nil {
		return err
	}
	if !now.Created.Equal(created) {
		return nil // somebody else completed it, and this is the next life
	}
	return l.api.call(ctx, "STREAM.DELETE."+stream, nil, nil)
}

func (l *JetStreamLog) reached(step string) error {
	if l.step == nil {
		return nil
	}
	return l.step(step)
}

// seal closes the stream that was made at created to writers and returns its
// state after that; nil if the stream is another one by now.
func (l *JetStreamLog) seal(ctx context.Context, stream string, created time.Time) (*streamInfo, error) {
	info, err := l.api.streamInfo(ctx, stream)
	if err != nil {
		return nil, err
	}
	if !info.Created.Equal(created) {
		return nil, nil //nolint:nilnil // somebody else completed it
	}
	config, err := info.config()
	if err != nil {
		return nil, err
	}
	if err := l.reached("looked"); err != nil {
		return nil, err
	}
	if !config.Sealed {
		var sealed map[string]any
		if err := json.Unmarshal(info.Config, &sealed); err != nil {
			return nil, fmt.Errorf("stream configuration: %w", err)
		}
		sealed["sealed"] = true
		body, err := json.Marshal(sealed)
		if err != nil {
			return nil, err
		}
		if err := l.api.call(ctx, "STREAM.UPDATE."+stream, body, nil); err != nil {
			return nil, err
		}
	}
	after := l.api.streamInfo
	if config.Replicas > 1 {
		after = l.settled
	}
	if info, err = after(ctx, stream); err != nil {
		return nil, err
	}
	if !info.Created.Equal(created) {
		l.opts.Logger.Error("a deletion was overtaken by another and by a new creation, and has closed the new session", "stream", stream)
		return nil, fmt.Errorf("%w: it was deleted and created again meanwhile", events.ErrBirthChanged)
	}
	return info, nil
}

// settled waits until appends that a replicated stream had proposed before it
// was sealed have arrived: the sequence stands still for a quarter second.
func (l *JetStreamLog) settled(ctx context.Context, stream string) (*streamInfo, error) {
	info, err := l.api.streamInfo(ctx, stream)
	for err == nil {
		timer := time.NewTimer(250 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
		case <-timer.C:
		}
		var next *streamInfo
		next, err = l.api.streamInfo(ctx, stream)
		if err == nil && next.State.LastSeq == info.State.LastSeq {
			return next, nil
		}
		info = next
	}
	return nil, err
}

// grave is a tombstone: the last sequence of a deleted session and the birth of
// the life that ended there ("" if it had no event), and the revision it was
// read at (0 for none).
type grave struct {
	last, revision uint64
	birth          string
}

// stone is the tombstone as it is stored; birth came later than last.
type stone struct {
	Last  uint64 `json:"last"`
	Birth string `json:"birth,omitempty"`
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
	return grave{last: stored.Last, birth: stored.Birth, revision: msg.Seq}, nil
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

// bury makes the tombstone say at least what g says, and waits until it is
// durable.
func (l *JetStreamLog) bury(ctx context.Context, session string, g grave) error {
	data, err := json.Marshal(stone{g.last, g.birth})
	if err != nil {
		return err
	}
	for began, n := time.Now(), 0; ; n++ {
		old, err := l.tombstone(ctx, session)
		if err != nil {
			return err
		}
		if old.revision > 0 && old.last >= g.last {
			return l.durable(ctx)
		}
		msg := &nats.Msg{
			Subject: tombstoneSubject(session),
			Header:  nats.Header{"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(old.revision, 10)}},
			Data:    data,
		}
		answer, err := l.api.once(ctx, msg)
		if err == nil {
			_, err = parseAck(answer.Data, "KV_"+tombstoneBucket)
		}
		// Whatever was answered, the next look says whether it is there.
		if err != nil {
			if err := l.api.pause(ctx, began, n, err); err != nil {
				return err
			}
		}
	}
}

// durable waits for the barrier, if there is one.
func (l *JetStreamLog) durable(ctx context.Context) error {
	if l.opts.Barrier == nil {
		return nil
	}
	synced := make(chan error, 1)
	l.opts.Barrier.Then(l.opts.Barrier.Mark(), func(err error) { synced <- err })
	select {
	case err := <-synced:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
	}
}
