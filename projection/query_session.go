package projection

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"culm/events"
)

// HistoryQuery asks for what happened in one session, in order.
type HistoryQuery struct {
	Session string `json:"session"`
	// After is the sequence to begin after, or the former page's next.
	After jsontext.Value `json:"after,omitzero"`
	List
	Wait
}

// begin sets where the listing begins.
func (q *HistoryQuery) begin(l *listing) error {
	l.List = q.List
	switch q.After.Kind() {
	case 0, 'n':
		return nil
	case '"':
		if q.Cursor != "" {
			return invalid("after and cursor: one of them")
		}
		return json.Unmarshal(q.After, &l.Cursor)
	}
	var after uint64
	if err := json.Unmarshal(q.After, &after); err != nil {
		return invalid("after is neither a sequence nor a cursor")
	}
	l.filter("seq > ?", clamp(after))
	return nil
}

// MessageItem is one message of a transcript.
type MessageItem struct {
	Session      string         `json:"session"`
	MessageID    string         `json:"message_id"`
	Role         string         `json:"role"`   // user, assistant or tool
	Origin       string         `json:"origin"` // person, repeat, model or tool
	Content      string         `json:"content"`
	ContentBytes int            `json:"content_bytes,omitzero"` // where Content is cut
	ToolCalls    jsontext.Value `json:"tool_calls,omitzero"`
	Omitted      bool           `json:"omitted,omitzero"` // the calls, for their size
	ToolCallID   string         `json:"tool_call_id,omitzero"`
	Success      *bool          `json:"success,omitzero"`
	Sequence     uint64         `json:"seq"`
	At           time.Time      `json:"at"`
	Actor        string         `json:"actor"`
	RunID        string         `json:"run_id,omitzero"`
}

func (i *MessageItem) shrink(limit int) {
	if len(i.Content) > limit {
		i.Content, i.ContentBytes = cut(i.Content, limit), len(i.Content)
	}
	if len(i.ToolCalls) > limit {
		i.ToolCalls, i.Omitted = nil, true
	}
}

// Transcript answers transcript.get.
func (p *Projector) Transcript(ctx context.Context, q HistoryQuery) (Page[MessageItem], error) {
	return query(ctx, p, q.Wait, required(q.Session), func(tx *sql.Tx, out *Page[MessageItem]) (err error) {
		l := listing{name: "transcript", order: []string{"n"}}
		l.filter("session = ?", q.Session)
		if err := q.begin(&l); err != nil {
			return err
		}
		out.Items, out.Next, err = list(ctx, p, tx, messagesTable, l, messageItem)
		return err
	})
}

func messageItem(r *messageRow) (MessageItem, error) {
	it := MessageItem{
		Session: r.Session, MessageID: r.MessageID, Role: r.Role, Origin: r.Origin, Content: r.Content, ToolCalls: object(r.ToolCalls),
		ToolCallID: r.ToolCallID, Sequence: uint64(r.Seq), At: when(r.At), Actor: r.Actor, RunID: r.RunID, //nolint:gosec // was a sequence
	}
	if r.Success >= 0 {
		ok := r.Success == 1
		it.Success = &ok
	}
	return it, nil
}

// TimelineItem is one event in a few words.
type TimelineItem struct {
	Session    string    `json:"session"`
	Sequence   uint64    `json:"seq"`
	At         time.Time `json:"at"`
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Actor      string    `json:"actor"`
	Text       string    `json:"text"` // one line, for people
	Command    string    `json:"command,omitzero"`
	RunID      string    `json:"run_id,omitzero"`
	ToolCallID string    `json:"tool_call_id,omitzero"`
	MessageID  string    `json:"message_id,omitzero"`
	Bytes      int64     `json:"bytes"` // of the stored event: Event reads it
}

func (i *TimelineItem) shrink(limit int) {
	i.Command, i.ToolCallID = cut(i.Command, limit), cut(i.ToolCallID, limit)
}

// Timeline answers timeline.get.
func (p *Projector) Timeline(ctx context.Context, q HistoryQuery) (Page[TimelineItem], error) {
	return query(ctx, p, q.Wait, required(q.Session), func(tx *sql.Tx, out *Page[TimelineItem]) (err error) {
		l := listing{name: "timeline", order: []string{"seq"}}
		l.filter("session = ?", q.Session)
		if err := q.begin(&l); err != nil {
			return err
		}
		out.Items, out.Next, err = list(ctx, p, tx, timelineTable, l, timelineItem)
		return err
	})
}

func timelineItem(r *timelineRow) (TimelineItem, error) {
	return TimelineItem{
		Session: r.Session, Sequence: uint64(r.Seq), At: when(r.At), ID: r.EventID, Type: r.Type, Actor: r.Actor, Text: r.Text, //nolint:gosec // was a sequence
		Command: r.Command, RunID: r.RunID, ToolCallID: r.ToolCallID, MessageID: r.MessageID, Bytes: r.Bytes,
	}, nil
}

// Event reads one event as it is stored, from the log: the views keep none.
// It returns session_not_found, or invalid_command for a sequence that the
// session does not have.
func (p *Projector) Event(ctx context.Context, session string, seq uint64) (events.Record, error) {
	if seq == 0 || !events.ValidToken(session) {
		return events.Record{}, invalid("no such event")
	}
	for r, err := range p.opts.Log.Read(ctx, session, seq-1, seq) {
		if err != nil {
			return events.Record{}, err
		}
		if r.Seq == seq {
			return r, nil
		}
	}
	return events.Record{}, invalid("session %s has no event %d", session, seq)
}

// SearchQuery asks for messages by their words.
type SearchQuery struct {
	Text    string `json:"text"`
	Session string `json:"session,omitzero"`
	List
	Wait
}

// SearchItem is one message that was found.
type SearchItem struct {
	Session   string    `json:"session"`
	MessageID string    `json:"message_id"`
	Role      string    `json:"role"`
	Origin    string    `json:"origin"` // as in a transcript
	Sequence  uint64    `json:"seq"`
	At        time.Time `json:"at"`
	// Snippet is the content around the words; they stand between U+0002 and
	// U+0003, which no other part of it contains.
	Snippet string `json:"snippet"`
}

type searchRow struct {
	ID                                        int64
	Session, MessageID, Role, Origin, Snippet string
	Seq, At                                   int64
}

var searchTable = mapOf[searchRow]("found", "id")

// Search answers messages.search: all words must be in a message, the last one
// as a beginning. What came into the views last comes first.
func (p *Projector) Search(ctx context.Context, q SearchQuery) (Page[SearchItem], error) {
	return query(ctx, p, q.Wait, q.Session, func(tx *sql.Tx, out *Page[SearchItem]) (err error) {
		if matching(q.Text) == `""` {
			return invalid("text is empty")
		}
		l := listing{name: "search", order: []string{"id"}, desc: true, List: q.List}
		l.from = `(SELECT m.id, m.session, m.message_id, m.role, m.origin, m.seq, m.at,
			snippet(messages_fts, 0, char(2), char(3), '…', 24) AS snippet
			FROM messages_fts JOIN messages m ON m.id = messages_fts.rowid WHERE messages_fts MATCH ?)`
		l.args = append(l.args, matching(q.Text))
		l.equal("session", q.Session)
		out.Items, out.Next, err = list(ctx, p, tx, searchTable, l, func(r *searchRow) (SearchItem, error) {
			return SearchItem{Session: r.Session, MessageID: r.MessageID, Role: r.Role, Origin: r.Origin, Sequence: uint64(r.Seq), At: when(r.At), Snippet: r.Snippet}, nil //nolint:gosec // was a sequence
		})
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		return nil
	})
}
