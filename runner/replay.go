package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"culm/tool"
)

// replay runs the next decided call: exactly the arguments that are handed
// out, and only if they are what was approved.
func (s *session) replay(ctx context.Context) error {
	var out replayResult
	stored, err := s.do(ctx, "replay.start", s.hold.runRef, &out)
	switch {
	case err != nil:
		return err
	case out.Replay == nil && stored: // blocked, or the loop ended
		return nil
	case out.Replay == nil:
		return &refusal{Command: "replay.start", Code: codeNoReplay, Message: "nothing to replay"}
	}
	c := tool.Call{
		Session: s.name, RunID: s.hold.RunID, Provider: s.providerID(), ID: out.Replay.ToolCallID,
		Name: out.Replay.Name, Arguments: out.Replay.Arguments, Replay: true,
	}
	if sum := sha256.Sum256([]byte(c.Arguments)); hex.EncodeToString(sum[:]) != out.Replay.Digest {
		return s.refuseReplay(ctx, c)
	}
	var o outcome
	cause := s.watch(ctx, func(call context.Context) {
		o = s.executeStarted(ctx, call, c)
		err = s.reportReplay(ctx, call, c, o)
	})
	switch {
	case errors.Is(cause, errLost):
		return errLost
	case errors.Is(err, errUnresolved):
		return s.givenUp(ctx, cause, err)
	}
	return err
}

func (s *session) reportReplay(ctx, call context.Context, c tool.Call, o outcome) error {
	ask := o.result.Ask
	if !o.known || ask == nil || !ask.Approval || context.Cause(call) != nil {
		return s.report(ctx, call, c, o)
	}
	return s.tell(ctx, c, func(ctx context.Context) error {
		_, err := s.do(ctx, "tool.park", s.parkData(planned{c, s.describe(c)}, *ask), nil)
		return err
	})
}

// refuseReplay ends the run: what was handed out is not what was approved.
func (s *session) refuseReplay(ctx context.Context, c tool.Call) error {
	message := fmt.Sprintf("%s was not run: its arguments are not the ones that were approved", c.Name)
	s.log.Error("replay refused", "run", c.RunID, "call", c.ID, "err", codeDigest)
	if err := s.finishCall(ctx, c, outcome{result: tool.Failed(codeDigest, message)}); err != nil {
		return err
	}
	s.fail(ctx, codeDigest, message)
	return errLetGo
}
