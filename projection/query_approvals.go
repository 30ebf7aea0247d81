package projection

import (
	"context"
	"database/sql"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// ApprovalsQuery asks for what waits, or waited, for a person.
type ApprovalsQuery struct {
	Status  string `json:"status,omitzero"` // pending (default, the oldest first), decided or all (the newest first)
	Session string `json:"session,omitzero"`
	List
	Wait
}

// ApprovalItem is one thing that waits, or waited, for a person.
type ApprovalItem struct {
	Session         string         `json:"session"`
	Title           string         `json:"title,omitzero"` // of the session
	ToolCallID      string         `json:"tool_call_id"`
	MessageID       string         `json:"message_id"`
	Kind            string         `json:"kind"` // approval, question or unknown
	Generation      string         `json:"generation,omitzero"`
	Name            string         `json:"name"`
	Arguments       string         `json:"arguments"` // at most 16 KiB of them
	ArgumentsBytes  int64          `json:"arguments_bytes"`
	ArgumentsDigest string         `json:"arguments_digest"`
	Question        jsontext.Value `json:"question,omitzero"`
	Request         jsontext.Value `json:"request,omitzero"`
	Omitted         bool           `json:"omitted,omitzero"` // question and request, for their size
	RunID           string         `json:"run_id"`
	Status          string         `json:"status"` // pending or decided
	Since           time.Time      `json:"since"`
	SinceSeq        int64          `json:"since_seq"`
	StartedSeq      int64          `json:"started_seq,omitzero"` // of an unknown call
	AgeMS           int64          `json:"age_ms"`               // how long it waits, or waited
	ExpiresAt       time.Time      `json:"expires_at,omitzero"`
	Decision        string         `json:"decision,omitzero"`
	DecidedBy       string         `json:"decided_by,omitzero"`
	DecidedSeq      int64          `json:"decided_seq,omitzero"`
	DecidedAt       time.Time      `json:"decided_at,omitzero"`
	Note            string         `json:"note,omitzero"`
	Answer          string         `json:"answer,omitzero"`
	Matcher         jsontext.Value `json:"matcher,omitzero"`
	Successor       string         `json:"successor,omitzero"` // run that the decision requested
	Call            ItemCall       `json:"call"`
}

// ItemCall is the call that the item is about: what it may do, and what became
// of it.
type ItemCall struct {
	Status         string `json:"status"`                   // as of tools.list
	Outcome        string `json:"outcome,omitzero"`         // as of tools.list, once settled
	EndedSeq       int64  `json:"ended_seq,omitzero"`       // of the event that settled it
	PermissionType string `json:"permission_type,omitzero"` // as it was last asked for, or authorized
	Resource       string `json:"resource,omitzero"`
}

func (i *ApprovalItem) shrink(limit int) {
	i.Note, i.Answer, i.Title = cut(i.Note, limit/2), cut(i.Answer, limit/2), cut(i.Title, limit/8)
	i.Call.Resource = cut(i.Call.Resource, limit/8)
	if len(i.Question)+len(i.Request)+len(i.Matcher) > limit {
		i.Question, i.Request, i.Matcher, i.Omitted = nil, nil, nil, true
	}
}

// maxArgumentsShown bounds the arguments of an item, in bytes.
const maxArgumentsShown = 16 << 10

// Approvals answers approvals.list.
func (p *Projector) Approvals(ctx context.Context, q ApprovalsQuery) (Page[ApprovalItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[ApprovalItem]) (err error) {
		l := listing{List: q.List}
		switch q.Status {
		case "", itemPending:
			l.name, l.order = "pending", []string{"since_at", "session", "since_seq", "message_id"}
			l.filter("status = 'pending'")
		case itemDecided:
			l.name, l.order, l.desc = "decided", []string{"decided_at", "session", "since_seq", "message_id"}, true
			l.filter("status = 'decided'")
		case "all":
			l.name, l.order, l.desc = "items", []string{"since_at", "session", "since_seq", "message_id"}, true
		default:
			return oneOf("status", q.Status, itemPending, itemDecided, "all")
		}
		l.equal("session", q.Session)
		out.Items, out.Next, err = list(ctx, p, tx, approvalsTable, l, func(r *itemRow) (ApprovalItem, error) { return p.approvalItem(ctx, tx, r) })
		return err
	})
}

func (p *Projector) approvalItem(ctx context.Context, tx *sql.Tx, r *itemRow) (ApprovalItem, error) {
	it := ApprovalItem{
		Session: r.Session, ToolCallID: r.ToolCallID, MessageID: r.MessageID, Kind: r.Kind, Generation: r.Generation, Name: r.Name,
		ArgumentsDigest: r.Digest, Question: object(r.Question), Request: object(r.Request), RunID: r.RunID, Status: r.Status,
		Since: when(r.SinceAt), SinceSeq: r.SinceSeq, StartedSeq: r.StartedSeq, AgeMS: p.ageMS(r.SinceAt), ExpiresAt: when(r.ExpiresAt),
		Decision: r.Decision, DecidedBy: r.DecidedBy, DecidedSeq: r.DecidedSeq, DecidedAt: when(r.DecidedAt), Note: r.Note, Answer: r.Answer,
		Matcher: object(r.Matcher), Successor: r.Successor,
	}
	if r.DecidedAt != 0 {
		it.AgeMS = max(0, when(r.DecidedAt).Sub(when(r.SinceAt)).Milliseconds())
	}
	c, asked := &it.Call, ""
	err := tx.QueryRowContext(ctx, `SELECT t.arguments, length(CAST(t.arguments AS BLOB)), s.title, t.status, t.outcome, t.ended_seq, t.permission_type, t.resource,
		coalesce((SELECT a.request FROM approvals a WHERE a.session = t.session AND a.message_id = t.message_id AND a.request <> '' ORDER BY a.since_seq DESC LIMIT 1), '')
		FROM tools t JOIN sessions s ON s.session = t.session WHERE t.session = ? AND t.answer_id = ? AND t.idx = ?`, r.Session, r.AnswerID, r.Idx).
		Scan(&it.Arguments, &it.ArgumentsBytes, &it.Title, &c.Status, &c.Outcome, &c.EndedSeq, &c.PermissionType, &c.Resource, &asked)
	it.Arguments = cut(it.Arguments, maxArgumentsShown)
	if asked != "" && err == nil {
		var q events.PermissionRequest
		err = json.Unmarshal([]byte(asked), &q)
		c.PermissionType, c.Resource = q.PermissionType, q.Resource
	}
	return it, err
}
