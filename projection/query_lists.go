package projection

import (
	"context"
	"database/sql"
	"time"

	"culm/events"
)

// ListQuery asks for rows of a view, of one session or of all, the newest first.
type ListQuery struct {
	Session string `json:"session,omitzero"`
	Status  string `json:"status,omitzero"`
	List
	Wait
}

func (q *ListQuery) listing(name string, order ...string) listing {
	l := listing{name: name, order: order, desc: true, List: q.List}
	l.equal("session", q.Session)
	l.equal("status", q.Status)
	return l
}

// RunItem is one run.
type RunItem struct {
	Session         string          `json:"session"`
	RunID           string          `json:"run_id"`
	Status          string          `json:"status"`
	Cause           string          `json:"cause"`
	Runner          string          `json:"runner,omitzero"`
	Fence           int64           `json:"fence,omitzero"`
	CancelRequested bool            `json:"cancel_requested"`
	RequestedBy     string          `json:"requested_by"`
	RequestedSeq    int64           `json:"requested_seq"`
	RequestedAt     time.Time       `json:"requested_at"`
	StartedAt       time.Time       `json:"started_at,omitzero"`
	EndedAt         time.Time       `json:"ended_at,omitzero"`
	EndedSeq        int64           `json:"ended_seq,omitzero"`
	ElapsedMS       int64           `json:"elapsed_ms"` // from its start, or its request, to its end, or now
	Reason          string          `json:"reason,omitzero"`
	Error           *events.Failure `json:"error,omitzero"`
	Model           *events.Model   `json:"model,omitzero"`
	Rounds          int64           `json:"rounds"`
	Usage           events.Usage    `json:"usage"`
	LoopGeneration  string          `json:"loop_generation,omitzero"`
	Successor       string          `json:"successor,omitzero"`
}

func (i *RunItem) shrink(limit int) {
	if i.Error != nil {
		i.Error.Message = cut(i.Error.Message, limit)
	}
}

// Runs answers runs.list.
func (p *Projector) Runs(ctx context.Context, q ListQuery) (Page[RunItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[RunItem]) (err error) {
		if err := oneOf("status", q.Status, runRequested, runLive, runSuspended, runContinued, runCompleted, runFailed, runCancelled, runRefused, runInterrupted, runStopped); err != nil {
			return err
		}
		out.Items, out.Next, err = list(ctx, p, tx, runsTable, q.listing("runs", "requested_at", "session", "run_id"), p.runItem)
		return err
	})
}

func (p *Projector) runItem(r *runRow) (RunItem, error) {
	it := RunItem{
		Session: r.Session, RunID: r.RunID, Status: r.Status, Cause: r.Cause, Runner: r.Runner, Fence: r.Fence, CancelRequested: r.CancelRequested,
		RequestedBy: r.RequestedBy, RequestedSeq: r.RequestedSeq, RequestedAt: when(r.RequestedAt), StartedAt: when(r.StartedAt),
		EndedAt: when(r.EndedAt), EndedSeq: r.EndedSeq, Reason: r.Reason, Rounds: r.Rounds,
		Usage: usageOf(r.PromptTokens, r.CompletionTokens, r.TotalTokens), LoopGeneration: r.LoopGeneration, Successor: r.Successor,
	}
	from, to := r.StartedAt, r.EndedAt
	if from == 0 {
		from = r.RequestedAt
	}
	it.ElapsedMS = p.ageMS(from)
	if to != 0 {
		it.ElapsedMS = max(0, when(to).Sub(when(from)).Milliseconds())
	}
	if r.ErrorCode != "" || r.ErrorMessage != "" {
		it.Error = &events.Failure{Code: r.ErrorCode, Message: r.ErrorMessage}
	}
	if r.Provider != "" || r.Model != "" {
		it.Model = &events.Model{Provider: r.Provider, Model: r.Model}
	}
	return it, nil
}

// LoopItem is one loop.
type LoopItem struct {
	Session string `json:"session"`
	LoopProgress
	Revision      int64     `json:"revision"`
	Owner         string    `json:"owner"` // run that executes it
	Objective     string    `json:"objective"`
	OnPark        string    `json:"on_park"`
	StopRequested bool      `json:"stop_requested"`
	Abandoned     bool      `json:"abandoned"`
	StartedSeq    int64     `json:"started_seq"`
	StartedAt     time.Time `json:"started_at"`
	UpdatedSeq    int64     `json:"updated_seq"`
	UpdatedAt     time.Time `json:"updated_at"`
	AgeMS         int64     `json:"age_ms"`
}

func (i *LoopItem) shrink(limit int) { i.Objective = cut(i.Objective, limit) }

// Loops answers loops.list.
func (p *Projector) Loops(ctx context.Context, q ListQuery) (Page[LoopItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[LoopItem]) (err error) {
		if err := oneOf("status", q.Status, "running", "finalizing", "paused", "completed", "stopped", "cancelled", "budget_exhausted", "failed", "recovery_unsupported"); err != nil {
			return err
		}
		out.Items, out.Next, err = list(ctx, p, tx, loopsTable, q.listing("loops", "started_at", "session", "generation"), func(r *loopRow) (LoopItem, error) {
			return LoopItem{
				Session: r.Session,
				LoopProgress: LoopProgress{
					r.Generation, r.Status, r.Reason, r.IterationsStarted, r.IterationsCompleted, r.MaxIterations, r.RoundsStarted, r.MaxTotalRounds,
				},
				Revision: r.Revision, Owner: r.Owner, Objective: r.Objective, OnPark: r.OnPark, StopRequested: r.StopRequested, Abandoned: r.Abandoned,
				StartedSeq: r.StartedSeq, StartedAt: when(r.StartedAt), UpdatedSeq: r.UpdatedSeq, UpdatedAt: when(r.UpdatedAt), AgeMS: p.ageMS(r.StartedAt),
			}, nil
		})
		return err
	})
}

// RoundItem is one round.
type RoundItem struct {
	Session        string          `json:"session"`
	RunID          string          `json:"run_id"`
	Round          int64           `json:"round"` // of its run, 0-based
	LoopGeneration string          `json:"loop_generation,omitzero"`
	Iteration      int64           `json:"iteration,omitzero"`
	Summary        bool            `json:"summary,omitzero"`
	Status         string          `json:"status"` // open, finished, failed or lost
	StartedSeq     int64           `json:"started_seq"`
	StartedAt      time.Time       `json:"started_at"`
	EndedSeq       int64           `json:"ended_seq,omitzero"`
	EndedAt        time.Time       `json:"ended_at,omitzero"`
	ElapsedMS      int64           `json:"elapsed_ms"`
	MessageID      string          `json:"message_id,omitzero"`
	Decision       string          `json:"decision,omitzero"`
	FinishReason   string          `json:"finish_reason,omitzero"`
	Attempts       int64           `json:"attempts,omitzero"`
	ToolCalls      int64           `json:"tool_calls"`
	Usage          events.Usage    `json:"usage"`
	Error          *events.Failure `json:"error,omitzero"`
}

func (i *RoundItem) shrink(limit int) {
	if i.Error != nil {
		i.Error.Message = cut(i.Error.Message, limit)
	}
}

// Rounds answers rounds.list: the rounds of one session in their order.
func (p *Projector) Rounds(ctx context.Context, q ListQuery) (Page[RoundItem], error) {
	return query(ctx, p, q.Wait, required(q.Session), func(tx *sql.Tx, out *Page[RoundItem]) (err error) {
		if err := oneOf("status", q.Status, roundOpen, roundFinished, roundFailed, roundLost); err != nil {
			return err
		}
		l := q.listing("rounds", "started_seq", "run_id", "round")
		l.desc = false
		out.Items, out.Next, err = list(ctx, p, tx, roundsTable, l, p.roundItem)
		return err
	})
}

func (p *Projector) roundItem(r *roundRow) (RoundItem, error) {
	it := RoundItem{
		Session: r.Session, RunID: r.RunID, Round: r.Round, LoopGeneration: r.LoopGeneration, Iteration: r.Iteration, Summary: r.Summary,
		Status: r.Status, StartedSeq: r.StartedSeq, StartedAt: when(r.StartedAt), EndedSeq: r.EndedSeq, EndedAt: when(r.EndedAt),
		ElapsedMS: p.ageMS(r.StartedAt), MessageID: r.MessageID, Decision: r.Decision, FinishReason: r.FinishReason, Attempts: r.Attempts,
		ToolCalls: r.ToolCalls, Usage: usageOf(r.PromptTokens, r.CompletionTokens, r.TotalTokens),
	}
	if r.EndedAt != 0 {
		it.ElapsedMS = max(0, when(r.EndedAt).Sub(when(r.StartedAt)).Milliseconds())
	}
	if r.ErrorCode != "" || r.ErrorMessage != "" {
		it.Error = &events.Failure{Code: r.ErrorCode, Message: r.ErrorMessage}
	}
	return it, nil
}

// ToolItem is one tool call.
type ToolItem struct {
	Session        string    `json:"session"`
	ToolCallID     string    `json:"tool_call_id"`
	ModelID        string    `json:"model_id,omitzero"`
	MessageID      string    `json:"message_id"` // of the result
	AnswerID       string    `json:"answer_id"`
	Index          int64     `json:"index"`
	Name           string    `json:"name"`
	Arguments      string    `json:"arguments"`
	ArgumentsBytes int       `json:"arguments_bytes"`
	Digest         string    `json:"arguments_digest,omitzero"`
	RunID          string    `json:"run_id"`
	Round          int64     `json:"round"`
	Status         string    `json:"status"`           // open, started, parked, decided, unknown or settled
	Outcome        string    `json:"outcome,omitzero"` // once settled: succeeded, failed, denied, blocked, voided, answered, expired or resolved
	Success        bool      `json:"success"`
	Mutating       bool      `json:"mutating"`
	Authorized     bool      `json:"authorized"`
	PermissionType string    `json:"permission_type,omitzero"`
	Resource       string    `json:"resource,omitzero"`
	Verdict        string    `json:"verdict,omitzero"`
	RuleID         string    `json:"rule_id,omitzero"`
	RequestedSeq   int64     `json:"requested_seq"`
	RequestedAt    time.Time `json:"requested_at"`
	StartedAt      time.Time `json:"started_at,omitzero"`
	Starts         int64     `json:"starts"`
	EndedSeq       int64     `json:"ended_seq,omitzero"`
	EndedAt        time.Time `json:"ended_at,omitzero"`
	EndedBy        string    `json:"ended_by,omitzero"`
	ElapsedMS      int64     `json:"elapsed_ms"` // as the runner measured it
	AgeMS          int64     `json:"age_ms"`
	ResultBytes    int64     `json:"result_bytes"`
	Error          string    `json:"error,omitzero"`
}

func (i *ToolItem) shrink(limit int) {
	i.Arguments, i.Error, i.Resource = cut(i.Arguments, limit), cut(i.Error, limit/4), cut(i.Resource, limit/4)
	i.ToolCallID, i.ModelID = cut(i.ToolCallID, limit), cut(i.ModelID, limit)
}

// Tools answers tools.list.
func (p *Projector) Tools(ctx context.Context, q ListQuery) (Page[ToolItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[ToolItem]) (err error) {
		if err := oneOf("status", q.Status, callOpen, callStarted, callParked, callDecided, callUnknown, callSettled); err != nil {
			return err
		}
		out.Items, out.Next, err = list(ctx, p, tx, toolsTable, q.listing("tools", "requested_at", "session", "requested_seq", "idx"), p.toolItem)
		return err
	})
}

func (p *Projector) toolItem(r *callRow) (ToolItem, error) {
	return ToolItem{
		Session: r.Session, ToolCallID: r.ToolCallID, ModelID: r.ModelID, MessageID: r.MessageID, AnswerID: r.AnswerID, Index: r.Idx, Name: r.Name,
		Arguments: r.Arguments, ArgumentsBytes: len(r.Arguments), Digest: r.Digest, RunID: r.RunID, Round: r.Round, Status: r.Status, Outcome: r.Outcome,
		Success: r.Success, Mutating: r.Mutating, Authorized: r.Authorized, PermissionType: r.PermissionType, Resource: r.Resource, Verdict: r.Verdict,
		RuleID: r.RuleID, RequestedSeq: r.RequestedSeq, RequestedAt: when(r.RequestedAt), StartedAt: when(r.StartedAt), Starts: r.Starts,
		EndedSeq: r.EndedSeq, EndedAt: when(r.EndedAt), EndedBy: r.EndedBy, ElapsedMS: r.ElapsedMS, AgeMS: p.ageMS(r.RequestedAt), ResultBytes: r.ResultBytes, Error: r.Error,
	}, nil
}

// UsageQuery asks for tokens.
type UsageQuery struct {
	Session string `json:"session,omitzero"`
	By      string `json:"by,omitzero"` // session (default), model or day
	List
	Wait
}

// UsageItem is what the answers of one session, model or day used.
type UsageItem struct {
	Session  string       `json:"session,omitzero"`
	Day      string       `json:"day,omitzero"` // UTC
	Provider string       `json:"provider,omitzero"`
	Model    string       `json:"model,omitzero"`
	Rounds   int64        `json:"rounds"`
	Usage    events.Usage `json:"usage"`
}

// Usage answers usage.get, sorted by what it is asked by.
func (p *Projector) Usage(ctx context.Context, q UsageQuery) (Page[UsageItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[UsageItem]) (err error) {
		by, ok := map[string]struct {
			columns string
			order   []string
		}{
			"":        {"session, '' AS day, '' AS provider, '' AS model", []string{"session"}},
			"session": {"session, '' AS day, '' AS provider, '' AS model", []string{"session"}},
			"model":   {"'' AS session, '' AS day, provider, model", []string{"provider", "model"}},
			"day":     {"'' AS session, day, '' AS provider, '' AS model", []string{"day"}},
		}[q.By]
		if !ok {
			return oneOf("by", q.By, "session", "model", "day")
		}
		l := listing{name: "usage " + by.order[0], order: by.order, List: q.List}
		where := ""
		if q.Session != "" {
			where, l.args = " WHERE session = ?", append(l.args, q.Session)
		}
		l.from = "(SELECT " + by.columns + ", sum(rounds) AS rounds, sum(prompt) AS prompt, sum(completion) AS completion, sum(total) AS total FROM usage" +
			where + " GROUP BY 1, 2, 3, 4)"
		out.Items, out.Next, err = list(ctx, p, tx, usageTable, l, func(r *usageRow) (UsageItem, error) {
			return UsageItem{Session: r.Session, Day: r.Day, Provider: r.Provider, Model: r.Model, Rounds: r.Rounds, Usage: usageOf(r.Prompt, r.Completion, r.Total)}, nil
		})
		return err
	})
}
