package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"culm/aggregate"
	"culm/events"
)

// Headers of a command over HTTP; they mean what their namesakes of the bus mean.
const (
	headerCommandID   = "Culm-Command-Id"
	headerBusID       = "Nats-Msg-Id" // refused: a command is not judged without the id it was sent with
	headerExpected    = "Culm-Expected-Sequence"
	headerTraceparent = "Traceparent"
)

// commandTime is how long a command may take, also when its client has gone.
const commandTime = 30 * time.Second

// command gives a command to the rules in the name of the token's actor. The
// outcome is the reply of docs/contract.md, refusals with their status.
func (s *Server) command(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Commands == nil {
		return refuse(codeForbidden, "this server takes no commands")
	}
	actor := actorOf(r.Context())
	if actor == "" {
		return refuse(codeUnauthorized, "commands need a token: Authorization: Bearer")
	}
	c, err := commandOf(r, actor)
	if err != nil {
		return err
	}
	if c.Body, err = readBody(w, r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTime)
	defer cancel()
	reply, err := s.opts.Commands.Do(ctx, c)
	if err != nil {
		f := refuse(aggregate.CodeUnavailable, "the outcome is not known: %v", err)
		f.Details = map[string]any{"command": c.ID}
		return f
	}
	status := http.StatusOK
	if !reply.OK && reply.Error != nil {
		status = statusOf(reply.Error.Code)
	}
	writeJSON(w, status, reply)
	return nil
}

// commandOf reads path and headers, by the rules of the bus.
func commandOf(r *http.Request, actor string) (aggregate.Request, error) {
	c := aggregate.Request{Actor: actor, Session: r.PathValue("session"), Name: r.PathValue("name"), Traceparent: aggregate.CleanTraceparent(r.Header.Get(headerTraceparent))}
	noun, verb, dotted := strings.Cut(c.Name, ".")
	reserved := events.ReservedToken(c.Session) && (c.Session != aggregate.SettingsSession || noun != "policy")
	switch {
	case !events.ValidToken(c.Session) || reserved:
		return c, refuse(aggregate.CodeInvalidToken, "session %.80q is no valid token, or reserved", c.Session)
	case !dotted || !events.ValidToken(noun) || !events.ValidToken(verb):
		return c, refuse(aggregate.CodeUnknownCommand, "the path does not end in noun.verb")
	}
	if len(r.Header.Values(headerBusID)) > 0 {
		return c, refuse(aggregate.CodeInvalidCommand, "over HTTP a command carries its id as %s, not as %s", headerCommandID, headerBusID)
	}
	switch ids := r.Header.Values(headerCommandID); {
	case len(ids) == 0:
		c.ID = rand.Text()
	case len(ids) > 1 || !aggregate.ValidCommandID(ids[0]):
		return c, refuse(aggregate.CodeInvalidCommand, "%s is not one command id of 1 to %d printable ASCII characters", headerCommandID, aggregate.MaxCommandID)
	default:
		c.ID = ids[0]
	}
	if v := r.Header.Values(headerExpected); len(v) > 0 {
		n, err := strconv.ParseUint(v[0], 10, 64)
		if err != nil || len(v) > 1 {
			return c, refuse(aggregate.CodeInvalidCommand, "%s is not one decimal sequence", headerExpected)
		}
		c.Expected = &n
	}
	return c, nil
}
