package web

import (
	"strings"
	"testing"

	"culm/events"
)

func TestSessionReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("s", created("one"), said("hello"), said("again"))
	if got := w.ask("GET", "/api/v1/sessions/s/state?at=1", ""); got.StatusCode != 200 || !strings.Contains(got.body, `"sequence":1`) {
		t.Errorf("state: %d %s", got.StatusCode, got.body)
	}
	got := w.ask("GET", "/api/v1/sessions/s/events?after=1&limit=1", "")
	if got.StatusCode != 200 || !strings.Contains(got.body, `"sequence":3`) || !strings.Contains(got.body, `"next":2`) || !strings.Contains(got.body, "hello") || strings.Contains(got.body, "again") {
		t.Errorf("events: %d %s", got.StatusCode, got.body)
	}
	got = w.ask("GET", "/api/v1/sessions/s/export", "")
	if lines := strings.Split(strings.TrimSpace(got.body), "\n"); len(lines) != 3 || got.Header.Get("Content-Disposition") != `attachment; filename="s.jsonl"` {
		t.Errorf("export: %d lines, %v", len(lines), got.Header)
	}
	got = w.ask("GET", "/api/v1/sessions/s/audit", "")
	if !strings.Contains(got.body, `"verified":true,"sequence":3`) {
		t.Errorf("audit: %s", got.body)
	}
	for path, status := range map[string]int{
		"/api/v1/sessions/none/events": 404, "/api/v1/sessions/none/export": 404, "/api/v1/sessions/none/audit": 404, "/api/v1/sessions/none/state": 404,
		"/api/v1/sessions/a.b/state": 400, "/api/v1/sessions/s/events?limit=0": 400, "/api/v1/sessions/s/events?limit=1001": 400, "/api/v1/sessions/s/events?after=-1": 400,
		"/api/v1/sessions/s/state?at=x": 400, "/api/v1/sessions/s/state?from=1": 400,
	} {
		if got := w.ask("GET", path, ""); got.StatusCode != status || got.code() == "" {
			t.Errorf("%s answers %d %s", path, got.StatusCode, got.body)
		}
	}
}

func TestSessionReads_damage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("s", created("one"), said("hello"), said("again"))
	w.mem.Rewrite("s", func(records []events.Record) []events.Record {
		records[1].Payload = []byte("\x00 no event")
		return records
	})
	if got := w.ask("GET", "/api/v1/sessions/s/audit", ""); !strings.Contains(got.body, `"verified":false`) || !strings.Contains(got.body, `"kind":"malformed"`) {
		t.Errorf("audit: %s", got.body)
	}
	if got := w.ask("GET", "/api/v1/sessions/s/events", ""); got.StatusCode != 200 || !strings.Contains(got.body, `"damaged":`) || !strings.Contains(got.body, "again") {
		t.Errorf("events: %d %s", got.StatusCode, got.body)
	}
	w.mem.SetUnavailable(true)
	if got := w.ask("GET", "/api/v1/sessions/s/events", ""); got.StatusCode != 503 || got.code() != "unavailable" {
		t.Errorf("without a log: %d %s", got.StatusCode, got.body)
	}
}

func TestEvents_pagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("s", created("big"))
	for range 6 {
		w.put("s", said(strings.Repeat("x", 900_000)))
	}
	after, seen := "0", 0
	for range 10 {
		got := w.ask("GET", "/api/v1/sessions/s/events?limit=1000&after="+after, "")
		if len(got.body) > maxPageBytes+1_000_000 {
			t.Fatalf("a page of %d bytes", len(got.body))
		}
		seen += strings.Count(got.body, `"specversion"`)
		_, next, more := strings.Cut(got.body, `"next":`)
		if !more {
			break
		}
		after = strings.TrimSuffix(next, "}")
	}
	if seen != 7 {
		t.Errorf("%d events came, want 7", seen)
	}
}
