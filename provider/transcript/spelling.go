package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The spelling of a recording. Fields that are of no use are not listed.

type recordedLine struct {
	Type      exact          `json:"type"`
	Message   jsontext.Value `json:"message"`
	Sidechain bool           `json:"isSidechain"` // of a subagent's own conversation
	Meta      bool           `json:"isMeta"`      // written by the agent in the person's name
}

type recordedMessage struct {
	ID         exact          `json:"id"`
	Model      exact          `json:"model"`
	StopReason exact          `json:"stop_reason"`
	Content    jsontext.Value `json:"content"` // a string or a list of blocks
	Usage      jsontext.Value `json:"usage"`
}

type recordedUsage struct {
	Input         uint32 `json:"input_tokens"`
	CacheCreation uint32 `json:"cache_creation_input_tokens"`
	CacheRead     uint32 `json:"cache_read_input_tokens"`
	Output        uint32 `json:"output_tokens"`
}

type recordedBlock struct {
	Type      exact          `json:"type"`
	Text      exact          `json:"text"`
	Thinking  exact          `json:"thinking"`
	ID        exact          `json:"id"`
	Name      exact          `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID exact          `json:"tool_use_id"`
	Content   jsontext.Value `json:"content"` // of a result: a string or a list of blocks
	IsError   bool           `json:"is_error"`
}

// exact is a string that is kept as it stands or refused: an escaped half of a
// surrogate pair has no place in UTF-8 and is an error, not a replacement.
type exact string

func (s *exact) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*s = ""
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, b)
	if err != nil {
		return err
	}
	*s = exact(text)
	return nil
}

// decode is lenient about names that come twice, which old recordings have
// within tool input, and leaves the text of strings to exact.
func decode(b []byte, v any) error {
	if !utf8.Valid(b) {
		return errors.New("not UTF-8")
	}
	return json.Unmarshal(b, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// blocks reads a content field: a string stands for one block of text.
func blocks(content jsontext.Value) ([]jsontext.Value, error) {
	switch content.Kind() {
	case '"':
		return []jsontext.Value{wrap(`{"type":"text","text":`, content, `}`)}, nil
	case '[':
		var list []jsontext.Value
		err := decode(content, &list)
		return list, err
	case 'n', 0: // null, or no such field
		return nil, nil
	default:
		return nil, fmt.Errorf("content is %s", content.Kind())
	}
}

func wrap(before string, value jsontext.Value, after string) jsontext.Value {
	return jsontext.Value(bytes.Join([][]byte{[]byte(before), value, []byte(after)}, nil))
}

// resultText joins the text of a result; blocks that are no text are named.
func resultText(content jsontext.Value) (string, error) {
	list, err := blocks(content)
	if err != nil {
		return "", err
	}
	var text []byte
	for i, raw := range list {
		var b recordedBlock
		if err := decode(raw, &b); err != nil {
			return "", err
		}
		if i > 0 {
			text = append(text, '\n')
		}
		if b.Type == "text" {
			text = append(text, b.Text...)
		} else {
			text = fmt.Appendf(text, "[%s]", b.Type)
		}
	}
	return string(text), nil
}
