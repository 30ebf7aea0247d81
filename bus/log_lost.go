package bus

import (
	"context"

	"culm/events"
)

// readAll reads the log from its first event, and ends with *LostError where
// there should be more.
func (l *JetStreamLog) readAll(ctx context.Context, session string, yield func(events.Record, error) bool) error {
	last, lost, err := l.ends(ctx, session)
	if err != nil {
		return err
	}
	enough := false
	if last > 0 {
		err = l.read(ctx, session, 0, last, func(r events.Record, err error) bool {
			enough = !yield(r, err)
			return !enough
		})
	}
	if err != nil || enough || lost == nil {
		return err
	}
	return lost
}

// ends is the sequence of the last event (0: none is left), and what the stream
// has counted above it, which a damaged file leaves. Looked at in this order the
// log cannot end before the stream's count, unless the leader changed in
// between: so the first finding is not believed.
func (l *JetStreamLog) ends(ctx context.Context, session string) (last uint64, lost *events.LostError, err error) {
	for range 2 {
		info, err := l.api.streamInfo(ctx, streamPrefix+session)
		if err != nil {
			return 0, nil, err
		}
		last, err = l.last(ctx, session)
		if errCode(err) == codeNoMessage {
			config, configErr := info.config()
			last = max(config.FirstSeq, 1) - 1
			if configErr != nil || info.State.LastSeq <= last {
				return 0, nil, err // it is empty
			}
			lost = &events.LostError{Session: session, First: last + 1, Last: info.State.LastSeq}
			last = 0
			continue
		}
		if err != nil || info.State.LastSeq <= last {
			return last, nil, err
		}
		lost = &events.LostError{Session: session, First: last + 1, Last: info.State.LastSeq}
	}
	return last, lost, nil
}
