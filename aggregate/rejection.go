package aggregate

import "fmt"

// Rejection is a rule saying no: a code of docs/contract.md and a text for
// people. It is an error value; nothing is appended for it unless Decide
// returns it together with an event.
type Rejection struct {
	Code    string
	Message string
	Details map[string]any
}

func (r *Rejection) Error() string { return r.Code + ": " + r.Message }

// reject makes a Rejection; format and args make its message.
func reject(code, format string, args ...any) *Rejection {
	return &Rejection{Code: code, Message: fmt.Sprintf(format, args...)}
}

// maxDetail bounds a detail that repeats what a client gave, in bytes.
const maxDetail = 256

// texts are the details that are texts, nil for none: those of a refusal that
// is stored, so that a repeated command and a watcher are told them too.
func (r *Rejection) texts() map[string]string {
	var out map[string]string
	for k, v := range r.Details {
		if s, ok := v.(string); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = s
		}
	}
	return out
}

// with adds a detail.
func (r *Rejection) with(key string, value any) *Rejection {
	if r.Details == nil {
		r.Details = map[string]any{}
	}
	r.Details[key] = value
	return r
}
