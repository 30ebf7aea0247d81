package routing

import (
	"fmt"
	"strings"
)

// Codes of an Error, those of docs/contract.md.
const (
	CodeUnavailable = "provider_unavailable" // refused with an event; the run ends
	CodeNotHeld     = "provider_not_held"    // no event; another runner may claim
)

// Reason says which rule of docs/routing.md refused.
type Reason string

// The reasons of an Error.
const (
	ReasonBlank           Reason = "blank"              // no name was given (rule 1)
	ReasonDisabled        Reason = "disabled"           // the instance that was named (rule 2)
	ReasonNotLive         Reason = "not_live"           // the instance that was named (rule 2)
	ReasonUnknown         Reason = "unknown"            // neither an instance, a live key nor a type (rule 4)
	ReasonDefaultDisabled Reason = "default_disabled"   // the default instance of the type (rule 5)
	ReasonDefaultNotLive  Reason = "default_not_live"   // the same (rule 5)
	ReasonFirstNotLive    Reason = "first_not_live"     // the first enabled instance of the type (rule 6)
	ReasonNoInstance      Reason = "no_instance"        // no enabled instance of the type (rule 7)
	ReasonNoDefault       Reason = "no_default"         // nothing says what serves a session that names no model
	ReasonModel           Reason = "model_not_served"   // the instance does not list the model
	ReasonIncomplete      Reason = "role_without_model" // a role has a provider and no model
	ReasonNotHeld         Reason = "not_held"           // the claiming runner does not hold it
)

// Error says why a provider could not be resolved.
type Error struct {
	Code    string // CodeUnavailable or CodeNotHeld
	Reason  Reason
	Role    string // primary, fast, background or summarization; "" outside of a roster
	Asked   string // name that was asked for, trimmed
	Key     string // instance that it led to, "" if to none
	Message string // for people, with what to do
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// fail makes an Error of code provider_unavailable.
func fail(reason Reason, asked, key, format string, args ...any) *Error {
	return &Error{Code: CodeUnavailable, Reason: reason, Asked: asked, Key: key, Message: fmt.Sprintf(format, args...)}
}

// forRole says for which role the provider was wanted.
func (e *Error) forRole(role string) *Error {
	e.Role, e.Message = role, "role "+role+": "+e.Message
	return e
}

// notHeld turns an error into one that leaves the run for another runner.
func (e *Error) notHeld() *Error {
	e.Code, e.Reason = CodeNotHeld, ReasonNotHeld
	e.Message = fmt.Sprintf("the claiming runner does not hold provider %.64q: claim with a runner that does", e.Asked)
	return e
}

// maxNamed bounds how many names a message lists.
const maxNamed = 8

// named lists names for a message.
func named(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > maxNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

func ids(list []Instance) []string {
	out := make([]string, len(list))
	for i, in := range list {
		out[i] = in.ID
	}
	return out
}
