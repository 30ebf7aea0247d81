package projection

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"culm/events"
)

// SessionsQuery asks for sessions, those that changed last first. A session
// that changes while pages are read moves to the front of the first one.
type SessionsQuery struct {
	Status string `json:"status,omitzero"` // stuck, closed, running, requested, waiting, blocked, failed or idle
	Kind   string `json:"kind,omitzero"`   // root or child
	Parent string `json:"parent,omitzero"` // session
	// Text is found in the name, the title, or by its words in a message.
	Text string `json:"text,omitzero"`
	List
	Wait
}

// SessionQuery asks for one session.
type SessionQuery struct {
	Session string  `json:"session"`
	After   *uint64 `json:"after,omitzero"` // taken and not used: it is one item
	Limit   *int    `json:"limit,omitzero"` // as After
	Wait
}

// SessionItem is one session as lists show it.
type SessionItem struct {
	Session         string            `json:"session"`
	Birth           string            `json:"birth"`
	Kind            string            `json:"kind"`
	Parent          *events.Parent    `json:"parent,omitzero"`
	Title           string            `json:"title"`
	Model           *events.Model     `json:"model,omitzero"`
	ReasoningEffort string            `json:"reasoning_effort,omitzero"`
	Workspace       string            `json:"workspace,omitzero"`
	Metadata        map[string]string `json:"metadata,omitzero"`
	Mode            string            `json:"mode"`
	EffectiveMode   string            `json:"effective_mode"`
	Plan            bool              `json:"plan"`
	ReadOnly        bool              `json:"read_only,omitzero"`
	NoHumanApprover bool              `json:"no_human_approver,omitzero"`
	EnforcePolicy   bool              `json:"enforce_policy,omitzero"`
	Closed          bool              `json:"closed"`
	Status          string            `json:"status"`
	CreatedAt       time.Time         `json:"created_at,omitzero"`
	UpdatedAt       time.Time         `json:"updated_at,omitzero"`
	AgeMS           int64             `json:"age_ms"`  // since created_at
	IdleMS          int64             `json:"idle_ms"` // since updated_at
	Sequence        uint64            `json:"sequence"`
	Events          int64             `json:"events"`
	LastEvent       EventItem         `json:"last_event"`
	Messages        int64             `json:"messages"`
	Run             *SessionRun       `json:"run"`  // null where none is requested, live or suspended
	Loop            *LoopProgress     `json:"loop"` // the newest, null for none
	Waiting         int64             `json:"waiting"`
	WaitingSince    time.Time         `json:"waiting_since,omitzero"` // of the oldest item
	WaitingMS       int64             `json:"waiting_ms,omitzero"`
	Usage           events.Usage      `json:"usage"`
	LastOutcome     string            `json:"last_outcome,omitzero"` // of the last run that ended
	LastError       string            `json:"last_error,omitzero"`
	Stuck           *StuckItem        `json:"stuck,omitzero"`
}

// EventItem names an event by type and actor.
type EventItem struct {
	Type  string `json:"type"`
	Actor string `json:"actor"`
}

// SessionRun is the run of a session as lists show it.
type SessionRun struct {
	RunID           string `json:"run_id"`
	Status          string `json:"status"`
	Cause           string `json:"cause"`
	Runner          string `json:"runner,omitzero"`
	Round           *int64 `json:"round,omitzero"` // the open or last one, 0-based
	CancelRequested bool   `json:"cancel_requested"`
}

// LoopProgress is how far a loop is.
type LoopProgress struct {
	Generation          string `json:"generation"`
	Status              string `json:"status"`
	Reason              string `json:"reason,omitzero"`
	IterationsStarted   int64  `json:"iterations_started"`
	IterationsCompleted int64  `json:"iterations_completed"`
	MaxIterations       int64  `json:"max_iterations"`
	RoundsStarted       int64  `json:"rounds_started"`
	MaxTotalRounds      int64  `json:"max_total_rounds"`
}

// StuckItem is why a session's views do not move on.
type StuckItem struct {
	Sequence int64  `json:"sequence"` // of the event that could not be applied
	Reason   string `json:"reason"`
}

// Sessions answers sessions.list.
func (p *Projector) Sessions(ctx context.Context, q SessionsQuery) (Page[SessionItem], error) {
	return query(ctx, p, q.Wait, "", func(tx *sql.Tx, out *Page[SessionItem]) (err error) {
		if err := oneOf("status", q.Status, sessionStuck, sessionClosed, sessionRunning, sessionRequested, sessionWaiting, sessionBlocked, sessionFailed, sessionIdle); err != nil {
			return err
		}
		if err := oneOf("kind", q.Kind, "root", "child"); err != nil {
			return err
		}
		l := listing{name: "sessions", order: []string{"updated_at", "session"}, desc: true, List: q.List}
		l.filter("substr(session, 1, 1) <> '_'") // the engine's own
		l.equal("status", q.Status)
		l.equal("kind", q.Kind)
		if q.Parent != "" {
			l.filter("parent_session <> '' AND parent_session = ?", q.Parent)
		}
		if q.Text != "" {
			like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, "\x00", " ").Replace(q.Text) + "%"
			l.filter(`(session LIKE ? ESCAPE '\' OR title LIKE ? ESCAPE '\' OR session IN (
				SELECT m.session FROM messages_fts JOIN messages m ON m.id = messages_fts.rowid WHERE messages_fts MATCH ?))`, like, like, matching(q.Text))
		}
		out.Items, out.Next, err = list(ctx, p, tx, sessionsTable, l, p.sessionItem)
		return err
	})
}

// Session answers sessions.get: a page of one item, or session_not_found.
func (p *Projector) Session(ctx context.Context, q SessionQuery) (Page[SessionItem], error) {
	return query(ctx, p, q.Wait, required(q.Session), func(tx *sql.Tx, out *Page[SessionItem]) (err error) {
		l := listing{name: "session", order: []string{"session"}}
		l.filter("session = ?", q.Session)
		if out.Items, _, err = list(ctx, p, tx, sessionsTable, l, p.sessionItem); err == nil && len(out.Items) == 0 {
			err = notFound(q.Session)
		}
		return err
	})
}

// required makes a missing session one that is no token.
func required(session string) string {
	if session == "" {
		return "."
	}
	return session
}

func (p *Projector) sessionItem(r *sessionRow) (SessionItem, error) {
	it := SessionItem{
		Session: r.Session, Birth: r.Birth, Kind: r.Kind, Title: r.Title, ReasoningEffort: r.ReasoningEffort, Workspace: r.Workspace,
		Mode: r.Mode, EffectiveMode: r.EffectiveMode, Plan: r.Plan, ReadOnly: r.ReadOnly, NoHumanApprover: r.NoHumanApprover,
		EnforcePolicy: r.EnforcePolicy, Closed: r.Closed, Status: r.Status, CreatedAt: when(r.CreatedAt), UpdatedAt: when(r.UpdatedAt),
		AgeMS: p.ageMS(r.CreatedAt), IdleMS: p.ageMS(r.UpdatedAt), Sequence: uint64(r.Seq), LastEvent: EventItem{r.LastType, r.LastActor}, //nolint:gosec // was a sequence
		Messages: r.Messages, Waiting: r.Waiting, WaitingSince: when(r.WaitingSince), WaitingMS: p.ageMS(r.WaitingSince),
		Usage:       usageOf(r.PromptTokens, r.CompletionTokens, r.TotalTokens),
		LastOutcome: r.LastOutcome, LastError: r.LastError,
	}
	if r.FirstSeq > 0 {
		it.Events = r.Seq - r.FirstSeq + 1
	}
	if r.ParentSession != "" {
		it.Parent = &events.Parent{Session: r.ParentSession, ToolCallID: r.ParentCall}
	}
	if r.Provider != "" || r.Model != "" {
		it.Model = &events.Model{Provider: r.Provider, Model: r.Model}
	}
	if r.StuckSeq > 0 {
		it.Stuck = &StuckItem{r.StuckSeq, r.StuckReason}
	}
	if r.RunID != "" {
		it.Run = &SessionRun{RunID: r.RunID, Status: r.RunStatus, Cause: r.RunCause, Runner: r.Runner, CancelRequested: r.CancelRequested}
		if round := r.Round; round >= 0 {
			it.Run.Round = &round
		}
	}
	if r.LoopGeneration != "" {
		it.Loop = &LoopProgress{
			r.LoopGeneration, r.LoopStatus, r.LoopReason, r.IterationsStarted, r.IterationsCompleted, r.MaxIterations, r.RoundsStarted, r.MaxTotalRounds,
		}
	}
	if r.Metadata != "" {
		return it, json.Unmarshal([]byte(r.Metadata), &it.Metadata)
	}
	return it, nil
}

func (i *SessionItem) shrink(limit int) {
	i.Title, i.Workspace, i.Metadata = cut(i.Title, limit), cut(i.Workspace, limit), nil
}

func usageOf(prompt, completion, total int64) events.Usage {
	return events.Usage{Prompt: uint64(prompt), Completion: uint64(completion), Total: uint64(total)} //nolint:gosec // counts
}

// matching spells text as a search for all its words, the last one as a beginning.
func matching(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "\x00", " "))
	for i, w := range words {
		words[i] = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`
	}
	if len(words) == 0 {
		return `""`
	}
	return strings.Join(words, " ") + " *"
}
