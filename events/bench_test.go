package events_test

import (
	"fmt"
	"strings"
	"testing"

	"culm/events"
)

// typical are the events that most of a log consists of: an answer with a tool
// call, its start and its outcome, a round's admission.
func typical(content int) []events.Event {
	text := strings.Repeat("It says \"ok\".\n", content/14+1)[:content]
	ref := events.CallRef{ToolCallID: "call_1", MessageID: "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", Name: "read_file"}
	loop := &events.Loop{Generation: "7d5f2c1e-9b7a-4c59-8d2e-3f4a5b6c7d8e", Revision: 7, Status: events.StatusRunning, IterationsStarted: 2, RoundsStarted: 3}
	run := "5f0e3c5e-6b1c-5d0e-8a3e-1f2d3c4b5a69"
	return []events.Event{
		sampleEvent(events.RoundStarted{RunID: run, Admission: events.Admission{Round: 3, Iteration: 2}, Loop: loop}),
		sampleEvent(events.RoundFinished{
			RunID: run, Round: 3, Iteration: 2, Decision: "tools", Usage: &events.Usage{Prompt: 1200, Completion: 80, Total: 1280}, Loop: loop,
			Message: events.AssistantMessage{MessageID: ref.MessageID, Content: text, ToolCalls: []events.ToolCall{{ID: "call_1", Name: "read_file", Arguments: `{"path":"src/main.go"}`}}},
		}),
		sampleEvent(events.ToolStarted{CallRef: ref}),
		sampleEvent(events.ToolFinished{CallRef: ref, Result: events.Result{Success: true, Content: text, ElapsedMS: 12}}),
	}
}

var contentSizes = []int{200, 4000}

// BenchmarkDecode is one event read as a folding reader does: decoded and hashed.
func BenchmarkDecode(b *testing.B) {
	for _, size := range contentSizes {
		var log [][]byte
		total := 0
		for _, e := range typical(size) {
			log = append(log, mustEncode(b, e))
			total += len(log[len(log)-1])
		}
		b.Run(fmt.Sprintf("content=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(total / len(log)))
			n := 0
			for b.Loop() {
				if _, err := events.Decode(log[n%len(log)]); err != nil {
					b.Fatal(err)
				}
				events.Hash(log[n%len(log)])
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkDecodeSpaced is the general reader, for events that others spelled.
func BenchmarkDecodeSpaced(b *testing.B) {
	stored := append([]byte{' '}, mustEncode(b, typical(200)[1])...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Decode(stored); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode is one event spelled and hashed, as a writer does.
func BenchmarkEncode(b *testing.B) {
	for _, size := range contentSizes {
		log := typical(size)
		b.Run(fmt.Sprintf("content=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				events.Hash(mustEncode(b, log[n%len(log)]))
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func BenchmarkUnmarshalStrict(b *testing.B) {
	body := []byte(`{"message_id":"m","role":"user","content":"` + strings.Repeat("[x]", 500) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		var m events.MessageSubmitted
		if err := events.UnmarshalStrict(body, &m); err != nil {
			b.Fatal(err)
		}
	}
}
