package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/events"
)

// Create implements events.Log.
func (l *JetStreamLog) Create(ctx context.Context, session string) (uint64, error) {
	expected, err := l.create(ctx, session)
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", session, err)
	}
	return expected, nil
}

func (l *JetStreamLog) create(ctx context.Context, session string) (uint64, error) {
	if !ValidToken(session) {
		return 0, fmt.Errorf("%w: not a session name", events.ErrNotFound)
	}
	if l.opts.ReadOnly {
		return 0, errReadOnly
	}
	for {
		before, err := l.tombstone(ctx, session)
		if err != nil {
			return 0, unanswered(err)
		}
		info, err := l.makeStream(ctx, session, before.last)
		if err != nil {
			return 0, unanswered(err)
		}
		config, err := info.config()
		if err != nil {
			return 0, err
		}
		// The session may have been deleted since the tombstone was read; a
		// log that begins below it is nobody's and must not be used.
		after, err := l.tombstone(ctx, session)
		if err != nil {
			return 0, unanswered(err)
		}
		begins := max(config.FirstSeq, 1) - 1
		if !config.Sealed && (begins > after.last || after.last == 0) {
			return begins, nil
		}
		if err := l.Delete(ctx, session); err != nil {
			return 0, err
		}
	}
}

// makeStream makes the session's stream or returns the one there is.
func (l *JetStreamLog) makeStream(ctx context.Context, session string, after uint64) (*streamInfo, error) {
	config := l.streamConfig(session)
	if after > 0 {
		// One sequence is left out, so that an append that expects the end of
		// the former life never fits.
		config.FirstSeq = after + 2
	}
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	for {
		var info streamInfo
		err = l.api.call(ctx, "STREAM.CREATE."+config.Name, body, &info)
		if errCode(err) != codeNameInUse {
			return &info, err
		}
		found, err := l.api.streamInfo(ctx, config.Name)
		if errCode(err) != codeStreamNotFound {
			return found, err
		}
	}
}

func (l *JetStreamLog) streamConfig(session string) jetstream.StreamConfig {
	subjects := l.opts.Subjects.SessionLog(session)
	return jetstream.StreamConfig{
		Name:     streamPrefix + session,
		Subjects: []string{subjects},
		Storage:  jetstream.FileStorage, Replicas: l.opts.Replicas,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1, MaxMsgsPerSubject: -1,
		DenyDelete: true, DenyPurge: true,
		// Ids of messages are not used; the window only costs memory.
		Duplicates: 100 * time.Millisecond,
		// Direct get may be answered by a replica that is behind.
		AllowDirect: false,
		RePublish:   &jetstream.RePublish{Source: subjects, Destination: l.opts.Subjects.SessionEvents(session)},
	}
}

// Delete implements events.Log. Deleting what does not exist changes nothing.
//
// The steps: seal the stream, so that no append can be stored any more; write
// its last sequence as tombstone, durably; remove the stream. Each may be
// repeated, by anybody. Two deletions at once by different engines are safe,
// except that one which stands still between its last look at the stream and
// the removal, while the other completes and the id is created again, would
// remove the new stream; JetStream has no conditional removal.
func (l *JetStreamLog) Delete(ctx context.Context, session string) error {
	err := l.remove(ctx, session)
	if errCode(err) == codeStreamNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", session, unanswered(err))
	}
	return nil
}

func (l *JetStreamLog) remove(ctx context.Context, session string) error {
	if !ValidToken(session) {
		return fmt.Errorf("%w: not a session name", events.ErrNotFound)
	}
	if l.opts.ReadOnly {
		return errReadOnly
	}
	stream := streamPrefix + session
	info, err := l.seal(ctx, stream)
	if err != nil {
		return err
	}
	if err := l.reached("sealed"); err != nil {
		return err
	}
	if err := l.bury(ctx, session, info.State.LastSeq); err != nil {
		return err
	}
	if err := l.reached("buried"); err != nil {
		return err
	}
	now, err := l.api.streamInfo(ctx, stream)
	if err != nil {
		return err
	}
	if !now.Created.Equal(info.Created) {
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

// seal closes the stream to writers and returns its state after that.
func (l *JetStreamLog) seal(ctx context.Context, stream string) (*streamInfo, error) {
	info, err := l.api.streamInfo(ctx, stream)
	if err != nil {
		return nil, err
	}
	config, err := info.config()
	if err != nil {
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
	if config.Replicas <= 1 {
		return l.api.streamInfo(ctx, stream)
	}
	return l.settled(ctx, stream)
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

// grave is a tombstone: the last sequence of a deleted session, and the
// revision it was read at (0 for none).
type grave struct {
	last, revision uint64
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
	var stored struct {
		Last uint64 `json:"last"`
	}
	if err := json.Unmarshal(msg.Data, &stored); err != nil {
		return grave{}, fmt.Errorf("tombstone %q: %w", msg.Data, err)
	}
	return grave{last: stored.Last, revision: msg.Seq}, nil
}

func tombstoneSubject(session string) string { return "$KV." + tombstoneBucket + "." + session }

// bury makes the tombstone say at least last, and waits until it is durable.
func (l *JetStreamLog) bury(ctx context.Context, session string, last uint64) error {
	for began, n := time.Now(), 0; ; n++ {
		old, err := l.tombstone(ctx, session)
		if err != nil {
			return err
		}
		if old.revision > 0 && old.last >= last {
			return l.durable(ctx)
		}
		msg := &nats.Msg{
			Subject: tombstoneSubject(session),
			Header:  nats.Header{"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(old.revision, 10)}},
			Data:    []byte(`{"last":` + strconv.FormatUint(last, 10) + `}`),
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

// unanswered keeps errors that mean something to the caller of a Log and makes
// ErrUnavailable of a refusal that nobody expects.
func unanswered(err error) error {
	if errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrNotFound) || errors.Is(err, errReadOnly) {
		return err
	}
	return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
}
