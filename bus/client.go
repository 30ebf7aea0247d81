package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/aggregate"
)

// ErrInvalidInbox: the connection's inbox prefix is none that engines answer to.
var ErrInvalidInbox = errors.New("inbox prefix must be _INBOX or lie under _INBOX.")

// Client speaks to the engines of one installation as one actor. It is safe
// for concurrent use.
type Client struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects Subjects
	actor    string
}

// NewClient makes a client over a connection, which stays the caller's. It
// returns ErrInvalidToken for an actor that is reserved or no token, and
// ErrInvalidInbox for a connection whose requests engines would ignore.
func NewClient(nc *nats.Conn, subjects Subjects, actor string) (*Client, error) {
	if !ValidToken(actor) || ReservedToken(actor) {
		return nil, fmt.Errorf("actor %q: %w", actor, ErrInvalidToken)
	}
	if !answerable(nc.NewInbox()) {
		return nil, fmt.Errorf("inbox prefix %q: %w", nc.Opts.InboxPrefix, ErrInvalidInbox)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Client{nc: nc, js: js, subjects: subjects, actor: actor}, nil
}

// Conn is the connection that the client was made over.
func (c *Client) Conn() *nats.Conn { return c.nc }

// Subjects are those of the installation.
func (c *Client) Subjects() Subjects { return c.subjects }

// Actor is who the client speaks as.
func (c *Client) Actor() string { return c.actor }

// ReplyError says that no usable answer came: the outcome of the command is
// unknown. The same command with the same id may be sent again.
type ReplyError struct {
	Subject  string
	Command  string // id of the command, "" for a read
	Attempts int
	Err      error // why the last attempt failed, and what ended the attempts
}

func (e *ReplyError) Error() string {
	if e.Command == "" {
		return fmt.Sprintf("%s, %d attempts: %v", e.Subject, e.Attempts, e.Err)
	}
	return fmt.Sprintf("%s command %s, %d attempts: %v", e.Subject, e.Command, e.Attempts, e.Err)
}

// Unwrap returns the cause.
func (e *ReplyError) Unwrap() error { return e.Err }

// Do sends a command and returns the engine's answer; a refusal is an answer,
// not an error. data becomes the body: nil is {}, []byte and jsontext.Value are
// sent as they are, anything else is marshalled.
//
// One command id, chosen or minted, goes with all attempts of a call, and an
// attempt that got no answer, or the answer unavailable, is repeated until ctx
// ends. So a command that appends is executed at most once, and exactly once if
// Do returns an accepted reply. Do returns ErrInvalidToken for a session or
// name that cannot stand in a subject, and *ReplyError if ctx ended first (then
// with the last refusal as reply, if there was one).
func (c *Client) Do(ctx context.Context, session, name string, data any, opts ...Option) (aggregate.Reply, error) {
	o := newOptions(opts)
	m, err := c.message(c.subjects.Command, session, name, data)
	if err != nil {
		return aggregate.Reply{}, err
	}
	o.setHeaders(m.Header, HeaderCommandID)
	var reply aggregate.Reply
	err = c.exchange(ctx, m, o, func(answer []byte) (*aggregate.Error, error) {
		reply = aggregate.Reply{}
		err := decodeAnswer(answer, &reply)
		return reply.Error, err
	})
	if errors.Is(err, nats.ErrMaxPayload) { // what no server would take, no engine can answer
		e := refuse(aggregate.CodePayloadTooLarge, "the command takes more than the %d bytes that the server allows", c.nc.MaxPayload())
		return aggregate.Reply{Session: session, Command: o.id, Error: e}, nil
	}
	return reply, err
}

// Read asks an engine for a session's state or events. It repeats and fails as
// Do does.
func (c *Client) Read(ctx context.Context, session string, q aggregate.ReadQuery, opts ...Option) (aggregate.ReadReply, error) {
	if !ValidToken(session) {
		return aggregate.ReadReply{}, fmt.Errorf("read session %q: %w", session, ErrInvalidToken)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return aggregate.ReadReply{}, fmt.Errorf("read %s: %w", session, err)
	}
	o := newOptions(opts)
	o.id = ""
	var reply aggregate.ReadReply
	err = c.exchange(ctx, &nats.Msg{Subject: c.subjects.Read(session), Data: body}, o, func(answer []byte) (*aggregate.Error, error) {
		reply = aggregate.ReadReply{}
		err := decodeAnswer(answer, &reply)
		return reply.Error, err
	})
	return reply, err
}

// Later puts a command into the work queue and returns its id once the queue
// has stored it; an engine handles it when there is one. Its outcome is seen in
// the event that names the id, or as a refusal under Subjects.Refused. It
// repeats, and fails, as Do does.
func (c *Client) Later(ctx context.Context, session, name string, data any, opts ...Option) (id string, err error) {
	o := newOptions(opts)
	m, err := c.message(c.subjects.Later, session, name, data)
	if err != nil {
		return "", err
	}
	o.setHeaders(m.Header, HeaderLaterID)
	return o.id, c.repeat(ctx, m.Subject, o, func(ctx context.Context) (bool, error) {
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		refusal, final := errors.AsType[*jetstream.APIError](err)
		return !final || refusal.Code >= 500, err
	})
}

// Delta is a piece of what a run streams; nobody stores it.
type Delta struct {
	Round      uint32 `json:"round"`
	Index      uint64 `json:"index"` // counts the pieces of the round, from 0, so that a reader sees a gap
	Kind       string `json:"kind"`  // text, reasoning, tool_output or progress
	Text       string `json:"text,omitzero"`
	ToolCallID string `json:"tool_call_id,omitzero"`
	Attempt    int    `json:"attempt,omitzero"` // of the model, from 2 on: what earlier ones of the round streamed is void
}

// Delta publishes without waiting; what nobody hears is lost.
func (c *Client) Delta(session, run string, d Delta) error {
	if !ValidToken(session) || !ValidToken(run) {
		return fmt.Errorf("delta of session %q run %q: %w", session, run, ErrInvalidToken)
	}
	body, err := json.Marshal(d)
	if err == nil {
		err = c.nc.Publish(c.subjects.Delta(session, run), body)
	}
	if err != nil {
		return fmt.Errorf("delta of session %s run %s: %w", session, run, err)
	}
	return nil
}

// message builds a command with the subject that to makes.
func (c *Client) message(to func(actor, session, name string) string, session, name string, data any) (*nats.Msg, error) {
	if !ValidToken(session) || !ValidName(name) {
		return nil, fmt.Errorf("command %q to session %q: %w", name, session, ErrInvalidToken)
	}
	body, err := encodeBody(data)
	if err != nil {
		return nil, fmt.Errorf("command %s to session %s: %w", name, session, err)
	}
	return &nats.Msg{Subject: to(c.actor, session, name), Header: nats.Header{}, Data: body}, nil
}

// encodeBody spells equal data in equal bytes: a repeated command must have the
// digest of the first.
func encodeBody(data any) ([]byte, error) {
	switch d := data.(type) {
	case nil:
		return []byte("{}"), nil
	case []byte:
		return d, nil
	case jsontext.Value:
		return d, nil
	}
	return json.Marshal(data, json.Deterministic(true))
}

func newCommandID() string { return rand.Text() }
