package routing

import (
	"encoding/json"
	"strings"

	"culm/events"
)

// Sources of a reasoning effort.
const (
	SourceSession         = "session"
	SourceRequest         = "request"
	SourceProviderDefault = "provider_default"
	SourceNone            = "none"
)

// Reasoning picks the reasoning effort of a run: the session's, else the
// request's, else the provider's default, else none. Blank counts as absent.
func Reasoning(session, request, providerDefault string) events.Reasoning {
	for _, step := range []events.Reasoning{
		{Effort: session, Source: SourceSession},
		{Effort: request, Source: SourceRequest},
		{Effort: providerDefault, Source: SourceProviderDefault},
	} {
		if step.Effort = strings.TrimSpace(step.Effort); step.Effort != "" {
			return step
		}
	}
	return events.Reasoning{Source: SourceNone}
}

// Sources of a gold configuration beside SourceSession.
const (
	SourceConfig = "config"
	SourceResume = "resume"
)

// Gold is the configuration of the goal judge that holds for a run. The zero
// value is none.
type Gold struct {
	Enabled bool
	Source  string // session, config or resume; "" for none
	Value   []byte // the JSON object as given
	// SessionBroken says that the session's own configuration is there and
	// cannot be used; what the installation configures is not used then.
	SessionBroken bool
}

// Event is what run.started records: nil without a configuration. A session's
// broken one is recorded as not enabled, so that an auditor sees that it was
// there.
func (g Gold) Event() *events.Gold {
	switch {
	case g.Source != "":
		return &events.Gold{Enabled: g.Enabled, Source: g.Source}
	case g.SessionBroken:
		return &events.Gold{Source: SourceSession}
	}
	return nil
}

// ResolveGold picks the gold configuration of a run (docs/routing.md#gold).
// session is nil or empty where the session has none. A session's own
// configuration decides even when it is broken: then the installation's is not
// used, and only what the request brings along can take its place.
func ResolveGold(session, global, resume []byte) Gold {
	broken := false
	if len(session) > 0 {
		if g, ok := readGold(session, SourceSession); ok {
			return g
		}
		broken = true
	} else if g, ok := readGold(global, SourceConfig); ok {
		return g
	}
	g, _ := readGold(resume, SourceResume)
	g.SessionBroken = broken
	return g
}

// goldFields are the known fields and the JSON kinds of their values: b is a
// bool, n a whole number of at least 0, s a text. Others are passed over.
var goldFields = map[string]byte{
	"enabled": 'b', "auto_answer_enabled": 'b', "auto_continue_enabled": 'b',
	"model_name": 's', "goal": 's', "evaluation_prompt": 's', "minimum_confidence": 's',
	"max_output_tokens": 'n', "max_auto_continuations": 'n',
}

// readGold returns false for what is absent, null, no object, or has a known
// field of the wrong kind.
func readGold(text []byte, source string) (Gold, bool) {
	var fields map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &fields) != nil || fields == nil {
		return Gold{}, false
	}
	for name, kind := range goldFields {
		if raw, ok := fields[name]; ok && !isKind(raw, kind) {
			return Gold{}, false
		}
	}
	return Gold{Enabled: string(fields["enabled"]) == "true", Source: source, Value: text}, true
}

func isKind(raw json.RawMessage, kind byte) bool {
	switch {
	case string(raw) == "null": // as if it were left out
		return true
	case kind == 'b':
		return string(raw) == "true" || string(raw) == "false"
	case kind == 'n':
		var n uint64
		return json.Unmarshal(raw, &n) == nil
	}
	return raw[0] == '"'
}
