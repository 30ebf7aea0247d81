package bus

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"culm/events"
)

var contentTypeValue = []string{events.ContentType}

// attempt is one append on its way.
type attempt struct {
	session, stream string
	expected        uint64
	payload         []byte
	msg             nats.Msg
	seq, str        [1]string // values in the headers of msg
}

// attempts keeps what is worth keeping of one attempt for another: the headers.
var attempts = sync.Pool{New: func() any {
	a := &attempt{}
	a.msg.Header = nats.Header{headerContentType: contentTypeValue, headerExpectedSeq: a.seq[:], headerExpectedStr: a.str[:]}
	return a
}}

func (l *JetStreamLog) newAttempt(session string, expected uint64, eventType string, payload []byte) *attempt {
	a, _ := attempts.Get().(*attempt)
	a.session, a.stream, a.expected, a.payload = session, streamPrefix+session, expected, payload
	a.seq[0], a.str[0] = strconv.FormatUint(expected, 10), a.stream
	a.msg.Subject, a.msg.Data = l.opts.Subjects.Log(session, eventType), payload
	return a
}

// release gives the attempt up for use by others.
func (a *attempt) release() {
	a.payload, a.msg.Data = nil, nil
	attempts.Put(a)
}

// publish sends the append once; nil is the server's acknowledgement.
func (l *JetStreamLog) publish(ctx context.Context, a *attempt) error {
	answer, err := l.acks.RequestMsgWithContext(ctx, &a.msg)
	if err != nil {
		return err
	}
	seq, err := parseAck(answer.Data, a.stream)
	if err == nil && seq != a.expected+1 {
		err = fmt.Errorf("acknowledged as %d", seq)
	}
	return err
}

func (l *JetStreamLog) fits(a *attempt) error {
	size := msgSize(&a.msg)
	if size <= l.takes.Load() {
		return nil // asking the connection each time would wait for what it is writing
	}
	most := l.nc.MaxPayload()
	l.takes.Store(most)
	if most > 0 && size > most {
		return fmt.Errorf("%w: %d bytes with headers, the server takes %d", events.ErrTooLarge, size, most)
	}
	return nil
}

// msgSize is what the server counts against max_payload: headers and payload.
func msgSize(m *nats.Msg) int64 {
	size := len("NATS/1.0\r\n") + len("\r\n") + len(m.Data)
	for k, v := range m.Header {
		size += len(k) + len(": ") + len(v[0]) + len("\r\n")
	}
	return int64(size)
}
