package events

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A call was counted in seconds (version 1), then in milliseconds under
// another name (2), then had its parts in a record (3).
type (
	callTimedV1 struct {
		Seconds uint64 `json:"seconds"`
	}
	callTimedV2 struct {
		ElapsedMS uint64 `json:"elapsed_ms"`
	}
	callTimedV3 struct {
		Timing struct {
			ElapsedMS uint64 `json:"elapsed_ms"`
		} `json:"timing"`
	}
	hinted struct{}
)

func (callTimedV1) EventType() string { return "call.timed" }
func (callTimedV2) EventType() string { return "call.timed" }
func (callTimedV3) EventType() string { return "call.timed" }
func (hinted) EventType() string      { return "call.hinted" }

func toMilliseconds(v jsontext.Value) (jsontext.Value, error) {
	var old callTimedV1
	if err := UnmarshalStrict(v, &old); err != nil {
		return nil, err
	}
	return json.Marshal(callTimedV2{old.Seconds * 1000})
}

func toRecord(v jsontext.Value) (jsontext.Value, error) {
	return jsontext.Value(`{"timing":` + string(v) + `}`), nil
}

func timedAt(t *testing.T, c catalogue, d Data) []byte {
	t.Helper()
	b, err := c.encode(Event{
		ID: "01KB9ZQ3V5T8QW2X4Y6Z7A8B9C", Session: "S", Birth: "01KB9ZQ3V5T8QW2X4Y6Z7A8B9C", Actor: "a", Seq: 1,
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Data: d,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUpcast(t *testing.T) {
	t.Parallel()
	v1 := buildRegistry([]Definition{define[callTimedV1](1)})
	v2 := buildRegistry([]Definition{define[callTimedV2](2, toMilliseconds)})
	v3 := buildRegistry([]Definition{define[callTimedV3](3, toMilliseconds, toRecord)})
	var want callTimedV3
	want.Timing.ElapsedMS = 7000
	for version, stored := range map[int][]byte{
		1: timedAt(t, v1, callTimedV1{7}), 2: timedAt(t, v2, callTimedV2{7000}), 3: timedAt(t, v3, want),
	} {
		e, err := v3.decode(stored)
		if err != nil || e.Data != Data(want) || e.Version != version {
			t.Errorf("version %d: %v, %+v", version, err, e)
		}
		if !strings.Contains(string(stored), string(e.Raw)) {
			t.Errorf("version %d: Raw is not what is stored: %s", version, e.Raw)
		}
		// Written again, it is the newest version.
		if b := timedAt(t, v3, e.Data); !slices.Equal(b, timedAt(t, v3, want)) {
			t.Errorf("version %d is written as %s", version, b)
		}
	}
	// A program of before meets the newer version: it stops, nothing is lost.
	e, err := v1.decode(timedAt(t, v2, callTimedV2{7000}))
	if !errors.Is(err, ErrUnknownEvent) || string(e.Raw) != `{"elapsed_ms":7000}` || e.Version != 2 {
		t.Errorf("newer version: %v, %+v", err, e)
	}
	// Fields of one version under the number of another are no event.
	mixed := strings.Replace(string(timedAt(t, v1, callTimedV1{7})), `"seconds"`, `"elapsed_ms"`, 1)
	if _, err := v3.decode([]byte(mixed)); !errors.Is(err, ErrMalformed) {
		t.Errorf("mixed versions: %v", err)
	}
	forgiving := func(jsontext.Value) (jsontext.Value, error) { return jsontext.Value(`{"elapsed_ms":1}`), nil }
	lenient := buildRegistry([]Definition{define[callTimedV2](2, forgiving)})
	broken := strings.Replace(string(timedAt(t, v1, callTimedV1{7})), `7}`, `7,"seconds":8}`, 1)
	if _, err := lenient.decode([]byte(broken)); !errors.Is(err, ErrMalformed) {
		t.Errorf("an upcaster got data that is not well-formed: %v", err)
	}
}

func TestBuildRegistry_RefusesABrokenCatalogue(t *testing.T) {
	t.Parallel()
	if c := buildRegistry([]Definition{define[callTimedV1](1), ignorable(define[hinted](1))}); len(c) != 2 || !c["call.hinted"].Ignorable {
		t.Fatalf("catalogue %v", c)
	}
	for name, defs := range map[string][]Definition{
		"twice":             {define[callTimedV1](1), define[callTimedV1](1)},
		"version zero":      {define[callTimedV1](0)},
		"upcaster missing":  {define[callTimedV2](2)},
		"upcaster nil":      {define[callTimedV2](2, nil)},
		"upcaster too many": {define[callTimedV1](1, toMilliseconds)},
		"no verb":           {define[named](1)},
		"not a record":      {define[list](1)},
		"no JSON":           {define[function](1)},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: is accepted", name)
				}
			}()
			buildRegistry(defs)
		}()
	}
}

type (
	named    struct{}
	list     []string
	function struct {
		F func() `json:"f"`
	}
)

func (named) EventType() string    { return "Call" }
func (list) EventType() string     { return "call.listed" }
func (function) EventType() string { return "call.made" }
