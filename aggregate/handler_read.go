package aggregate

import (
	"cmp"
	"context"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// maxReads bounds the reads of whole logs that are under way at once: each
// folds a log of any length.
const maxReads = 16

// Limits of ReadQuery.Events.Limit.
const (
	defaultEvents = 100
	maxEvents     = 1000
)

// Read implements Service: a fold of what was in the log when the call began.
func (h *Handler) Read(ctx context.Context, session string, q ReadQuery, done func(ReadReply)) {
	plain := q.AtSequence == nil && !q.Transcript && q.Events == nil && q.AfterMessage == ""
	if plain {
		h.submit(session, func(a *actor) { h.readCached(ctx, a, done) }, func(r *Rejection) { done(readRefusal(session, r)) })
		return
	}
	h.closed.RLock()
	defer h.closed.RUnlock()
	if h.down {
		done(readRefusal(session, reject(CodeUnavailable, "the engine is stopping")))
		return
	}
	h.work.Go(func() {
		ctx, cancel := h.bounded(ctx)
		defer cancel()
		reply := h.readInTurn(ctx, session, q)
		h.answerRead(h.opts.Barrier.Mark(), reply, done)
	})
}

// readInTurn is readLog once there is room for it.
func (h *Handler) readInTurn(ctx context.Context, session string, q ReadQuery) ReadReply {
	select {
	case h.reads <- struct{}{}:
	case <-ctx.Done():
		return readRefusal(session, reject(CodeUnavailable, "%d reads of whole logs are under way and none ended in time", maxReads))
	}
	defer func() { <-h.reads }()
	return h.readLog(ctx, session, q)
}

func (h *Handler) answerRead(ticket uint64, reply ReadReply, done func(ReadReply)) {
	h.answer(ticket, func(err error) {
		if err != nil {
			reply = readRefusal(reply.Session, asRejection(err))
		}
		done(reply)
	})
}

func readRefusal(session string, r *Rejection) ReadReply {
	return ReadReply{Session: session, Error: &Error{Code: r.Code, Message: r.Message, Details: r.Details}}
}

// readCached answers from the actor's state after making sure that it is the newest.
func (h *Handler) readCached(ctx context.Context, a *actor, done func(ReadReply)) {
	ctx, cancel := h.bounded(ctx)
	defer cancel()
	cached := a.state != nil
	err := h.load(ctx, a)
	if err == nil && cached {
		_, err = h.current(ctx, a)
	}
	if err == nil && a.state == nil {
		err = h.load(ctx, a)
	}
	var reply ReadReply
	if err != nil {
		reply = readRefusal(a.session, asRejection(err))
	} else {
		reply = h.stateReply(a.session, a.state, nil)
	}
	h.answerRead(a.ticket, reply, done)
}

// stateReply spells the state, with the messages if there are any.
func (h *Handler) stateReply(session string, s *State, messages []TranscriptMessage) ReadReply {
	v := s.View()
	v.Messages = messages
	raw, err := marshal(v)
	switch {
	case err != nil:
		return readRefusal(session, reject(CodeMalformedState, "spell the state: %v", err))
	case len(raw) > h.opts.MaxReply:
		return readRefusal(session, reject(CodePayloadTooLarge, "the state has %d bytes, an answer at most %d; read the stream", len(raw), h.opts.MaxReply))
	}
	return ReadReply{OK: true, Session: session, Birth: s.Head.Birth, Sequence: s.Head.Seq, HeadHash: s.Head.Hash, State: raw}
}

// readLog answers everything that needs the log itself.
func (h *Handler) readLog(ctx context.Context, session string, q ReadQuery) ReadReply {
	last, err := h.opts.Log.Last(ctx, session)
	if err != nil {
		return readRefusal(session, asRejection(err))
	}
	through := last
	if q.AtSequence != nil {
		if through = *q.AtSequence; through == 0 || through > last {
			return readRefusal(session, reject(CodeInvalidCommand, "at_sequence is %d, the session ends at %d", through, last).with("last", last))
		}
	}
	if q.Events != nil {
		return h.readEvents(ctx, session, *q.Events, through)
	}
	if q.AtSequence == nil {
		through = 0 // all: that finds a lost end
	}
	s, transcript := &State{}, &Transcript{}
	for r, err := range h.opts.Log.Read(ctx, session, 0, through) {
		if err == nil {
			err = applyBoth(s, transcript, r, q.Transcript || q.AfterMessage != "")
		}
		if err != nil {
			return readRefusal(session, asRejection(err))
		}
	}
	if !s.Exists() {
		return readRefusal(session, reject(CodeInvalidCommand, "the session begins after sequence %d", through))
	}
	if !q.Transcript && q.AfterMessage == "" {
		return h.stateReply(session, s, nil)
	}
	return h.readTranscript(session, s, transcript, q.AfterMessage)
}

func applyBoth(s *State, t *Transcript, r events.Record, transcript bool) error {
	if err := s.Apply(r); err != nil || !transcript {
		return err
	}
	e, err := events.Decode(r.Payload)
	if err != nil {
		return malformed(r, err)
	}
	t.Evolve(&e)
	return nil
}

// readTranscript adds as many messages as fit into one answer.
func (h *Handler) readTranscript(session string, s *State, t *Transcript, after string) ReadReply {
	messages := t.Messages
	if after != "" {
		i := 0
		for i < len(messages) && messages[i].MessageID != after {
			i++
		}
		if i == len(messages) {
			return readRefusal(session, reject(CodeInvalidCommand, "after_message names no message of the session"))
		}
		messages = messages[i+1:]
	}
	head := h.stateReply(session, s, nil)
	if !head.OK {
		return head
	}
	room, n := h.opts.MaxReply-len(head.State), 0
	for n < len(messages) {
		b, err := marshal(messages[n])
		if room -= len(b) + 1; err != nil || room < 0 {
			break
		}
		n++
	}
	if n == 0 && len(messages) > 0 {
		return readRefusal(session, reject(CodePayloadTooLarge, "message %s does not fit into one answer; read event %d from the stream", messages[0].MessageID, messages[0].Seq).
			with("message_id", messages[0].MessageID).with("sequence", messages[0].Seq))
	}
	page := append([]TranscriptMessage{}, messages[:n]...)
	reply := h.stateReply(session, s, page)
	if n < len(messages) && reply.OK {
		reply.Next = jsontext.Value(strconv.Quote(messages[n-1].MessageID))
	}
	return reply
}

// readEvents answers stored events as they are.
func (h *Handler) readEvents(ctx context.Context, session string, q EventsQuery, through uint64) ReadReply {
	if q.Limit < 0 || q.Limit > maxEvents {
		return readRefusal(session, reject(CodeInvalidCommand, "events.limit is %d, allowed are 1 to %d", q.Limit, maxEvents))
	}
	if q.After >= through && through > 0 { // there is nothing after it: the answer is where that leaves the reader
		return h.readEnd(ctx, session, through)
	}
	limit, room := cmp.Or(q.Limit, defaultEvents), h.opts.MaxReply
	reply := ReadReply{OK: true, Session: session, Sequence: q.After, Events: []jsontext.Value{}}
	for r, err := range h.opts.Log.Read(ctx, session, q.After, through) {
		if err != nil {
			return readRefusal(session, asRejection(err))
		}
		room -= len(r.Payload) + 1
		if len(reply.Events) == limit || room < 0 {
			reply.Next = jsontext.Value(strconv.FormatUint(reply.Sequence, 10))
			break
		}
		e, err := events.Decode(r.Payload)
		if e.Birth == "" {
			return readRefusal(session, asRejection(malformed(r, err)))
		}
		reply.Events = append(reply.Events, r.Payload)
		reply.Sequence, reply.Birth, reply.HeadHash = r.Seq, e.Birth, events.Hash(r.Payload)
	}
	if len(reply.Events) == 0 && reply.Next != nil {
		return readRefusal(session, reject(CodePayloadTooLarge, "event %d does not fit into one answer; read it from the stream", q.After+1).with("sequence", q.After+1))
	}
	return reply
}

// readEnd answers no events, and the event at last as the place to go on from.
func (h *Handler) readEnd(ctx context.Context, session string, last uint64) ReadReply {
	reply := ReadReply{OK: true, Session: session, Sequence: last, Events: []jsontext.Value{}}
	for r, err := range h.opts.Log.Read(ctx, session, last-1, last) {
		if err != nil {
			return readRefusal(session, asRejection(err))
		}
		e, err := events.Decode(r.Payload)
		if e.Birth == "" {
			return readRefusal(session, asRejection(malformed(r, err)))
		}
		reply.Birth, reply.HeadHash = e.Birth, events.Hash(r.Payload)
	}
	return reply
}
