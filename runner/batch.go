package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/provider"
	"culm/tool"
)

// errUnresolved: a started call was given up.
var errUnresolved = errors.New("a call did not end; what it did is not known")

// batch runs the calls of one answer side by side. They are started and
// reported in the order of the answer.
type batch struct {
	s       *session
	started chan *work    // in order; closed after the last start
	slots   chan struct{} // bounds those that run at once
}

// work is one started call.
type work struct {
	call    tool.Call
	outcome chan outcome // receives exactly one
}

// run returns once every started call has ended or was given up. call ends as
// in watch; ctx is the runner's.
func (b *batch) run(ctx, call context.Context, calls []planned) error {
	starting, stop := context.WithCancel(call)
	defer stop()
	startErr := make(chan error, 1)
	go func() {
		defer close(b.started)
		startErr <- b.startAll(ctx, starting, call, calls)
	}()
	var errs error
	for w := range b.started {
		o := <-w.outcome
		if !errors.Is(errs, errLost) { // one that is not known keeps no other from being reported
			errs = errors.Join(errs, b.s.report(ctx, call, w.call, o))
		}
		if errs != nil {
			stop()
		}
	}
	if err := <-startErr; errs == nil {
		return err
	}
	return errs
}

// startAll starts one call after the other until one of the contexts ends.
func (b *batch) startAll(ctx, starting, call context.Context, calls []planned) error {
	for _, p := range calls {
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
		case <-starting.Done():
		}
		switch {
		case errors.Is(context.Cause(call), errCancel):
			return cancelled("tool.start")
		case ctx.Err() != nil, starting.Err() != nil:
			return errLetGo
		}
		ok, err := b.s.start(ctx, p)
		if err != nil {
			return err
		}
		if !ok {
			<-b.slots
			continue
		}
		w := &work{p.call, make(chan outcome, 1)}
		b.started <- w
		go func() {
			w.outcome <- b.s.executeStarted(ctx, call, w.call)
			<-b.slots
		}()
	}
	return nil
}

// executeStarted runs a call whose start is stored, unless the runner's
// context has ended since: then it is not run, and says so.
func (s *session) executeStarted(ctx, call context.Context, c tool.Call) outcome {
	if ctx.Err() != nil || context.Cause(call) != nil {
		return outcome{result: tool.Failed("not_run", c.Name+" was not run: the runner was told to stop"), known: true}
	}
	return s.execute(call, c)
}

// report stores the outcome of a started call, if there is one to store.
func (s *session) report(ctx, call context.Context, c tool.Call, o outcome) error {
	cause := context.Cause(call)
	switch {
	case errors.Is(cause, errLost):
		return errLost
	case errors.Is(cause, errShutdown) && !o.result.Success && o.result.Error != "not_run":
		return errLetGo // our own doing, or unknown: not the tool's failure
	case !o.known:
		return fmt.Errorf("call %s of %s: %w", c.ID, c.Name, errUnresolved)
	case o.result.Ask != nil && !c.Replay:
		o.result = tool.Failed("needs_approval", c.Name+" asked for an approval after it was started")
	}
	return s.tell(ctx, c, func(ctx context.Context) error { return s.finishCall(ctx, c, o) })
}

// smallResult is what remains of a result that no event can hold.
const smallResult = 16 << 10

func (s *session) finishCall(ctx context.Context, c tool.Call, o outcome) error {
	content := strings.ToValidUTF8(o.result.Content, "\uFFFD")
	data := toolFinishData{
		runRef: s.hold.runRef, ToolCallID: c.ID, Success: o.result.Success, Content: shorten(content, s.r.cfg.MaxResult),
		Error: o.result.Error, ElapsedMS: o.elapsed.Milliseconds(),
	}
	_, err := s.do(ctx, "tool.finish", data, nil)
	if r, ok := refused(err); ok && r.Code == aggregate.CodePayloadTooLarge {
		data.Content = shorten(content, smallResult)
		_, err = s.do(ctx, "tool.finish", data, nil)
	}
	return err
}

// shorten cuts a text between two characters and says so.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for head := range provider.Chunks(text, limit) {
		return fmt.Sprintf("%s\n[cut: %d of %d bytes]", head, len(head), len(text))
	}
	return ""
}
