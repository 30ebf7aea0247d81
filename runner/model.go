package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"culm/aggregate"
	"culm/events"
	"culm/provider"
)

// model asks the model for the answer of the open round and reports it.
func (s *session) model(ctx context.Context, step aggregate.Step) error {
	if a := s.hold.answer; a != nil && a.round == step.Round {
		return s.answered(ctx, step, a.answer, a.attempts)
	}
	p, err := s.provider()
	if err != nil {
		return s.failRound(ctx, step, failure(err))
	}
	s.hold.stream.begin(step.Round)
	var answer provider.Answer
	var attempts int
	cause := s.watch(ctx, func(call context.Context) {
		answer, attempts, err = s.generate(ctx, call, p, step)
	})
	switch {
	case errors.Is(cause, errLost):
		return errLost
	case err == nil:
		return s.answered(ctx, step, answer, attempts)
	case errors.Is(cause, errCancel):
		return s.cancelRound(ctx, step)
	case cause != nil, errors.Is(err, errShutdown):
		return errLetGo
	}
	return s.failRound(ctx, step, failure(err))
}

// providerID names the instance that serves the run.
func (s *session) providerID() string {
	id := cmp.Or(s.hold.primary.Provider, s.r.cfg.DefaultProvider)
	if ids := s.r.cfg.Providers.IDs(); id == "" && len(ids) == 1 {
		id = ids[0]
	}
	return id
}

// provider is the live instance that serves the run.
func (s *session) provider() (provider.Provider, error) {
	id := s.providerID()
	p, ok := s.r.cfg.Providers.Get(id)
	if !ok {
		return nil, &provider.Error{Code: aggregate.CodeProviderUnavailable, Message: fmt.Sprintf("no live provider %q", id)}
	}
	return p, nil
}

// maxRetryAfter bounds what a model's server may ask for.
const maxRetryAfter = time.Minute

// generate makes up to Attempts model calls. The error is a *provider.Error,
// the cause of call's end, or errShutdown if ctx ended between two attempts.
func (s *session) generate(ctx, call context.Context, p provider.Provider, step aggregate.Step) (provider.Answer, int, error) {
	for n := 1; ; n++ {
		answer, failure := s.attempt(call, p, step, n)
		switch {
		case failure == nil:
			return answer, n, nil
		case context.Cause(call) != nil:
			return answer, n, context.Cause(call)
		case !failure.Retryable:
			return answer, n, failure
		case n >= s.r.cfg.Attempts:
			failure.Message += fmt.Sprintf(" (attempt %d of %d)", n, s.r.cfg.Attempts)
			return answer, n, failure
		}
		s.log.Debug("model attempt", "run", step.RunID, "round", step.Round, "attempt", n, "err", failure)
		s.hold.stream.send(Delta{Kind: kindProgress, Text: "retrying: " + failure.Code, Attempt: n + 1})
		wait := jitter(s.r.cfg.Backoff, time.Minute, n) + min(failure.RetryAfter, maxRetryAfter)
		if err := pause(ctx, call, wait); err != nil {
			return answer, n, err
		}
	}
}

// pause waits between two attempts. With the runner's context no new one begins.
func pause(ctx, call context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-call.Done():
		return context.Cause(call)
	case <-t.C:
	}
	if ctx.Err() != nil {
		return errShutdown
	}
	return nil
}

type generated struct {
	answer provider.Answer
	err    error
}

// attempt makes one model call; a panic and a call that does not end are failures.
func (s *session) attempt(call context.Context, p provider.Provider, step aggregate.Step, n int) (provider.Answer, *provider.Error) {
	one, cancel := context.WithTimeoutCause(call, s.r.cfg.ModelTimeout, errTimeout)
	defer cancel()
	stream, mark := s.hold.stream, n
	if n == 1 {
		mark = 0
	}
	request := s.request(step)
	out, ok := isolate(one, s.log, s.r.cfg.Patience, func() generated {
		answer, err := p.Generate(one, request, func(d provider.Delta) {
			if one.Err() == nil {
				stream.send(Delta{Kind: string(d.Kind), Text: d.Text, Attempt: mark})
			}
		})
		return generated{answer, err}
	}, func(p any) generated {
		return generated{err: &provider.Error{Code: provider.CodePanic, Message: fmt.Sprintf("the provider panicked: %v", p)}}
	})
	switch {
	case !ok:
		return provider.Answer{}, &provider.Error{Code: provider.CodeTimeout, Message: "the model call did not end"}
	case out.err == nil:
		return out.answer, checkAnswer(&out.answer)
	}
	return provider.Answer{}, failureOf(one, out.err)
}

func (s *session) request(step aggregate.Step) provider.Request {
	r := provider.Request{
		Session: s.name, RunID: step.RunID, Model: s.hold.primary.Model,
		Round: step.Round, Iteration: step.Iteration, Summary: step.Summary, Answers: step.Answers,
	}
	if read := s.r.cfg.Messages; read != nil {
		r.Messages = func(ctx context.Context) ([]provider.Message, error) { return read(ctx, s.name) }
	}
	return r
}

// failureOf finds or makes the typed failure of a model call.
func failureOf(one context.Context, err error) *provider.Error {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		failure := *e
		return &failure
	}
	if errors.Is(context.Cause(one), errTimeout) {
		return &provider.Error{Code: provider.CodeTimeout, Message: "the model call took too long", Retryable: true}
	}
	return &provider.Error{Code: provider.CodeFailed, Message: err.Error()}
}

// checkAnswer refuses what could not be stored exactly: calls are never
// repaired, since a person may have to approve them.
func checkAnswer(a *provider.Answer) *provider.Error {
	if !utf8.ValidString(a.Content) {
		return &provider.Error{Code: provider.CodeInvalidAnswer, Message: "the text is not UTF-8"}
	}
	for i, c := range a.ToolCalls {
		if !utf8.ValidString(c.ID) || !utf8.ValidString(c.Name) || !utf8.ValidString(c.Arguments) {
			return &provider.Error{Code: provider.CodeInvalidAnswer, Message: fmt.Sprintf("tool call %d is not UTF-8", i)}
		}
	}
	return nil
}

// answered reports the answer; in a loop the same command asks for the next round.
func (s *session) answered(ctx context.Context, step aggregate.Step, a provider.Answer, attempts int) error {
	data := roundFinishData{
		runRef: s.hold.runRef, Round: step.Round, Message: answerData{Content: a.Content}, FinishReason: a.FinishReason,
		Attempts: attempts, AdmitNext: step.InLoop && !step.Stopping && !step.Cancelled && len(a.ToolCalls) == 0 && ctx.Err() == nil,
	}
	if u := a.Usage; u != nil {
		data.Usage = &events.Usage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Total}
	}
	for _, c := range a.ToolCalls {
		data.Message.ToolCalls = append(data.Message.ToolCalls, callData(c))
	}
	_, err := s.do(ctx, "round.finish", data, nil)
	if s.hold.answer = nil; errors.Is(err, errNoAnswer) {
		s.hold.answer = &answered{step.Round, a, attempts}
	}
	if r, ok := refused(err); ok && !races[r.Code] {
		return s.failRound(ctx, step, events.Failure{Code: r.Code, Message: "the answer was not accepted: " + r.Message})
	}
	return err
}

// failure is why a model call had no answer, as it is stored.
func failure(err error) events.Failure {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return events.Failure{Code: e.Code, Message: e.Error(), Retryable: e.Retryable}
	}
	return events.Failure{Code: provider.CodeFailed, Message: err.Error()}
}

// failRound reports that the round has no answer, and ends the run.
func (s *session) failRound(ctx context.Context, step aggregate.Step, f events.Failure) error {
	s.hold.failure = &f
	if _, err := s.do(ctx, "round.fail", roundFailData{s.hold.runRef, step.Round, f}, nil); err != nil {
		return err
	}
	s.log.Warn("the round failed", "run", step.RunID, "round", step.Round, "code", f.Code, "err", f.Message)
	return s.finish(ctx, finishData{Outcome: outcomeError, Error: &f})
}

// cancelRound ends round and run as somebody asked.
func (s *session) cancelRound(ctx context.Context, step aggregate.Step) error {
	f := events.Failure{Code: codeCancelled, Message: "the model call was interrupted: the run was asked to cancel"}
	if _, err := s.do(ctx, "round.fail", roundFailData{s.hold.runRef, step.Round, f}, nil); err != nil {
		return err
	}
	return s.finish(ctx, finishData{Outcome: outcomeCancelled})
}
