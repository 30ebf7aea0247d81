package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

// JetStream error codes that decide something here (errors.json of nats-server).
const (
	codeNoMessage      = 10037
	codeTooLarge       = 10054
	codeNameInUse      = 10058
	codeStreamNotFound = 10059
	codeOtherStream    = 10060
	codeWrongSequence  = 10071
	codeSealed         = 10109
	codeWrongInFlight  = 10164 // replicated streams: another append is on its way
)

// apiError is a refusal by JetStream.
type apiError struct {
	Code        int    `json:"code"` // HTTP style
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("jetstream: %s (%d)", e.Description, e.ErrCode)
}

// errCode is the JetStream error code in err, or 0.
func errCode(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.ErrCode
	}
	return 0
}

// requester is a way to the server: a *nats.Conn, asks, or a test's fault.
type requester interface {
	RequestMsgWithContext(ctx context.Context, msg *nats.Msg) (*nats.Msg, error)
}

// jsAPI speaks JetStream's request protocol. All requests it makes may be
// repeated without harm.
type jsAPI struct {
	req    requester
	wait   time.Duration // for one answer
	retry  time.Duration // for all attempts together
	health func() error
}

// once makes one request; no answer in time is an error like no connection.
func (a *jsAPI) once(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	return a.req.RequestMsgWithContext(ctx, msg)
}

// call makes a request to $JS.API.<verb> and decodes the answer into resp,
// which may be nil. It repeats what was not answered, until ctx ends or the
// time for retries is over; then it returns events.ErrUnavailable. A refusal
// by JetStream comes back as *apiError.
func (a *jsAPI) call(ctx context.Context, verb string, body []byte, resp any) error {
	return a.repeat(ctx, func() error {
		answer, err := a.once(ctx, &nats.Msg{Subject: "$JS.API." + verb, Data: body})
		if err != nil {
			return err
		}
		var failed struct {
			Error *apiError `json:"error"`
		}
		if bytes.Contains(answer.Data, []byte(`"error"`)) {
			if err := json.Unmarshal(answer.Data, &failed); err != nil {
				return fmt.Errorf("answer to %s: %w", verb, err)
			}
		}
		if failed.Error != nil {
			return failed.Error
		}
		if resp == nil {
			return nil
		}
		if err := json.Unmarshal(answer.Data, resp); err != nil {
			return fmt.Errorf("answer to %s: %w", verb, err)
		}
		return nil
	})
}

// repeat runs try until it succeeds, fails for good, or time is up.
func (a *jsAPI) repeat(ctx context.Context, try func() error) error {
	began := time.Now()
	for attempt := 0; ; attempt++ {
		err := try()
		if err == nil || !transient(err) {
			return err
		}
		if err := a.pause(ctx, began, attempt, err); err != nil {
			return err
		}
	}
}

// pause waits before the next attempt, with full jitter. It returns
// events.ErrUnavailable, wrapped with the cause, when no attempt is worth it.
func (a *jsAPI) pause(ctx context.Context, began time.Time, attempt int, cause error) error {
	if a.health != nil {
		if err := a.health(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil || time.Since(began) > a.retry || errors.Is(cause, nats.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", events.ErrUnavailable, cause)
	}
	ceiling := min(2*time.Millisecond<<min(attempt, 10), 200*time.Millisecond)
	timer := time.NewTimer(rand.N(ceiling))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", events.ErrUnavailable, cause)
	case <-timer.C:
		return nil
	}
}

// transient tells "not answered, or not now" from an answer.
func transient(err error) bool {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.Code >= 500
	}
	for _, answer := range []error{events.ErrNotFound, events.ErrUnavailable, events.ErrTooLarge} {
		if errors.Is(err, answer) {
			return false
		}
	}
	_, wrong := errors.AsType[*events.WrongSequenceError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	return !wrong && !syntax && !events.IsLost(err)
}

// storedMsg is a message of a stream as its leader returns it.
type storedMsg struct {
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	Header  []byte `json:"hdrs"`
	Data    []byte `json:"data"`
}

// getMsg reads one message from the stream's leader. The request is the body
// of STREAM.MSG.GET. It returns *apiError codeNoMessage or codeStreamNotFound.
func (a *jsAPI) getMsg(ctx context.Context, stream, request string) (storedMsg, error) {
	var resp struct {
		Message storedMsg `json:"message"`
	}
	err := a.call(ctx, "STREAM.MSG.GET."+stream, []byte(request), &resp)
	return resp.Message, err
}

// streamInfo is the part of JetStream's stream info that is used here; the
// configuration is kept as it came, so that an update changes nothing else.
type streamInfo struct {
	Config  json.RawMessage `json:"config"`
	Created time.Time       `json:"created"`
	State   streamState     `json:"state"`
}

type streamState struct {
	Messages uint64 `json:"messages"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Deleted  uint64 `json:"num_deleted"`
}

// streamConfig is the part of a stream's configuration that is looked at.
type streamConfig struct {
	Name     string `json:"name"`
	Sealed   bool   `json:"sealed"`
	FirstSeq uint64 `json:"first_seq"`
	Replicas int    `json:"num_replicas"`
}

func (i *streamInfo) config() (streamConfig, error) {
	var c streamConfig
	if err := json.Unmarshal(i.Config, &c); err != nil {
		return c, fmt.Errorf("stream configuration: %w", err)
	}
	return c, nil
}

func (a *jsAPI) streamInfo(ctx context.Context, stream string) (*streamInfo, error) {
	var info streamInfo
	if err := a.call(ctx, "STREAM.INFO."+stream, nil, &info); err != nil {
		return nil, err
	}
	return &info, nil
}
