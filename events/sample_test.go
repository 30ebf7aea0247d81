package events_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

const (
	sampleID    = "01KB9ZQ3V5T8QW2X4Y6Z7A8B9C"
	sampleBirth = "01KB9ZQ000T8QW2X4Y6Z7A8B9C"
)

// sampleEvent is an event around data, all of whose attributes are set.
func sampleEvent(data events.Data) events.Event {
	return events.Event{
		ID: sampleID, Session: "S-1_a", Birth: sampleBirth, Seq: 13, Actor: "runner-1",
		Time:    time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC),
		Command: "01KB9ZQ3V4", CommandDigest: events.CommandDigest("agent.cmd.runner-1.S-1_a.round.finish", []byte("{}")),
		Run: "5f0e3c5e-6b1c-5d0e-8a3e-1f2d3c4b5a69", Prevhash: events.Hash([]byte("event 12")),
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Data:        data,
	}
}

// examples are values for fields whose name alone would make a poor example.
var examples = map[string]string{
	"arguments": `{"path":"b.txt","id":9007199254740993}`, "arguments_digest": events.Hash([]byte("arguments")),
	"config_digest": events.Hash([]byte("config")), "cause": "user", "decision": "allow_once", "effect": "allow",
	"effective_mode": "default", "requested_mode": "default", "mode": "default", "generation": "7d5f2c1e-9b7a-4c59-8d2e-3f4a5b6c7d8e",
	"loop_generation": "9c2b8d4e-1f3a-4b5c-8d7e-6f5a4b3c2d1e", "kind": "approval", "on_park": "end", "outcome": "completed",
	"permission_type": "write", "resource": "b.txt", "allowed_decisions": "allow_once", "options": "yes", "risk": "low",
	"message_id": "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "run_id": "5f0e3c5e-6b1c-5d0e-8a3e-1f2d3c4b5a69", "runner": "runner-1",
	"provider": "openai-1", "model": "gpt-5", "type": "openai", "session": "S-0", "reasoning_effort": "high", "effort": "high",
	"plan": "entered", "pattern": "b.*", "matcher_id": "exact", "step": "rule", "completion_reason": "stop", "finish_reason": "stop",
	"role": "user", "runtime_kind": events.RuntimeKindIteration, "scope": "global", "source": "session", "status": "running",
	"content": "naïve “quotes” \\ tab\t nul\x00 line\u2028 🎋", "id": "call_1", "tool_call_id": "call_1", "name": "write_file", "tool_name": "write_file",
}

const sampleRaw = `{"id":9007199254740993,"max":18446744073709551615,"huge":1e400,"zero":-0,"price":1.10,"esc":"\u0041\u0000","deep":[[{}]]}`

// full is data of the definition's type with every field set.
func full(d events.Definition) events.Data {
	v := reflect.New(d.GoType()).Elem()
	n := uint64(0)
	fill(v, "", &n)
	return v.Interface().(events.Data)
}

func fill(v reflect.Value, name string, n *uint64) {
	switch {
	case v.Type() == rawType:
		v.Set(reflect.ValueOf(jsontext.Value(sampleRaw)))
		return
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, fv := range v.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fill(fv, tag, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name, n)
		fill(v.Index(1), name, n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"b": "2", "a": "1", "": "0"}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint32, reflect.Uint64:
		*n++
		v.SetUint(*n)
	case reflect.String:
		if v.SetString(examples[name]); v.Len() == 0 {
			v.SetString(name)
		}
	default:
		panic(fmt.Sprintf("no sample for %s", v.Type()))
	}
}
