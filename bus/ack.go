package bus

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// parseAck reads an acknowledgement of the stream: the stored sequence, or the
// *apiError it carries. The usual form is read without decoding:
//
//	{"stream":"SESSION_x","seq":12}
func parseAck(data []byte, stream string) (uint64, error) {
	if seq, ok := plainAck(data, stream); ok {
		return seq, nil
	}
	var ack struct {
		Error  *apiError `json:"error"`
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("acknowledgement %.100q: %w", data, err)
	}
	switch {
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream != stream || ack.Seq == 0:
		return 0, fmt.Errorf("acknowledgement %.100q is none of stream %s", data, stream)
	}
	return ack.Seq, nil
}

func plainAck(data []byte, stream string) (uint64, bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"stream":"`))
	if !ok || len(rest) < len(stream) || string(rest[:len(stream)]) != stream {
		return 0, false
	}
	rest, ok = bytes.CutPrefix(rest[len(stream):], []byte(`","seq":`))
	if !ok {
		return 0, false
	}
	seq, rest := leadingNumber(rest)
	return seq, seq > 0 && len(rest) == 1 && rest[0] == '}'
}

// leadingNumber reads the decimal that b begins with, 0 if there is none or it
// is longer than a sequence can be.
func leadingNumber(b []byte) (uint64, []byte) {
	var n uint64
	i := 0
	for ; i < len(b) && i < 19 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	return n, b[i:]
}

// seqOf reads the sequence out of an answer to STREAM.MSG.GET without decoding
// the message in it; 0 if it does not look as expected. The subject comes
// first and, being tokens, holds no quote.
func seqOf(data []byte) uint64 {
	_, rest, ok := bytes.Cut(data, []byte(`"message":{"subject":"`))
	if !ok {
		return 0
	}
	i := bytes.IndexByte(rest, '"')
	if i < 0 {
		return 0
	}
	rest, ok = bytes.CutPrefix(rest[i:], []byte(`","seq":`))
	if !ok {
		return 0
	}
	seq, _ := leadingNumber(rest)
	return seq
}
