package bus

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
)

const (
	maxErrorHeader = 512 // bytes of a message in the header; the body has all of it
	maxErrorText   = 8 << 10
	headerRoom     = 1 << 10 // what the headers of a reply take at most
)

// ReplyMargin is what an answer may need besides its content, in bytes.
const ReplyMargin = 8 << 10

// refusalReply answers what never reached the rules.
func refusalReply(r *aggregate.Request, e *aggregate.Error) aggregate.Reply {
	return aggregate.Reply{Session: r.Session, Command: r.ID, Error: e}
}

// encodeReply spells a reply in at most limit bytes, headers included. If that
// cannot be, cut is true and the result says that it was omitted: the event may
// be stored, so the answer must neither fail nor read as a refusal.
func encodeReply(r *aggregate.Reply, limit int) (body []byte, h nats.Header, cut bool) {
	body, err := spellReply(r)
	if err != nil || len(body)+headerRoom > limit {
		short := *r
		short.Error, cut = shorten(r.Error), true
		if len(r.Result) > 0 {
			short.Result = jsontext.Value(`{"omitted":"` + aggregate.CodePayloadTooLarge + `"}`)
		}
		body, _ = json.Marshal(&short, replyOptions)
	}
	return body, errorHeader(r.OK, r.Error), cut
}

// spellReply is json.Marshal of a reply; what is no refusal is spelled here,
// where a reflected struct would cost more than all the rest of an answer.
func spellReply(r *aggregate.Reply) ([]byte, error) {
	if !r.OK || r.Error != nil {
		return json.Marshal(r, replyOptions)
	}
	b := make([]byte, 0, replyRoom+len(r.Session)+len(r.Command)+len(r.Result))
	b, err := jsontext.AppendQuote(append(b, `{"ok":true,"session":`...), r.Session)
	if r.Command != "" && err == nil {
		b, err = jsontext.AppendQuote(append(b, `,"command":`...), r.Command)
	}
	if err != nil {
		return nil, err
	}
	b = strconv.AppendUint(append(b, `,"sequence":`...), r.Sequence, 10)
	if r.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	if e := r.Event; e != nil {
		b = strconv.AppendUint(append(b, `,"event":{"sequence":`...), e.Sequence, 10)
		b = append(append(append(b, `,"type":"`...), e.Type...), `"}`...)
	} else {
		b = append(b, `,"event":null`...)
	}
	if len(r.Result) > 0 {
		b = append(append(b, `,"result":`...), r.Result...)
	}
	return append(b, '}'), nil
}

// replyRoom is room for the rest of a reply that is spelled here.
const replyRoom = 192

// encodeRead spells the reply of a read in at most limit bytes; one that is
// longer becomes the refusal payload_too_large.
func encodeRead(r *aggregate.ReadReply, limit int) ([]byte, nats.Header) {
	body, err := json.Marshal(r, replyOptions)
	if err == nil && len(body)+headerRoom <= limit {
		return body, errorHeader(r.OK, r.Error)
	}
	short := aggregate.ReadReply{Session: r.Session, Sequence: r.Sequence, Error: shorten(r.Error)}
	if r.OK && err == nil {
		short.Error = refuse(aggregate.CodePayloadTooLarge,
			"the answer takes %d bytes and the server allows %d: ask for a page (events with a smaller limit, or the state without its transcript)", len(body)+headerRoom, limit)
	} else if r.OK {
		short.Error = refuse(aggregate.CodeMalformedState, "the answer cannot be spelled: %v", err)
	}
	body, _ = json.Marshal(&short, replyOptions)
	return body, errorHeader(false, short.Error)
}

var replyOptions = json.JoinOptions(json.Deterministic(true))

// shorten keeps the code of an error and as much of its message as always fits.
func shorten(e *aggregate.Error) *aggregate.Error {
	if e == nil {
		return nil
	}
	return &aggregate.Error{Code: e.Code, Message: cutText(strings.ToValidUTF8(e.Message, "?"), maxErrorText)}
}

// errorHeader is nil for a reply that is no refusal.
func errorHeader(ok bool, e *aggregate.Error) nats.Header {
	if ok || e == nil {
		return nil
	}
	return nats.Header{
		micro.ErrorHeader:     {headerText(e.Message)},
		micro.ErrorCodeHeader: {headerText(e.Code)},
	}
}

// headerText is s as one header line: what could end the line or is not text
// becomes a space or a question mark.
func headerText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case r < ' ' || (0x7f <= r && r < 0xa0) || r == 0x2028 || r == 0x2029:
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(cutText(s, maxErrorHeader))
}

// cutText is the longest beginning of s of at most n bytes that ends with a
// whole character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// answerable reports whether an answer may be sent to the reply subject: a
// literal subject under one of the prefixes that only requesters listen to.
// Anywhere else the answer could be made to land in a log.
func answerable(reply string) bool {
	rest, ok := strings.CutPrefix(reply, "_INBOX.")
	if !ok {
		if rest, ok = strings.CutPrefix(reply, "_R_."); !ok {
			return false
		}
	}
	for token := range strings.SplitSeq(rest, ".") {
		if token == "" || token == "*" || token == ">" {
			return false
		}
	}
	return true
}
