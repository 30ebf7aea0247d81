package recorded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"culm/provider"
	"culm/provider/recorded"
	"culm/provider/transcript"
)

func example(t *testing.T) *transcript.Recording {
	t.Helper()
	r, err := transcript.Open("../../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGenerate_PlaysTheAnswersInOrderAndWraps(t *testing.T) {
	t.Parallel()
	r := example(t)
	p := recorded.New(r, recorded.Options{})
	for n := range uint64(2 * len(r.Answers)) {
		want := r.Answers[n%uint64(len(r.Answers))]
		var text, reasoning strings.Builder
		got, err := p.Generate(t.Context(), provider.Request{Answers: n}, func(d provider.Delta) {
			if len(d.Text) > 48 {
				t.Errorf("answer %d: a delta of %d bytes", n, len(d.Text))
			}
			if d.Kind == provider.Text {
				text.WriteString(d.Text)
			} else {
				reasoning.WriteString(d.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Content != want.Text() || text.String() != got.Content {
			t.Errorf("answer %d: content %q, deltas %q, want %q", n, got.Content, text.String(), want.Text())
		}
		if len(want.Parts) > 0 && want.Parts[0].Reasoning && reasoning.String() != want.Parts[0].Text {
			t.Errorf("answer %d: reasoning %q", n, reasoning.String())
		}
		if len(got.ToolCalls) != len(want.Calls) {
			t.Fatalf("answer %d: %d calls, want %d", n, len(got.ToolCalls), len(want.Calls))
		}
		for i, c := range want.Calls {
			if diff := cmp.Diff(provider.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}, got.ToolCalls[i]); diff != "" {
				t.Errorf("answer %d call %d (-want +got):\n%s", n, i, diff)
			}
		}
	}
}

func TestGenerate_SummaryAsksForNoTools(t *testing.T) {
	t.Parallel()
	got, err := recorded.New(example(t), recorded.Options{}).Generate(t.Context(), provider.Request{Summary: true}, func(provider.Delta) {})
	if err != nil || len(got.ToolCalls) != 0 || got.FinishReason != "stop" || got.Content == "" {
		t.Errorf("answer = %+v, %v", got, err)
	}
}

func TestGenerate_PaceIsKeptAndEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := recorded.New(example(t), recorded.Options{Chunk: 10, Pace: time.Second})
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		began, deltas := time.Now(), 0
		_, err := p.Generate(ctx, provider.Request{}, func(provider.Delta) {
			if deltas++; deltas == 3 {
				cancel(stop)
			}
		})
		if !errors.Is(err, stop) || deltas != 3 || time.Since(began) != 3*time.Second {
			t.Errorf("err %v after %d deltas and %v", err, deltas, time.Since(began))
		}
	})
}
