package projection

import (
	"strings"
	"testing"

	"culm/events"
)

// TestSessions_UseIndexes: a list reads no more rows than it shows.
func TestSessions_UseIndexes(t *testing.T) {
	t.Parallel()
	r := start(t, options(t, events.NewMem())).awaitReady()
	for query, filters := range map[string][]string{
		"sessions ORDER BY updated_at DESC, session DESC":                                   {"", "status = 'x'", "kind = 'x'", "parent_session <> '' AND parent_session = 'x'"},
		"runs ORDER BY requested_at DESC, session DESC, run_id DESC":                        {"", "status = 'x'", "session = 'x'"},
		"loops ORDER BY started_at DESC, session DESC, generation DESC":                     {"", "status = 'x'", "session = 'x'"},
		"tools ORDER BY requested_at DESC, session DESC, requested_seq DESC, idx DESC":      {"", "status = 'x'", "session = 'x'"},
		"approvals ORDER BY since_at, session, since_seq, message_id":                       {"status = 'pending'"},
		"approvals ORDER BY decided_at DESC, session DESC, since_seq DESC, message_id DESC": {"status = 'decided'"},
		"approvals ORDER BY since_at DESC, session DESC, since_seq DESC, message_id DESC":   {""},
		"messages ORDER BY n":   {"session = 'x'"},
		"timeline ORDER BY seq": {"session = 'x'"},
	} {
		for _, f := range filters {
			table, order, _ := strings.Cut(query, " ")
			if f != "" {
				f = " WHERE " + f
			}
			rows, err := r.db.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN SELECT * FROM "+table+f+" "+order+" LIMIT 50")
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(detail, "TEMP B-TREE") {
					t.Errorf("%s%s sorts: %s", query, f, detail)
				}
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
