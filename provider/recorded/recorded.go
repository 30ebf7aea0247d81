// Package recorded is a provider that plays the answers of a recorded session.
package recorded

import (
	"context"
	"time"

	"culm/provider"
	"culm/provider/transcript"
)

// Provider plays the answers of one recording in order and begins again after
// the last. Which one it plays depends on Request.Answers alone, so a call that
// is repeated, by whatever process, gets the same answer.
type Provider struct {
	recording *transcript.Recording
	options   Options
}

// Options say how an answer is streamed.
type Options struct {
	// Chunk is the most bytes of one delta, 48 if zero.
	Chunk int
	// Pace is the pause before each delta, and the time an answer without any
	// takes; none if zero.
	Pace time.Duration
}

var _ provider.Provider = (*Provider)(nil)

// New plays r, which holds at least one answer as every recording that was
// read does, and must not change any more.
func New(r *transcript.Recording, o Options) *Provider {
	if o.Chunk <= 0 {
		o.Chunk = 48
	}
	return &Provider{recording: r, options: o}
}

// Generate streams and returns the answer number Request.Answers, modulo the
// length of the recording. A summary has no tool calls. It fails only with the
// cause of ctx's end.
func (p *Provider) Generate(ctx context.Context, r provider.Request, emit func(provider.Delta)) (provider.Answer, error) {
	a := &p.recording.Answers[r.Answers%uint64(len(p.recording.Answers))]
	for _, part := range a.Parts {
		kind := provider.Text
		if part.Reasoning {
			kind = provider.Reasoning
		}
		for text := range provider.Chunks(part.Text, p.options.Chunk) {
			if err := p.pause(ctx); err != nil {
				return provider.Answer{}, err
			}
			emit(provider.Delta{Kind: kind, Text: text})
		}
	}
	if len(a.Parts) == 0 {
		if err := p.pause(ctx); err != nil {
			return provider.Answer{}, err
		}
	}
	return answer(a, r.Summary), nil
}

func (p *Provider) pause(ctx context.Context) error {
	if p.options.Pace <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(p.options.Pace)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func answer(a *transcript.Answer, summary bool) provider.Answer {
	out := provider.Answer{Content: a.Text(), FinishReason: a.FinishReason}
	if u := a.Usage; u != nil {
		out.Usage = &provider.Usage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion}
	}
	if summary {
		out.FinishReason = "stop"
		return out
	}
	for _, c := range a.Calls {
		out.ToolCalls = append(out.ToolCalls, provider.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return out
}
