package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
	"culm/internal/show"
)

type state struct {
	Session    sessionName `arg:"" help:"Name of the session."`
	At         *uint64     `placeholder:"SEQ" help:"As it stood after this event; by default after the last."`
	Transcript bool        `help:"Show all messages, too."`
}

// Run shows the folded state: in words, or with --json as the engine gives it.
func (c *state) Run(ctx context.Context, a *app) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	q := aggregate.ReadQuery{AtSequence: c.At, Transcript: c.Transcript}
	for page := 0; ; page++ {
		r, err := a.read(ctx, b, string(c.Session), q)
		if err != nil {
			return err
		}
		if err := c.print(ctx, a, b, r, page > 0); err != nil {
			return err
		}
		if len(r.Next) == 0 || !c.Transcript {
			return nil
		}
		if err := json.Unmarshal(r.Next, &q.AfterMessage); err != nil {
			return fmt.Errorf("next page %s: %w", r.Next, err)
		}
		at := r.Sequence // all pages of one state
		q.AtSequence = &at
	}
}

// print shows one page; pages after the first hold only more of the transcript.
func (c *state) print(ctx context.Context, a *app, b backend, r aggregate.ReadReply, more bool) error {
	if a.JSON {
		return a.printJSON(r)
	}
	v, err := viewOf(r)
	if err != nil {
		return err
	}
	text := v.transcript()
	if !more {
		if v.Run == nil && !v.Session.Closed {
			v.interrupted = a.endedInterrupted(ctx, b, r.Session, r.Sequence)
		}
		text = v.summary(a) + text
	}
	_, err = fmt.Fprint(a.out, text)
	return err
}

// summary tells all but the messages.
func (v *view) summary(a *app) string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", label, text)
		}
	}
	s := v.Session
	line("session", v.reply.Session+when(s.Title != "", ", “"+show.Clean(s.Title)+"”")+when(s.Closed, ", closed"))
	line("birth", v.reply.Birth)
	line("events", fmt.Sprintf("%s, head %d:%s", show.Thousands(v.reply.Sequence), v.reply.Sequence, v.reply.HeadHash))
	if !s.CreatedAt.IsZero() { // no command creates the policy's session
		line("created", show.When(s.CreatedAt, a.now(), a.place))
	}
	if s.Model != nil {
		line("model", show.Clean(s.Model.Provider+"/"+s.Model.Model))
	}
	line("reasoning", show.Clean(s.ReasoningEffort))
	line("mode", show.Clean(s.Mode)+when(s.Plan != nil, ", plan mode: nothing may be changed")+when(s.ReadOnly, ", read only"))
	line("workspace", show.Clean(s.Workspace))
	line("run", v.runText())
	if v.Loop != nil {
		b.WriteString(v.loopLines())
	}
	for _, p := range v.Pending {
		line("waits", waiting(p.Kind, p.ToolCallID, p.Name, p.Question.Question, p.Generation))
	}
	if n := len(v.Replays); n > 0 {
		line("decided", show.Count(n, "call")+" to run at the next resume")
	}
	if v.Usage.Total > 0 {
		line("usage", fmt.Sprintf("%s (%s in, %s out)", show.Count(v.Usage.Total, "token"), show.Thousands(v.Usage.Prompt), show.Thousands(v.Usage.Completion)))
	}
	return b.String()
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

func (v *view) runText() string {
	r := v.Run
	switch {
	case r == nil && v.interrupted:
		return "none; last run interrupted (lease expired: nothing was heard of its runner)" + v.afterInterruption()
	case r == nil:
		return "none"
	}
	text := map[string]string{"requested": "requested, no runner yet", "live": "under way", "suspended": "waits for a person"}[r.Status]
	if text == "" {
		text = show.Clean(r.Status)
	}
	if r.Runner != "" && r.Status != "suspended" { // which has given up ownership
		text += " at " + show.Clean(r.Runner)
	}
	if r.Round != nil {
		text += fmt.Sprintf(", round %d", *r.Round+1)
	}
	return text + when(r.CancelRequested, ", cancel requested") + " (" + show.Clean(r.RunID) + ")"
}

// afterInterruption is what goes on after an interrupted run; where a loop
// blocks, that is told with the loop.
func (v *view) afterInterruption() string {
	switch {
	case v.loopBlocks():
		return ""
	case len(v.Pending) > 0:
		return fmt.Sprintf("; culm pending %s tells what waits for you", v.reply.Session)
	}
	return fmt.Sprintf("; culm resume %s goes on", v.reply.Session)
}

// lookedBack is how many of the last events are looked at for the end of the
// last run.
const lookedBack = 200

// endedInterrupted says that the last run before the sequence is known to have
// ended with its lease. Without an answer nothing is said.
func (a *app) endedInterrupted(ctx context.Context, b backend, session string, through uint64) (interrupted bool) {
	for r, err := range a.history(ctx, b, session, through-min(through, lookedBack), through) {
		if err != nil {
			return false
		}
		switch r.Type {
		case events.RunInterrupted{}.EventType():
			interrupted = true
		case events.RunRequested{}.EventType(), events.RunStarted{}.EventType(), events.RunFinished{}.EventType(), events.RunRefused{}.EventType():
			interrupted = false
		}
	}
	return interrupted
}

// loopLines tell how far the loop is.
func (v *view) loopLines() string {
	l := v.Loop
	var b strings.Builder
	status := strings.ReplaceAll(show.Clean(string(l.Status)), "_", " ")
	if v.loopBlocks() {
		status = "blocked"
	}
	fmt.Fprintf(&b, "%-10s %s: %s, %s, %d done", "loop", status,
		show.Progress("iteration", l.IterationsStarted, l.MaxIterations), show.Progress("round", l.RoundsStarted, l.MaxTotalRounds), l.IterationsCompleted)
	b.WriteString(when(l.Reason != "", " ("+show.Clean(l.Reason)+")") + when(l.StopRequested, ", stop requested") + when(l.Abandoned, ", abandoned") + "\n")
	if v.loopBlocks() {
		fmt.Fprintf(&b, "%-10s %s; %s\n", "blocked", v.blockedWhy(), v.wayOut())
	}
	fmt.Fprintf(&b, "%-10s %s\n", "objective", show.Quote(l.Objective, 200))
	fmt.Fprintf(&b, "%-10s %s, revision %d\n", "generation", show.Clean(l.Generation), l.Revision)
	return b.String()
}

// waiting tells an item that waits for a person.
func waiting(kind, call, tool, question, generation string) string {
	about := show.Quote(question, 200)
	switch kind {
	case "approval":
		about = "for approval: " + about
	case "unknown":
		about = "its outcome is not known: " + about
	}
	text := fmt.Sprintf("%s (call %s) %s", show.Clip(show.Clean(tool), 40), show.Clip(show.Clean(call), 64), about)
	return text + when(generation != "", " (generation "+show.Clean(generation)+")")
}

// transcript tells the messages of the page.
func (v *view) transcript() string {
	var b strings.Builder
	for _, m := range v.Messages {
		who := m.Role
		if m.Origin != "" && m.Origin != m.Role {
			who += ", " + m.Origin
		}
		fmt.Fprintf(&b, "\n[%d] %s%s\n", m.Seq, show.Clean(who), when(m.Success != nil && !*m.Success, ", failed"))
		if m.Content != "" {
			b.WriteString(indent(show.CleanBlock(m.Content)))
		}
		for _, c := range m.ToolCalls {
			b.WriteString(indent(fmt.Sprintf("calls %s %s", show.Clean(c.Name), show.Clip(show.Clean(c.Arguments), 400))))
		}
	}
	return b.String()
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}
