package projection

import (
	"context"
	"errors"
	"fmt"

	"culm/events"
)

// Codes of the errors of queries (docs/contract.md).
const (
	CodeInvalidCommand  = "invalid_command"
	CodeInvalidJSON     = "invalid_json"
	CodeUnknownCommand  = "unknown_command"
	CodeInvalidToken    = "invalid_token"
	CodeSessionNotFound = "session_not_found"
	CodeNotYet          = "not_yet"
	CodeUnavailable     = "unavailable"
)

// Error is a query that was not answered, as callers see it.
type Error struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidCommand, Message: fmt.Sprintf(format, args...)}
}

func notFound(session string) *Error {
	return &Error{Code: CodeSessionNotFound, Message: fmt.Sprintf("no view has a session %.64q", session)}
}

// AsError spells any error of a query.
func AsError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, events.ErrNotFound):
		return &Error{Code: CodeSessionNotFound, Message: err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeUnavailable, Message: "the query was given up: " + err.Error()}
	}
	return &Error{Code: CodeUnavailable, Message: err.Error()}
}
