package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

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
		before, err := l.atRest(ctx, session)
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
		if after.removing != "" {
			continue // what was made or found is being removed
		}
		begins := max(config.FirstSeq, 1) - 1
		if !config.Sealed && (begins > after.last || after.last == 0) {
			whole, err := l.describeWhole(ctx, session, info)
			if err != nil {
				return 0, unanswered(err)
			}
			if whole {
				return begins, nil
			}
			continue
		}
		// What was made meanwhile, after a removal by somebody else, is looked
		// at in the next turn.
		err = l.remove(ctx, session, info.Created)
		if err != nil && errCode(err) != codeStreamNotFound && !errors.Is(err, events.ErrBirthChanged) {
			return 0, unanswered(err)
		}
	}
}

// describeWhole has a server that is not ours write the description of an empty
// stream once more: where a kill cut the first writing off, the server keeps the
// half it finds, and would pass over the stream at its next start (finishStreams,
// which looks after an embedded server). A stream whose folder is gone is removed,
// and false returned.
func (l *JetStreamLog) describeWhole(ctx context.Context, session string, info *streamInfo) (bool, error) {
	if l.opts.Embedded || info.State.Messages > 0 {
		return true, nil
	}
	api := l.api
	api.retry = min(api.retry, time.Second)
	err := api.call(ctx, "STREAM.UPDATE."+streamPrefix+session, info.Config, nil)
	switch {
	case err == nil:
		return true, nil
	case errCode(err) == codeStreamNotFound:
		return false, nil
	case !strings.Contains(err.Error(), syscall.ENOENT.Error()):
		return false, err
	}
	l.opts.Logger.Warn("the server has a stream without its folder; it is removed and made again", "session", session, "err", err)
	r, err := l.claim(ctx, session, true)
	if err != nil {
		return false, err
	}
	now, err := l.api.streamInfo(ctx, streamPrefix+session)
	if err == nil && now.Created.Equal(info.Created) && now.State.Messages == 0 {
		err = l.api.call(ctx, "STREAM.DELETE."+streamPrefix+session, nil, nil)
	}
	if err != nil && errCode(err) != codeStreamNotFound {
		return false, err
	}
	return false, r.release(ctx)
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

// unanswered keeps errors that mean something to the caller of a Log and makes
// ErrUnavailable of a refusal that nobody expects.
func unanswered(err error) error {
	if errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrNotFound) || errors.Is(err, errReadOnly) {
		return err
	}
	return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
}
