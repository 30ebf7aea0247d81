package bus

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxIdleAsks bounds the reply subjects that are kept for later requests.
const maxIdleAsks = 1024

// asks makes the requests that there is one of for each command. It does what
// nats.Conn.RequestMsgWithContext does, for less: an answer goes to who waits
// for it without a goroutine in between, and a reply subject that comes again
// is one that the server has matched before.
type asks struct {
	nc    *nats.Conn
	wait  time.Duration // for one answer
	inbox string

	mu   sync.Mutex
	idle []*ask
	made uint64 // reply subjects, so far
}

// ask is a reply subject and the subscription to it. It serves one request at a
// time, and another one only after its answer has come and nothing else: what has
// not come in time must not be taken for the answer to the next, nor what was sent
// there by somebody else, as by a client that names it as its own reply subject.
type ask struct {
	subject string
	sub     *nats.Subscription
	answer  chan *nats.Msg // nil comes when the connection is closed
	timer   *time.Timer
}

var _ requester = (*asks)(nil)

func newAsks(nc *nats.Conn, wait time.Duration) *asks {
	return &asks{nc: nc, wait: wait, inbox: nc.NewInbox() + "."}
}

// RequestMsgWithContext implements requester; besides the errors of nats.Conn it
// returns nats.ErrTimeout when there is no answer in time.
func (r *asks) RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := r.take()
	if err != nil {
		return nil, err
	}
	request := *m
	request.Reply = a.subject
	if err := r.nc.PublishMsg(&request); err != nil {
		r.drop(a)
		return nil, err
	}
	a.timer.Reset(r.wait)
	select {
	case answer := <-a.answer:
		if answer == nil {
			r.drop(a)
			return nil, nats.ErrConnectionClosed
		}
		a.timer.Stop()
		r.give(a)
		if len(answer.Data) == 0 && answer.Header.Get("Status") == "503" {
			return nil, nats.ErrNoResponders
		}
		return answer, nil
	case <-a.timer.C:
		err = nats.ErrTimeout
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.drop(a)
	return nil, err
}

// take is a reply subject that nobody uses.
func (r *asks) take() (*ask, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := len(r.idle); n > 0; n = len(r.idle) {
		a := r.idle[n-1]
		r.idle = r.idle[:n-1]
		if len(a.answer) == 0 {
			return a, nil
		}
		r.drop(a) // nobody asked; taken for an answer, each request after it would get the one before
	}
	r.made++
	a := &ask{subject: r.inbox + strconv.FormatUint(r.made, 36), answer: make(chan *nats.Msg, 2), timer: time.NewTimer(r.wait)}
	a.timer.Stop()
	sub, err := r.nc.ChanSubscribe(a.subject, a.answer)
	if err != nil {
		return nil, err
	}
	sub.SetClosedHandler(func(string) {
		select {
		case a.answer <- nil:
		default:
		}
	})
	a.sub = sub
	return a, nil
}

// give lets others use the reply subject.
func (r *asks) give(a *ask) {
	r.mu.Lock()
	keep := len(r.idle) < maxIdleAsks
	if keep {
		r.idle = append(r.idle, a)
	}
	r.mu.Unlock()
	if !keep {
		r.drop(a)
	}
}

// drop gives the reply subject up: its answer may still be on its way.
func (r *asks) drop(a *ask) {
	a.timer.Stop()
	_ = a.sub.Unsubscribe() // on a closed connection there is none
}
