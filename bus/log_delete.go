package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"culm/events"
)

// Delete implements events.Log. Deleting what does not exist changes nothing.
//
// The steps: claim the removal; look whose life it is; seal the stream, so that no
// append can be stored any more; write its last sequence as tombstone, durably;
// remove the stream; give the claim back. While a removal is claimed nobody else
// removes or makes the session's stream: two requests at once for one name can
// leave the server with a stream without its folder. A claim that stands still for
// three seconds is taken over. JetStream has no conditional update and no
// conditional removal, so a deletion that was suspended for longer than that
// between its last look and its request, while another one completed and the id
// was created again, closes or removes the new stream. It is noticed for the
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
	r, err := l.claim(ctx, session, true)
	if err != nil {
		return err
	}
	return r.remove(ctx, created)
}

// remove is remove under the claim, which it gives back unless it failed: then
// somebody takes it over.
func (r *removal) remove(ctx context.Context, created time.Time) error {
	l, stream := r.log, streamPrefix+r.session
	info, err := l.seal(ctx, stream, created)
	if errCode(err) == codeStreamNotFound || errors.Is(err, events.ErrBirthChanged) || err == nil && info == nil {
		return errors.Join(err, r.release(ctx))
	}
	if err != nil {
		return err
	}
	if err := l.reached("sealed"); err != nil {
		return err
	}
	birth, err := l.birth(ctx, r.session, info.State)
	if err != nil {
		return err
	}
	if err := r.bury(ctx, info.State.LastSeq, birth); err != nil {
		return overtaken(err)
	}
	if err := l.reached("buried"); err != nil {
		return err
	}
	if err := r.held(ctx); err != nil {
		return overtaken(err)
	}
	now, err := l.api.streamInfo(ctx, stream)
	if err == nil && now.Created.Equal(created) {
		err = l.api.call(ctx, "STREAM.DELETE."+stream, nil, nil)
	}
	if err != nil && errCode(err) != codeStreamNotFound {
		return err
	}
	return r.release(ctx)
}

// overtaken is nil where somebody else goes on with the removal.
func overtaken(err error) error {
	if errors.Is(err, errClaimLost) {
		return nil
	}
	return err
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
