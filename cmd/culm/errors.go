package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/bus"
	"culm/internal/show"
)

// errFindings: an audit found something and has told it.
var errFindings = errors.New("findings")

// usageError: the arguments are wrong; exit status 2.
type usageError struct {
	err     error
	command string // path of the command, for its help; "" for the one that runs
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage marks err as a fault of the arguments; command is nil for the one that
// runs.
func usage(err error, command *kong.Context) error {
	u := &usageError{err: err}
	if p, ok := errors.AsType[*kong.ParseError](err); ok {
		u.err, command = errors.New(plainly(p)), p.Context
		u.command = "culm"
	}
	if command != nil {
		if n := command.Selected(); n != nil {
			u.command = n.FullPath()
		}
	}
	return u
}

// refusal: an engine answered, and the answer is no.
type refusal struct {
	session string
	why     aggregate.Error
	hint    string // what to do, where more is known than the code; "" for its hint
	printed bool   // with --json, on standard output
}

func (r *refusal) Error() string {
	return fmt.Sprintf("refused, %s: %s", show.Clean(r.why.Code), show.Clean(shellWords(r.why)))
}

// shellWords is the message of a refusal, which speaks to programs, without the
// names of the wire: what a person types instead is in the hint.
func shellWords(e aggregate.Error) string {
	if n, ok := e.Details["waiting"].(float64); ok && e.Code == aggregate.CodeCallsOpen {
		return waitingCalls(int(n)) + " for a person"
	}
	text, rest, found := strings.Cut(e.Message, "; ")
	if found && wireName.MatchString(rest) {
		return text
	}
	return wireName.ReplaceAllStringFunc(e.Message, func(name string) string { return spokenCommand[name] })
}

// spokenCommand are commands of the wire that refusals name, as a person types
// them.
var spokenCommand = map[string]string{
	"session.create": "culm session create", "question.answer": "culm answer", "approval.decide": "culm approve or culm deny", "tool.resolve": "culm resolve",
	"run.cancel": "culm cancel", "loop.continue": "culm loop continue", "loop.abandon": "culm loop abandon",
}

var wireName = regexp.MustCompile(`\b(?:session\.create|question\.answer|approval\.decide|tool\.resolve|run\.cancel|loop\.continue|loop\.abandon)\b`)

// unreachable: no NATS server answers at the address.
type unreachable struct {
	url string
	err error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("no NATS server answers at %s: %v", redacted(e.url), e.err)
}
func (e *unreachable) Unwrap() error { return e.err }

// noAnswer: the outcome of a command is not known.
type noAnswer struct {
	id  string
	err error
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("no answer, so it is not known whether it happened: %v", e.err)
}
func (e *noAnswer) Unwrap() error { return e.err }

// explain turns an error into what to tell and what to do about it.
func (a *app) explain(err error) (text, hint string) {
	var (
		u  *usageError
		r  *refusal
		un *unreachable
		na *noAnswer
	)
	text = show.Clean(err.Error())
	switch {
	case errors.As(err, &u):
		return text, "see " + cmp.Or(u.command, a.chosen, "culm") + " --help"
	case errors.As(err, &r):
		return text, cmp.Or(r.hint, hintFor(r.why.Code, r.session))
	case errors.As(err, &un):
		return text, "start an engine, which brings a server (go run ./cmd/engine), or name another server with --nats URL"
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Sprintf("no engine answers at %s (prefix %s)", redacted(a.NATS), a.Prefix),
			"start one: go run ./cmd/engine, or for this server: go run ./cmd/engine --nats " + redacted(a.NATS)
	case errors.As(err, &na):
		return text, "the same command with --id " + na.id + " does it or tells the first outcome, never both"
	case errors.Is(err, context.Canceled):
		return "interrupted", ""
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer from %s within %s", redacted(a.NATS), a.Timeout), "is the engine busy or stopping? --timeout waits longer"
	}
	return text, ""
}

// hints say what a person can do about a refusal; %s is the session.
var hints = map[string]string{
	aggregate.CodeSessionNotFound:       "culm session list shows what there is; culm session create %s makes it",
	aggregate.CodeSessionExists:         "go on with it (culm session show %s) or choose another name",
	aggregate.CodeSessionClosed:         "a closed session can only be read: culm log %s",
	aggregate.CodeBirthChanged:          "it was deleted and created again in the meantime; look at it first: culm session show %s",
	aggregate.CodeWrongExpectedSequence: "something happened in between: culm log %s",
	aggregate.CodeCommandIDReused:       "the id stands for another command; leave --id out or choose a new one",
	aggregate.CodeUnavailable:           "nothing is known to be stored; the same command with the same --id may be tried again",
	aggregate.CodePayloadTooLarge:       "shorten the text; large content belongs into a file that the message names",
	aggregate.CodeInvalidToken:          "names have 1 to 64 letters, digits, _ and -, and do not begin with _",
	aggregate.CodeCallsOpen:             "decide them (culm pending %[1]s), or give the run up (culm cancel %[1]s)",
	aggregate.CodeTypedDecisionRequired: "what it takes: culm pending %s",
	aggregate.CodeOwnershipNotCurrent:   "culm session show %[1]s tells what has it; culm cancel %[1]s ends that",
	aggregate.CodeInvalidBounds:         "1 to 100 iterations, from as many rounds up to 1000, and a prompt of 1 to 16384 bytes",
	aggregate.CodeGoldConflict:          "a loop and an enabled goal judge exclude each other",
	aggregate.CodePromptNotCurrentUser:  "give the prompt with the command; it is stored with it",
	aggregate.CodeNoSuchRun:             "culm session show %s tells what there is",
	aggregate.CodeNoLoop:                "culm loop start %s \"…\" --iterations N begins one",
	aggregate.CodeAlreadyStopped:        "start another with culm loop start %s",
	aggregate.CodeGenerationChanged:     "another loop or request has taken its place: culm session show %s",
	aggregate.CodeRecoveryUnsupported: "the loop ended in the middle of an iteration (culm loop status %[1]s tells why). " +
		"Look (culm log %[1]s), then culm loop continue %[1]s --ack or culm loop abandon %[1]s --ack",
	aggregate.CodeAlreadyDecided:          "a decision is final; what else waits: culm pending %s",
	aggregate.CodeNoPendingQuestion:       "what waits: culm pending %s",
	aggregate.CodePendingQuestionMismatch: "what waits: culm pending %s",
	aggregate.CodeDecisionNotAllowed:      "what it takes: culm pending %s",
	aggregate.CodeUnknownMatcher:          "its matchers: culm pending %s",
	aggregate.CodePolicyConflict:          "a rule or the mode was changed since you looked; look again and decide anew: culm pending %s",
	aggregate.CodeConfirmationRequired:    "a rule for every session needs --confirm-global",
	aggregate.CodeWorkspaceRequired:       "the session has no workspace; allow it once, for the session, or give new sessions one with --workspace",
	aggregate.CodeOptionNotAllowed:        "an option counts exactly as it is written: culm pending %s",
	aggregate.CodePlanMode:                "culm mode %s exit-plan ends the plan mode",
	aggregate.CodeMalformedState:          "what is stored can not be read: culm audit %s says where",
	aggregate.CodeProviderUnavailable:     "the engine's configuration does not have this provider: culm session show %s",
}

func hintFor(code, session string) string {
	if code == aggregate.CodeSessionNotFound && session == aggregate.SettingsSession {
		return "it begins with the first rule: culm policy add"
	}
	hint, ok := hints[code]
	if !ok || !strings.Contains(hint, "%") {
		return hint
	}
	return fmt.Sprintf(hint, show.Clean(session))
}

// redacted is a list of server URLs as it can be shown.
func redacted(list string) string { return show.Clean(bus.Redact(list)) }
