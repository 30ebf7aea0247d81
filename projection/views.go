package projection

import "embed"

//go:embed migrations/*.sql views/*.sql
var schema embed.FS

// The tables of the rows.
var (
	checkpointsTable = mapOf[checkpointRow]("checkpoints", "session")
	sessionsTable    = mapOf[sessionRow]("sessions", "session")
	runsTable        = mapOf[runRow]("runs", "session", "run_id")
	loopsTable       = mapOf[loopRow]("loops", "session", "generation")
	roundsTable      = mapOf[roundRow]("rounds", "session", "run_id", "round")
	messagesTable    = mapOf[messageRow]("messages", "session", "n")
	toolsTable       = mapOf[callRow]("tools", "session", "answer_id", "idx")
	approvalsTable   = mapOf[itemRow]("approvals", "session", "message_id", "since_seq")
	usageTable       = mapOf[usageRow]("usage", "session", "day", "provider", "model")
	timelineTable    = mapOf[timelineRow]("timeline", "session", "seq")
)

// view is one read model: what views/NAME.sql makes, and how it is written.
type view struct {
	name string
	// version changes with whatever changes its rows: the table, or how
	// apply*.go sets it.
	version int
	tables  []string // the first holds the rows, with a column session
	write   func(w *writer, l *live) error
}

var views = []view{
	{"sessions", 2, []string{"sessions"}, func(w *writer, l *live) error { return w.put(sessionsUpsert, sessionsTable.values(&l.row)) }},
	{"runs", 1, []string{"runs"}, func(w *writer, l *live) error { return putAll(w, runsTable, runsUpsert, &l.out.runs) }},
	{"loops", 1, []string{"loops"}, func(w *writer, l *live) error { return putAll(w, loopsTable, loopsUpsert, &l.out.loops) }},
	{"rounds", 1, []string{"rounds"}, func(w *writer, l *live) error { return putAll(w, roundsTable, roundsUpsert, &l.out.rounds) }},
	{"messages", 1, []string{"messages", "messages_fts"}, putMessages},
	{"tools", 1, []string{"tools"}, func(w *writer, l *live) error { return putAll(w, toolsTable, toolsUpsert, &l.out.calls) }},
	{"approvals", 2, []string{"approvals"}, func(w *writer, l *live) error { return putAll(w, approvalsTable, approvalsUpsert, &l.out.items) }},
	{"usage", 1, []string{"usage"}, func(w *writer, l *live) error { return putAll(w, usageTable, usageAdd, &l.out.usage) }},
	{"timeline", 1, []string{"timeline"}, func(w *writer, l *live) error { return putAll(w, timelineTable, timelineInsert, &l.out.timeline) }},
}

// The statements of the views.
var (
	checkpointsUpsert = checkpointsTable.upsert()
	sessionsUpsert    = sessionsTable.upsert()
	runsUpsert        = runsTable.upsert()
	loopsUpsert       = loopsTable.upsert()
	roundsUpsert      = roundsTable.upsert()
	messagesInsert    = messagesTable.insert()
	toolsUpsert       = toolsTable.upsert()
	approvalsUpsert   = approvalsTable.upsert()
	timelineInsert    = timelineTable.insert()
	usageAdd          = usageTable.insert() + ` ON CONFLICT (session, day, provider, model) DO UPDATE SET rounds = rounds + excluded.rounds,
		prompt = prompt + excluded.prompt, completion = completion + excluded.completion, total = total + excluded.total`
)

// rowSet are rows to be written, each once, in the order of their first change.
type rowSet[T any] struct {
	rows []*T
	has  map[*T]bool
}

func (s *rowSet[T]) add(row *T) {
	if s.has[row] {
		return
	}
	if s.has == nil {
		s.has = map[*T]bool{}
	}
	s.has[row] = true
	s.rows = append(s.rows, row)
}

func putAll[T any](w *writer, m *mapper[T], statement string, set *rowSet[T]) error {
	for _, row := range set.rows {
		if err := w.put(statement, m.values(row)); err != nil {
			return err
		}
	}
	return nil
}

func putMessages(w *writer, l *live) error {
	for _, row := range l.out.messages.rows {
		if err := w.message(row); err != nil {
			return err
		}
	}
	return nil
}
