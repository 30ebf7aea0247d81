package runner

import (
	"context"
	"errors"
	"time"

	"culm/aggregate"
	"culm/tool"
)

// tools runs the open calls of the last answer: those that a person must be
// asked about are parked first, the others run side by side.
func (s *session) tools(ctx context.Context, step aggregate.Step) error {
	if len(step.Calls) == 0 {
		// Started, and not known here any more: it may have happened.
		s.fail(ctx, codeCallUnresolved, "a call was started and its outcome was lost")
		return errLetGo
	}
	calls, err := s.park(ctx, step.Calls)
	if err != nil || len(calls) == 0 {
		return err
	}
	b := batch{s: s, started: make(chan *work, len(calls)), slots: make(chan struct{}, s.r.cfg.Parallel)}
	cause := s.watch(ctx, func(call context.Context) { err = b.run(ctx, call, calls) })
	switch {
	case errors.Is(cause, errLost):
		return errLost
	case errors.Is(err, errUnresolved):
		s.fail(ctx, codeCallUnresolved, err.Error())
		return errLetGo
	}
	return err
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

// describe falls back to what the name says if the tool panics.
func (s *session) describe(c tool.Call) (a tool.Access) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "run", c.RunID, "call", c.ID, "err", p)
			a = tool.AccessByName(c.Name)
		}
	}()
	return s.r.cfg.Tools.Describe(c)
}

// park asks a person about the calls that want it and returns the others. A
// call that changes the world does not run beside an open question, whose
// answer may be about it: it is put to the person too.
func (s *session) park(ctx context.Context, calls []aggregate.StepCall) ([]planned, error) {
	all := make([]planned, len(calls))
	question := false
	for i, c := range calls {
		all[i] = s.plan(c)
		question = question || (all[i].access.Ask != nil && !all[i].access.Ask.Approval)
	}
	free := all[:0]
	for _, p := range all {
		if question && p.access.Ask == nil && p.access.Mutating {
			p.access.Ask = &tool.Question{Text: "Run " + p.call.Name + "? A question of the same answer is still open.", Approval: true}
		}
		if p.access.Ask == nil {
			free = append(free, p)
			continue
		}
		if ctx.Err() != nil {
			return nil, errLetGo
		}
		if _, err := s.do(ctx, "tool.park", s.parkData(p, *p.access.Ask), nil); err != nil {
			return nil, err
		}
	}
	return free, nil
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

// start makes the call's start durable. It returns false if policy has settled
// or parked the call instead.
func (s *session) start(ctx context.Context, p planned) (bool, error) {
	data := toolStartData{s.hold.runRef, p.call.ID, p.access.Mutating}
	_, err := s.do(ctx, "tool.start", data, nil)
	r, isRefusal := refused(err)
	switch {
	case !isRefusal:
		return err == nil, err
	case r.Code == aggregate.CodeCallNotOpen && r.Tries > 1:
		return true, nil // nobody else holds the fence: the start whose reply was lost was ours
	case r.Code != aggregate.CodeNotAuthorized && r.Code != aggregate.CodePlanMode:
		return false, err
	}
	allowed, authErr := s.authorize(ctx, p)
	a, authRefused := refused(authErr)
	switch {
	case authRefused && a.Code == aggregate.CodeUnknownCommand:
		return false, err // no policy to ask: the first refusal stands
	case authErr != nil:
		return false, authErr
	case !allowed:
		return false, nil
	case r.Code == aggregate.CodePlanMode: // policy would let it pass, the plan does not
		return false, err
	}
	_, err = s.do(ctx, "tool.start", data, nil)
	return err == nil, err
}

// authorize has the policy of the session judge the call. Denied and parked
// calls are settled by that.
func (s *session) authorize(ctx context.Context, p planned) (allowed bool, err error) {
	var out authorizeResult
	_, err = s.do(ctx, "tool.authorize", toolAuthorizeData{
		runRef: s.hold.runRef, ToolCallID: p.call.ID, PermissionType: p.access.PermissionType, Resource: p.access.Resource,
		Summary: p.access.Summary, Risk: p.access.Risk, Mutating: p.access.Mutating,
	}, &out)
	return out.Decision == "allow", err
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
