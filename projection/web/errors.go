package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
)

// Codes that only HTTP knows; the others are those of docs/contract.md.
const (
	codeForbidden    = "forbidden"      // Host or Origin is not on the list
	codeUnauthorized = "unauthorized"   // no token, or one that nobody has
	codeNotFound     = "not_found"      // no such path
	codeMediaType    = "wrong_type"     // a body that does not say that it is JSON
	codeTooMany      = "too_many"       // clients or heavy requests at once
	codeInternal     = "internal_error" //
	codeNotYet       = "not_yet"        // of a query that waited for its sequence
)

// statuses are the HTTP statuses of error codes; what the rules refuse in the
// session's present state, that is any other code, is 409.
var statuses = map[string]int{
	aggregate.CodeInvalidCommand: http.StatusBadRequest, aggregate.CodeInvalidJSON: http.StatusBadRequest,
	aggregate.CodeInvalidToken: http.StatusBadRequest, aggregate.CodeUnknownCommand: http.StatusNotFound,
	aggregate.CodePayloadTooLarge: http.StatusRequestEntityTooLarge, aggregate.CodeSessionNotFound: http.StatusNotFound,
	aggregate.CodeUnavailable: http.StatusServiceUnavailable, codeNotYet: http.StatusServiceUnavailable,
	codeForbidden: http.StatusForbidden, codeUnauthorized: http.StatusUnauthorized, codeNotFound: http.StatusNotFound,
	codeMediaType: http.StatusUnsupportedMediaType,
	codeTooMany:   http.StatusServiceUnavailable, codeInternal: http.StatusInternalServerError,
}

func statusOf(code string) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusConflict
}

// fault is a request that is answered with an error.
type fault struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

func (f *fault) Error() string { return f.Code + ": " + f.Message }

func refuse(code, format string, args ...any) *fault {
	return &fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asFault spells any error.
func asFault(err error) *fault {
	var f *fault
	switch {
	case errors.As(err, &f):
		return f
	case events.IsLost(err):
		return refuse(aggregate.CodeMalformedState, "%v; culm audit says more", err)
	case errors.Is(err, events.ErrNotFound):
		return refuse(aggregate.CodeSessionNotFound, "there is no such session")
	case errors.Is(err, events.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse(aggregate.CodeUnavailable, "%v", err)
	}
	return refuse(codeInternal, "%v", err)
}

// writeFault answers with the shape that replies over NATS have.
func writeFault(w http.ResponseWriter, err error) {
	f := asFault(err)
	status := statusOf(f.Code)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, struct {
		OK    bool   `json:"ok"`
		Error *fault `json:"error"`
	}{false, f})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"ok":false,"error":{"code":"internal_error","message":"the answer could not be spelled"}}`)
	}
	writeBody(w, status, body)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
