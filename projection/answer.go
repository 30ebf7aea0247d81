package projection

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/aggregate"
	"culm/events"
)

// queries are the queries by name: view.verb.
var queries = map[string]func(p *Projector, ctx context.Context, body []byte) (any, error){
	"sessions.list":   typed((*Projector).Sessions),
	"sessions.get":    typed((*Projector).Session),
	"transcript.get":  typed((*Projector).Transcript),
	"timeline.get":    typed((*Projector).Timeline),
	"approvals.list":  typed((*Projector).Approvals),
	"loops.list":      typed((*Projector).Loops),
	"runs.list":       typed((*Projector).Runs),
	"rounds.list":     typed((*Projector).Rounds),
	"tools.list":      typed((*Projector).Tools),
	"usage.get":       typed((*Projector).Usage),
	"messages.search": typed((*Projector).Search),
}

// Queries are the names of all queries, sorted.
func Queries() []string { return slices.Sorted(maps.Keys(queries)) }

// typed decodes a request strictly and answers it.
func typed[Q, I any](f func(*Projector, context.Context, Q) (Page[I], error)) func(*Projector, context.Context, []byte) (any, error) {
	return func(p *Projector, ctx context.Context, body []byte) (any, error) {
		var q Q
		if err := decodeRequest(body, &q); err != nil {
			return nil, err
		}
		return f(p, ctx, q)
	}
}

// decodeRequest takes exactly one JSON object without unknown fields; nothing
// at all is the empty object.
func decodeRequest(body []byte, q any) error {
	if len(body) == 0 {
		return nil
	}
	err := events.UnmarshalStrict(body, q)
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax), errors.Is(err, events.ErrTooDeep):
		return &Error{Code: CodeInvalidJSON, Message: "the request is not one well-formed JSON object: " + err.Error()}
	case err != nil:
		return invalid("%v", err)
	case jsontext.Value(body).Kind() != '{':
		return invalid("the request is no JSON object")
	}
	return nil
}

// refusalReply is a query that was not answered.
type refusalReply struct {
	OK    bool   `json:"ok"` // always false
	Error *Error `json:"error"`
}

// Answer answers a query by its name, view.verb, with the JSON of the reply,
// of at most Options.MaxReply bytes. A refusal is a reply too, and is returned
// as well.
func (p *Projector) Answer(ctx context.Context, name string, body []byte) ([]byte, *aggregate.Error) {
	f := queries[name]
	if f == nil {
		return refuse(&Error{Code: CodeUnknownCommand, Message: "there is no query " + cut(strings.ToValidUTF8(name, "?"), 128)})
	}
	out, err := f(p, ctx, body)
	if err != nil {
		return refuse(AsError(err))
	}
	reply, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return refuse(AsError(err))
	}
	if len(reply) > p.opts.MaxReply {
		p.opts.Logger.Error("an answer is larger than allowed", "query", name, "bytes", len(reply))
	}
	return reply, nil
}

// maxErrorText bounds the message of a refusal, in bytes.
const maxErrorText = 8 << 10

func refuse(e *Error) ([]byte, *aggregate.Error) {
	e = &Error{Code: e.Code, Message: cut(strings.ToValidUTF8(e.Message, "?"), maxErrorText), Details: e.Details}
	reply, err := json.Marshal(refusalReply{Error: e}, json.Deterministic(true))
	if err != nil {
		return refuse(&Error{Code: e.Code, Message: e.Message}) // details that JSON has no words for
	}
	return reply, (*aggregate.Error)(e)
}

// Query is Answer for callers who have view and verb apart and read the
// refusal from the reply, such as the page (web.Querier).
func (p *Projector) Query(ctx context.Context, view, verb string, request []byte) []byte {
	reply, _ := p.Answer(ctx, view+"."+verb, request)
	return reply
}
