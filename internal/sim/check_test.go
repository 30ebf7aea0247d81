package sim

import (
	"fmt"
	"strings"

	"culm/aggregate"
	"culm/events"
)

// check goes through the log of a history and finds the first thing that must
// not be, or "".
type check struct {
	mode             string
	plan             bool
	started, ended   map[string]bool // runs
	cancelled        map[string]bool
	suspended        map[string]bool
	stopped          map[string]bool // loops
	plain, replays   map[string]int  // starts by occurrence
	approved         map[string]bool // generations that may be replayed
	arguments, calls map[string]string
}

func newCheck() *check {
	return &check{
		started: map[string]bool{}, ended: map[string]bool{}, cancelled: map[string]bool{}, suspended: map[string]bool{}, stopped: map[string]bool{},
		plain: map[string]int{}, replays: map[string]int{}, approved: map[string]bool{}, arguments: map[string]string{}, calls: map[string]string{},
	}
}

func (c *check) event(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.SessionCreated:
		c.mode = d.Mode
	case events.SessionModeChanged:
		c.mode = d.Mode
	case events.SessionPlanEntered:
		c.plan = true
	case events.SessionPlanExited:
		c.plan = false
	case events.RunStarted:
		if c.started[d.RunID] || c.ended[d.RunID] {
			return "the run starts twice"
		}
		for run := range c.started {
			if !c.ended[run] && !c.suspended[run] {
				return "two runs live"
			}
		}
		c.started[d.RunID] = true
	case events.RunFinished:
		return c.ends(d.RunID)
	case events.RunRefused:
		return c.ends(d.RunID)
	case events.RunInterrupted:
		return c.ends(d.RunID)
	case events.RunCancelRequested:
		c.cancelled[d.RunID] = true
		clear(c.approved)
	case events.LoopStopRequested:
		clear(c.approved)
		if d.Loop != nil {
			c.stopped[d.Loop.Generation] = true
		}
	case events.ApprovalDecided:
		if d.Decision == "allow_once" {
			c.approved[d.Generation] = true
		}
	}
	return c.works(e)
}

func (c *check) ends(run string) string {
	if c.ended[run] {
		return "the run ends twice"
	}
	c.ended[run] = true
	return ""
}

func (c *check) works(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.RoundStarted:
		if c.cancelled[e.Run] || d.Loop != nil && c.stopped[d.Loop.Generation] {
			return "a round after a cancel or a stop"
		}
	case events.RoundFinished:
		for i, t := range d.Message.ToolCalls {
			c.arguments[aggregate.ResultID(d.Message.MessageID, i)] = t.Arguments
		}
	case events.ToolStarted:
		c.plain[d.MessageID]++
		switch {
		case c.plain[d.MessageID] > 1:
			return "a call starts twice"
		case c.cancelled[e.Run]:
			return "a call starts after the cancel"
		case c.plan:
			return "a call starts in plan mode"
		case c.mode != "auto" && !strings.Contains(c.arguments[d.MessageID], "/free/"):
			return "nobody was asked"
		}
	case events.ReplayStarted:
		c.replays[d.MessageID]++
		switch {
		case !c.approved[d.Generation]:
			return "a replay without an approval, or after a cancel or a stop"
		case c.cancelled[e.Run], c.plan:
			return "a replay after the cancel, or in plan mode"
		}
		delete(c.approved, d.Generation)
	}
	return ""
}

// world holds the ledger against the starts.
func (c *check) world(ran map[string][2]int) string {
	starts := map[string][2]int{}
	for occurrence, arguments := range c.arguments {
		n := starts[arguments]
		n[0] += c.plain[occurrence]
		n[1] += c.replays[occurrence]
		starts[arguments] = n
	}
	for arguments, n := range ran {
		if s, known := starts[arguments]; !known || n[0] > s[0] || n[1] > s[1] {
			return fmt.Sprintf("%s ran %v times, was started %v times, known %t", arguments, n, s, known)
		}
	}
	return ""
}
