package aggregate

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// Command is a decoded command; one Go type for each noun.verb.
type Command interface {
	// check says what is wrong with the fields by themselves.
	check() *Rejection
}

// commandTypes maps every command name to a decoder of its body.
var commandTypes = map[string]func([]byte) (Command, error){
	"session.create":     decodeAs[SessionCreate],
	"session.configure":  decodeAs[SessionConfigure],
	"session.set_mode":   decodeAs[SessionSetMode],
	"session.enter_plan": decodeAs[SessionEnterPlan],
	"session.exit_plan":  decodeAs[SessionExitPlan],
	"session.close":      decodeAs[SessionClose],
	"session.delete":     decodeAs[SessionDelete],
	"message.submit":     decodeAs[MessageSubmit],
	"note.append":        decodeAs[NoteAppend],

	"run.request":   decodeAs[RunRequest],
	"run.resume":    decodeAs[RunResume],
	"run.cancel":    decodeAs[RunCancel],
	"loop.stop":     decodeAs[LoopStop],
	"loop.continue": decodeAs[LoopContinue],
	"loop.abandon":  decodeAs[LoopAbandon],

	"run.claim":      decodeAs[RunClaim],
	"run.renew":      decodeAs[RunRenew],
	"run.refuse":     decodeAs[RunRefuse],
	"run.finish":     decodeAs[RunFinish],
	"round.start":    decodeAs[RoundStart],
	"round.finish":   decodeAs[RoundFinish],
	"round.fail":     decodeAs[RoundFail],
	"tool.start":     decodeAs[ToolStart],
	"tool.finish":    decodeAs[ToolFinish],
	"tool.park":      decodeAs[ToolPark],
	"replay.start":   decodeAs[ReplayStart],
	"budget.exhaust": decodeAs[BudgetExhaust],
	"tool.authorize": decodeAs[ToolAuthorize],

	"policy.set_mode":    decodeAs[PolicySetMode],
	"policy.add_rule":    decodeAs[PolicyAddRule],
	"policy.remove_rule": decodeAs[PolicyRemoveRule],

	"approval.decide": decodeAs[ApprovalDecide],
	"question.answer": decodeAs[QuestionAnswer],
	"tool.resolve":    decodeAs[ToolResolve],
}

// DecodeCommand reads the body of a command strictly. It refuses
// unknown_command, invalid_json (not exactly one well-formed object),
// invalid_command (unknown, missing or wrong fields) and invalid_bounds.
func DecodeCommand(name string, body []byte) (Command, *Rejection) {
	decode, ok := commandTypes[name]
	if !ok {
		return nil, reject(CodeUnknownCommand, "there is no command %q", name)
	}
	c, err := decode(body)
	if err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) || errors.Is(err, events.ErrTooDeep) {
			return nil, reject(CodeInvalidJSON, "the body is not one well-formed JSON object: %v", err)
		}
		if wrong, ok := errors.AsType[*events.JSONError](err); ok {
			return nil, reject(CodeInvalidCommand, "%s", wrong.In(name))
		}
		return nil, reject(CodeInvalidCommand, "%s: %v", name, err)
	}
	if r := c.check(); r != nil {
		return nil, r
	}
	return c, nil
}

func decodeAs[T Command](body []byte) (Command, error) {
	c := new(T)
	if err := events.UnmarshalStrict(body, c); err != nil {
		return nil, err
	}
	if k := jsontext.Value(body).Kind(); k != '{' {
		return nil, errors.New("the body is no JSON object")
	}
	return *c, nil
}

// Limits of fields; sizes are bytes. What they leave open is bounded by the
// server's max_payload.
const (
	maxIDBytes       = 1024 // of a model's tool call id
	maxCallsPerRound = 256
	maxRoundTokens   = 1 << 40 // what a round may say it used: sums must not wrap, or a budget would never be spent
	maxOptions       = 64
	maxNameBytes     = 256
)

func missing(field string) *Rejection {
	return reject(CodeInvalidCommand, "%s is missing or empty", field)
}

// need checks that the named strings are there: name, value, name, value, …
func need(pairs ...string) *Rejection {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return missing(pairs[i])
		}
	}
	return nil
}

// oneOf checks an optional enumeration.
func oneOf(field, value string, allowed ...string) *Rejection {
	if value == "" {
		return nil
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return reject(CodeInvalidCommand, "%s is %.40q, allowed are %v", field, value, allowed)
}

func first(rs ...*Rejection) *Rejection {
	for _, r := range rs {
		if r != nil {
			return r
		}
	}
	return nil
}

// optionalObject checks that a raw field is absent, null or an object.
func optionalObject(field string, v jsontext.Value) *Rejection {
	if len(v) == 0 || v.Kind() == 'n' || v.Kind() == '{' {
		return nil
	}
	return reject(CodeInvalidCommand, "%s is no JSON object", field)
}

func checkModel(m *events.Model) *Rejection {
	if m == nil {
		return nil
	}
	return need("model.provider", m.Provider, "model.model", m.Model)
}
