package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
)

const (
	defaultLaterWait = 5 * time.Second // for one answer of the stream
	laterTurn        = 32              // messages of one session in a row
)

// queued is one message of the work queue, as its leader holds it.
type queued struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

func (l *Later) work() {
	for {
		session, ok := l.queue.next()
		if !ok {
			return
		}
		l.queue.done(session, l.turn(session))
	}
}

// turn handles messages of the session from the lowest on.
func (l *Later) turn(session string) laterVerdict {
	for range laterTurn {
		if l.queue.isClosed() {
			return laterMore
		}
		m, err := l.lowest(session)
		if err != nil {
			l.log.Warn("queued commands: read", "session", session, "err", err)
			return laterAgain
		}
		if m == nil {
			return laterIdle
		}
		if err := l.handle(session, m); err != nil {
			l.log.Warn("queued command is kept", "session", session, "seq", m.Seq, "err", err)
			return laterAgain
		}
	}
	return laterMore
}

// lowest is the session's first message in the stream, nil if there is none. It
// asks the leader: what was stored before the call is seen.
func (l *Later) lowest(key string) (*queued, error) {
	request := `{"seq":1,"next_by_subj":"` + l.o.Subjects.SessionLater(key) + `"}`
	if seq, single := strings.CutPrefix(key, "#"); single {
		request = `{"seq":` + seq + `}`
	}
	var resp struct {
		Message *queued `json:"message"`
	}
	err := l.api.call(l.ctx, "STREAM.MSG.GET."+LaterStream, []byte(request), &resp)
	if errCode(err) == codeNoMessage {
		return nil, nil
	}
	return resp.Message, err
}

// handle judges one message, tells about a refusal, and removes it. With an
// error it is still in the stream and is to be handled again; one whose refusal
// was told is then only removed, since it might be accepted by now.
func (l *Later) handle(session string, m *queued) error {
	if id := mintLaterID(m); !l.queue.told(session, id) {
		reply := l.judge(m)
		if codeOfReply(&reply) == aggregate.CodeUnavailable {
			return fmt.Errorf("%s: %s", reply.Error.Code, reply.Error.Message)
		}
		if !reply.OK {
			if err := l.refuse(m, &reply); err != nil {
				return fmt.Errorf("publish refusal: %w", err)
			}
			l.queue.tell(session, id)
		}
	}
	// The refusal went out on this connection before the removal.
	return l.api.call(l.ctx, "STREAM.MSG.DELETE."+LaterStream, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, m.Seq), nil)
}

func codeOfReply(r *aggregate.Reply) string {
	if r.OK || r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// judge decodes the message and waits for the outcome.
func (l *Later) judge(m *queued) aggregate.Reply {
	var h nats.Header
	if len(m.Header) > 0 {
		var err error
		if h, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			var r aggregate.Request
			_ = l.o.Subjects.decodeAddress(kindLater, m.Subject, &r)
			return refusalReply(&r, refuse(aggregate.CodeInvalidCommand, malformedHeaders))
		}
	}
	r, e := l.o.Subjects.decodeCommand(kindLater, m.Subject, h, m.Data)
	if e != nil {
		return refusalReply(&r, e)
	}
	if r.ID == "" {
		r.ID = mintLaterID(m)
	}
	outcome := make(chan aggregate.Reply, 1)
	l.o.Handler.Handle(l.ctx, r, func(out aggregate.Reply) { outcome <- out })
	select {
	case out := <-outcome:
		return out
	case <-l.ctx.Done():
		return refusalReply(&r, refuse(aggregate.CodeUnavailable, "the engine stops: %v", context.Cause(l.ctx)))
	}
}

// mintLaterID is the id of a command that came without one. It follows from
// where and when the stream stored it, so that handling it again is no new
// command, also by another engine, and a queue that was made anew mints others.
func mintLaterID(m *queued) string {
	return "later-" + strconv.FormatInt(m.Time.UnixNano(), 36) + "-" + strconv.FormatUint(m.Seq, 10)
}

// refuse publishes the reply where the sender looks for it: the subject of the
// message with another kind, malformed or not.
func (l *Later) refuse(m *queued, reply *aggregate.Reply) error {
	rest, _ := l.o.Subjects.rest(kindLater, m.Subject)
	body, h, _ := encodeReply(reply, int(l.o.Conn.MaxPayload()))
	err := l.o.Conn.PublishMsg(&nats.Msg{Subject: l.o.Subjects.join(kindRefused, rest), Header: h, Data: body})
	if errors.Is(err, nats.ErrBadSubject) {
		l.log.Error("a queued command was refused and nobody can be told", "subject", m.Subject, "seq", m.Seq, "err", reply.Error.Code)
		return nil
	}
	return err
}
