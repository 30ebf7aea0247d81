package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/events"
)

// fewEvents is up to how many events single requests are cheaper than making
// and removing a consumer.
const fewEvents = 10

// Last implements events.Log.
func (l *JetStreamLog) Last(ctx context.Context, session string) (uint64, error) {
	seq, err := l.last(ctx, session)
	if err != nil {
		return 0, fmt.Errorf("last of %s: %w", session, sessionError(err))
	}
	return seq, nil
}

func (l *JetStreamLog) last(ctx context.Context, session string) (uint64, error) {
	if !ValidToken(session) {
		return 0, events.ErrNotFound
	}
	msg := &nats.Msg{
		Subject: "$JS.API.STREAM.MSG.GET." + streamPrefix + session,
		Data:    []byte(`{"last_by_subj":"` + l.opts.Subjects.SessionLog(session) + `","no_hdr":true}`),
	}
	var seq uint64
	err := l.api.repeat(ctx, func() error {
		answer, err := l.api.once(ctx, msg)
		if err != nil {
			return err
		}
		if seq = seqOf(answer.Data); seq > 0 {
			return nil
		}
		var resp struct {
			Error   *apiError `json:"error"`
			Message storedMsg `json:"message"`
		}
		if err := json.Unmarshal(answer.Data, &resp); err != nil {
			return fmt.Errorf("answer %.100q: %w", answer.Data, err)
		}
		if resp.Error != nil {
			return resp.Error
		}
		seq = resp.Message.Seq
		return nil
	})
	return seq, err
}

// sessionError turns "no such stream" and "no message" into ErrNotFound, and
// whatever else was not answered into ErrUnavailable.
func sessionError(err error) error {
	switch {
	case err == nil, events.IsLost(err), errors.Is(err, events.ErrNotFound), errors.Is(err, events.ErrUnavailable):
		return err
	case errCode(err) == codeStreamNotFound, errCode(err) == codeNoMessage, errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: %w", events.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
}

// Read implements events.Log. A session that does not exist yields
// ErrNotFound; a log that ends before through just ends.
func (l *JetStreamLog) Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		if err := l.read(ctx, session, after, through, yield); err != nil {
			yield(events.Record{}, fmt.Errorf("read %s after %d: %w", session, after, sessionError(err)))
		}
	}
}

// read yields what Read promises and returns nil when yield had enough.
func (l *JetStreamLog) read(ctx context.Context, session string, after, through uint64, yield func(events.Record, error) bool) error {
	if !ValidToken(session) {
		return events.ErrNotFound
	}
	if after == 0 && through == 0 {
		return l.readAll(ctx, session, yield)
	}
	end := through
	if through == 0 || through > after && through-after > fewEvents {
		last, err := l.last(ctx, session)
		if err != nil {
			return err
		}
		if end = last; through > 0 {
			end = min(through, last)
		}
	}
	for n := 0; after < end; n++ {
		// The first event may lie far above after: the log of an id that was
		// deleted before begins there. So it is read before counting.
		if n > 0 && end-after > fewEvents {
			return l.stream(ctx, session, after, end, yield)
		}
		r, err := l.next(ctx, session, after+1)
		if errCode(err) == codeNoMessage {
			return nil
		}
		if err != nil {
			return err
		}
		if after = r.Seq; after > end || !yield(r, nil) {
			return nil
		}
	}
	return nil
}

// next reads the first event at or above seq.
func (l *JetStreamLog) next(ctx context.Context, session string, seq uint64) (events.Record, error) {
	stream, at := streamPrefix+session, strconv.FormatUint(seq, 10)
	msg, err := l.api.getMsg(ctx, stream, `{"seq":`+at+`,"no_hdr":true}`)
	if errCode(err) == codeNoMessage {
		msg, err = l.api.getMsg(ctx, stream, `{"seq":`+at+`,"next_by_subj":"`+l.opts.Subjects.SessionLog(session)+`","no_hdr":true}`)
	}
	if err != nil {
		return events.Record{}, err
	}
	return l.record(session, msg.Seq, msg.Subject, msg.Data), nil
}

func (l *JetStreamLog) record(session string, seq uint64, subject string, payload []byte) events.Record {
	return events.Record{
		Session: session, Seq: seq, Payload: payload,
		Type: strings.TrimPrefix(subject, l.opts.Subjects.Log(session, "")),
	}
}

// stream yields the events after < seq <= end through an ordered consumer.
// There is an event at end.
func (l *JetStreamLog) stream(ctx context.Context, session string, after, end uint64, yield func(events.Record, error) bool) error {
	consumer, err := l.js.OrderedConsumer(ctx, streamPrefix+session, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
		InactiveThreshold: 30 * time.Second, MaxResetAttempts: 5,
	})
	if err != nil {
		return err
	}
	msgs, err := consumer.Messages(jetstream.PullMaxMessages(int(min(end-after, 5000))))
	if err != nil {
		return err
	}
	defer l.drop(session, consumer)
	defer msgs.Stop()
	for {
		msg, err := msgs.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		seq := meta.Sequence.Stream
		switch {
		case seq > end || !yield(l.record(session, seq, msg.Subject(), msg.Data()), nil) || seq == end:
			return nil
		case meta.NumPending == 0:
			// The consumer is at a replica that is behind; the leader knows more.
			return l.read(ctx, session, seq, end, yield)
		}
	}
}

// drop asks the server to remove a consumer now instead of when it is found
// inactive; nobody waits for it.
func (l *JetStreamLog) drop(session string, c jetstream.Consumer) {
	if info := c.CachedInfo(); info != nil {
		// An error means no connection; the server forgets the consumer itself.
		_ = l.nc.Publish("$JS.API.CONSUMER.DELETE."+streamPrefix+session+"."+info.Name, nil)
	}
}

// Sessions implements events.Log. A session whose deletion was interrupted is
// deleted now, and not listed.
func (l *JetStreamLog) Sessions(ctx context.Context) ([]events.Info, error) {
	var infos []events.Info
	var sealed []listed
	err := l.list(ctx, func(s listed) {
		session, ok := strings.CutPrefix(s.Config.Name, streamPrefix)
		switch {
		case !ok || !ValidToken(session):
		case s.Config.Sealed:
			sealed = append(sealed, s)
		case s.State.Messages > 0:
			infos = append(infos, events.Info{Session: session, FirstSeq: s.State.FirstSeq, LastSeq: s.State.LastSeq, Lost: s.State.Deleted})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", sessionError(err))
	}
	for _, s := range sealed {
		if l.opts.ReadOnly {
			continue
		}
		session := strings.TrimPrefix(s.Config.Name, streamPrefix)
		if err := l.complete(ctx, session, s.Created); err != nil {
			l.opts.Logger.Warn("deletion not completed", "session", session, "err", err)
		}
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Session < infos[j].Session })
	return infos, nil
}

// listed is one stream of a list.
type listed struct {
	Config  streamConfig `json:"config"`
	Created time.Time    `json:"created"`
	State   streamState  `json:"state"`
}

// list visits all streams under the prefix once, sorted by name. The server
// pages by offset over the sorted list, so that a deletion meanwhile would make
// it skip one: pages overlap by a stream, and where that is gone it steps back.
func (l *JetStreamLog) list(ctx context.Context, visit func(listed)) error {
	const stepBack = 100
	for offset, last := 0, ""; ; {
		var page struct {
			Total   int      `json:"total"`
			Streams []listed `json:"streams"`
			Missing []string `json:"missing"`
		}
		request := fmt.Sprintf(`{"offset":%d,"subject":%q}`, offset, l.opts.Subjects.LogAll())
		if err := l.api.call(ctx, "STREAM.LIST", []byte(request), &page); err != nil {
			return err
		}
		if len(page.Missing) > 0 {
			return fmt.Errorf("%w: no answer from %d streams, %s first", events.ErrUnavailable, len(page.Missing), page.Missing[0])
		}
		if offset > 0 && (len(page.Streams) == 0 || page.Streams[0].Config.Name > last) {
			offset = max(0, offset-stepBack)
			continue
		}
		for _, s := range page.Streams {
			if s.Config.Name > last {
				last = s.Config.Name
				visit(s)
			}
		}
		if len(page.Streams) < 2 || offset+len(page.Streams) >= page.Total {
			return nil
		}
		offset += len(page.Streams) - 1
	}
}
