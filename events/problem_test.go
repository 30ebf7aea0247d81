package events_test

import (
	"strings"
	"testing"

	"culm/events"
)

// TestUnmarshalStrict_SaysWhatIsWrong: in the words of JSON, with the place, and
// never with those of Go.
func TestUnmarshalStrict_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	type inner struct {
		N uint32 `json:"n"`
		I int8   `json:"i"`
	}
	type outer struct {
		Text string            `json:"text"`
		Flag *bool             `json:"flag"`
		Big  uint64            `json:"big"`
		List []inner           `json:"list"`
		Map  map[string]string `json:"map"`
		In   *inner            `json:"in"`
	}
	long := strings.Repeat("ä", 400)
	for text, want := range map[string]string{
		`{"x":1}`:                        `unknown field "x"`,
		`{"Text":"a"}`:                   `unknown field "Text"`,
		`{"in":{"a/~b":1}}`:              `unknown field "a/~b" in "/in"`,
		`{"list":[{},{"x":1}]}`:          `unknown field "x" in "/list/1"`,
		`{"` + long + `":1}`:             `unknown field "` + long[:100] + `"…`,
		`{"text":1}`:                     `"/text" is a number, must be a string`,
		`{"text":{}}`:                    `"/text" is an object, must be a string`,
		`{"flag":"yes"}`:                 `"/flag" is a string, must be true or false`,
		`{"big":-1}`:                     `"/big" is the number -1, must be a whole number from 0 to 18446744073709551615`,
		`{"big":true}`:                   `"/big" is true, must be a whole number from 0 to 18446744073709551615`,
		`{"in":{"n":3.5}}`:               `"/in/n" is the number 3.5, must be a whole number from 0 to 4294967295`,
		`{"in":{"i":128}}`:               `"/in/i" is the number 128, must be a whole number from -128 to 127`,
		`{"in":[]}`:                      `"/in" is a list, must be an object`,
		`{"list":{}}`:                    `"/list" is an object, must be a list`,
		`{"map":{"` + long + `":1}}`:     `…"` + long[len(long)-100:] + `" is a number, must be a string`,
		`[]`:                             `it is a list, must be an object`,
		`{"text":"a","text":"b"}`:        `duplicate object member name "text"`,
		`{"text":"a"`:                    `unexpected end after offset 11`,
		`{"text":"a"} x`:                 `invalid character 'x' after top-level value after offset 13`,
		`{"text":"` + "\x1b[31m" + `"}`:  `invalid character '\x1b' in string`,
		strings.Repeat(`{"in":[`, 40):    `nested too deep: more than 64 levels`,
		`{"\u001b[31m":1}`:               `unknown field "\x1b[31m"`,
		`{"map":{"\u001b[31m":["hey"]}}`: `"/map/\x1b[31m" is a list, must be a string`,
	} {
		err := events.UnmarshalStrict([]byte(text), new(outer))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestDecode_SpeaksJSON: also the envelope and the data of an event.
func TestDecode_SpeaksJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"specversion":"1.0","x":1}`: `malformed_event: unknown field "x"`,
		`{"seq":"1"}`:                 `malformed_event: "/seq" is a string, must be a whole number from 0 to 18446744073709551615`,
		`{`:                           `malformed_event: unexpected end after offset 1`,
	} {
		if _, err := events.Decode([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	stored, err := events.Encode(sampleEvent(events.MessageSubmitted{UserMessage: events.UserMessage{MessageID: "m", Content: "hello"}, Role: "user"}))
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(stored), `"data":{`, `"data":{"x":1,`, 1)
	want := `unknown field "x"`
	if _, err := events.Decode([]byte(bad)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}
