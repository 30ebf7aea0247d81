package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"culm/aggregate"
	"culm/tool"
)

// tools settles the open calls of the last answer. Questions are put to a
// person first; every other call is judged by the policy, and those that it
// allows run side by side.
func (s *session) tools(ctx context.Context, step aggregate.Step) error {
	if len(step.Calls) == 0 {
		// Started, and not known here any more: it may have happened.
		s.fail(ctx, codeCallUnresolved, "a call was started and its outcome was lost")
		return errLetGo
	}
	calls, err := s.ask(ctx, step.Calls)
	if err != nil || len(calls) == 0 {
		return err
	}
	b := batch{s: s, started: make(chan *work, len(calls)), slots: make(chan struct{}, s.r.cfg.Parallel)}
	cause := s.watch(ctx, func(call context.Context) { err = b.run(ctx, call, calls) })
	switch {
	case errors.Is(cause, errLost):
		return errLost
	case errors.Is(err, errUnresolved):
		return s.givenUp(ctx, cause, err)
	}
	return err
}

// givenUp ends a run of which a call did not end; cause is watch's. The call
// stays without an outcome. A run that was asked to cancel is finished as that.
func (s *session) givenUp(ctx context.Context, cause, err error) error {
	if errors.Is(cause, errCancel) {
		return cancelled("tool.finish")
	}
	s.fail(ctx, codeCallUnresolved, err.Error())
	return errLetGo
}

// planned is a call with what it would touch.
type planned struct {
	call   tool.Call
	access tool.Access
}

func (s *session) plan(c aggregate.StepCall) planned {
	p := planned{call: tool.Call{
		Session: s.name, RunID: s.hold.RunID, Provider: s.providerID(), ID: c.ID, ModelID: c.ModelID, Name: c.Name, Arguments: c.Arguments,
		At: &tool.Position{Answer: c.Answer, Index: c.Index},
	}}
	p.access = s.describe(p.call)
	return p
}

// describe falls back to what the name says if the tool panics, and wherever
// the tool says nothing.
func (s *session) describe(c tool.Call) (a tool.Access) {
	fallback := tool.AccessByName(c.Name)
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "run", c.RunID, "call", c.ID, "err", p)
			a = fallback
		}
	}()
	a = s.r.cfg.Tools.Describe(c)
	a.PermissionType = cmp.Or(a.PermissionType, fallback.PermissionType)
	a.Resource = cmp.Or(a.Resource, fallback.Resource, "(unnamed tool)")
	return a
}

// ask puts the questions among the calls to a person and returns the other
// calls. One that changes the world does not run beside an open question,
// whose answer may be about it: a person is asked about it too.
func (s *session) ask(ctx context.Context, calls []aggregate.StepCall) ([]planned, error) {
	all := make([]planned, len(calls))
	question := false
	for i, c := range calls {
		all[i] = s.plan(c)
		question = question || all[i].isQuestion()
	}
	others := make([]planned, 0, len(all))
	for _, p := range all {
		if !p.isQuestion() {
			if question && p.access.Ask == nil && p.access.Mutating {
				p.access.Ask = &tool.Question{Text: "Run " + p.call.Name + "? A question of the same answer is still open.", Approval: true}
			}
			others = append(others, p)
			continue
		}
		if ctx.Err() != nil {
			return nil, errLetGo
		}
		if err := s.park(ctx, p); err != nil {
			return nil, err
		}
	}
	return others, nil
}

func (p planned) isQuestion() bool { return p.access.Ask != nil && !p.access.Ask.Approval }

func (s *session) park(ctx context.Context, p planned) error {
	_, err := s.do(ctx, "tool.park", s.parkData(p, *p.access.Ask), nil)
	return err
}

func (s *session) parkData(p planned, q tool.Question) toolParkData {
	d := toolParkData{runRef: s.hold.runRef, ToolCallID: p.call.ID, Question: q.Text, Options: q.Options, AllowCustom: q.AllowCustom}
	if q.Approval {
		d.Request = &requestData{
			ToolName: p.call.Name, PermissionType: p.access.PermissionType, Resource: p.access.Resource,
			Summary: p.access.Summary, Risk: p.access.Risk,
		}
	}
	return d
}

// start has the policy judge the call and, where it may run, makes its start
// durable. It returns false if the call was settled or waits for a person.
func (s *session) start(ctx context.Context, p planned) (bool, error) {
	allowed, err := s.authorize(ctx, p)
	if err != nil || !allowed {
		return false, err
	}
	if p.access.Ask != nil { // policy lets it pass, the tool wants a word of its own
		return false, s.park(ctx, p)
	}
	_, err = s.do(ctx, "tool.start", toolStartData{s.hold.runRef, p.call.ID, p.access.Mutating}, nil)
	r, isRefusal := refused(err)
	switch {
	case !isRefusal:
		return err == nil, err
	case r.Code == aggregate.CodePlanMode:
		return false, s.notRun(ctx, p, r.Code, "plan mode lets nothing change the world")
	}
	return false, err
}

// authorize has the policy of the session judge the call. Denied and parked
// calls are settled by that; so is one that cannot be judged.
func (s *session) authorize(ctx context.Context, p planned) (allowed bool, err error) {
	var out authorizeResult
	_, err = s.do(ctx, "tool.authorize", toolAuthorizeData{
		runRef: s.hold.runRef, ToolCallID: p.call.ID, PermissionType: p.access.PermissionType, Resource: p.access.Resource,
		Summary: p.access.Summary, Risk: p.access.Risk, Mutating: p.access.Mutating,
	}, &out)
	if r, ok := refused(err); ok && (r.Code == aggregate.CodePayloadTooLarge || r.Code == aggregate.CodeInvalidCommand) {
		return false, s.notRun(ctx, p, aggregate.CodeNotAuthorized, "the policy could not judge it: "+r.Message)
	}
	return out.Decision == "allow", err
}

// notRun gives the call a failed result without a start: nothing happened.
func (s *session) notRun(ctx context.Context, p planned, code, why string) error {
	return s.finishCall(ctx, p.call, outcome{result: tool.Failed(code, p.call.Name+" was not run: "+why), known: true})
}

// outcome is how the execution of a started call ended.
type outcome struct {
	result  tool.Result
	known   bool // false: the call was given up, what it did is not known
	elapsed time.Duration
}

// execute runs a started call; ctx bounds it, with cause as in watch.
func (s *session) execute(ctx context.Context, c tool.Call) outcome {
	one, cancel := context.WithTimeoutCause(ctx, s.r.cfg.ToolTimeout, errTimeout)
	defer cancel()
	stream, began := s.hold.stream, time.Now()
	result, known := isolate(one, s.log, s.r.cfg.Patience, func() tool.Result {
		return s.r.cfg.Tools.Execute(one, c, func(text string) {
			if one.Err() == nil {
				stream.send(Delta{Kind: kindToolOutput, Text: text, ToolCallID: c.ID})
			}
		})
	}, func(any) tool.Result { return tool.Failed("panic", c.Name+" panicked") })
	switch {
	case result.Success:
		result.Error = ""
	case result.Error == "" && errors.Is(context.Cause(one), errTimeout):
		result.Error = "timeout"
	case result.Error == "":
		result.Error = "tool_failed"
	}
	return outcome{result, known, time.Since(began)}
}
