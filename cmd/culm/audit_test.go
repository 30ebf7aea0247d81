package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"culm/events"
)

func fine(t *testing.T, session string) []events.Record {
	t.Helper()
	note := func(kind string) events.Data { return events.NoteAppended{Kind: kind, Data: []byte(`{}`)} }
	created := events.SessionCreated{Kind: "root", Mode: "default", Posture: events.Posture{AuditRevision: 1, RequestedMode: "default", EffectiveMode: "default"}}
	return story(t, session, created, note("a"), note("b"), note("c"), note("d"))
}

func lines(records []events.Record) string {
	var b strings.Builder
	for _, r := range records {
		b.Write(r.Payload)
		b.WriteByte('\n')
	}
	return b.String()
}

func headOf(r events.Record) string { return fmt.Sprintf("%d:%s", r.Seq, events.Hash(r.Payload)) }

// damage makes a copy of the log with one thing done to it.
var damage = map[string]func([]events.Record) []events.Record{
	"changed": func(rs []events.Record) []events.Record {
		rs[2].Payload = bytes.Replace(rs[2].Payload, []byte("alice"), []byte("mallo"), 1)
		return rs
	},
	"missing": func(rs []events.Record) []events.Record { return append(rs[:2:2], rs[3:]...) },
	"doubled": func(rs []events.Record) []events.Record { return append(rs[:3:3], rs[2:]...) },
	"out_of_order": func(rs []events.Record) []events.Record {
		rs[2], rs[3] = rs[3], rs[2]
		return rs
	},
	"malformed": func(rs []events.Record) []events.Record {
		rs[2].Payload = append([]byte("x"), rs[2].Payload...)
		return rs
	},
}

func TestAuditTellsTheKindOfDamage(t *testing.T) {
	for kind, do := range damage {
		t.Run(kind, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "log.jsonl")
			if err := os.WriteFile(name, []byte(lines(do(fine(t, "demo")))), 0o600); err != nil {
				t.Fatal(err)
			}
			r := culm(t, &fake{}, "audit", "--file", name)
			if r.status != exitFailed || r.err != "" || !strings.Contains(r.out, kind) {
				t.Errorf("status %d, err %q\n%s", r.status, r.err, r.out)
			}
		})
	}
}

func TestAuditOfAFineLog(t *testing.T) {
	demo := fine(t, "demo")
	want := "demo: 5 events, all fine\n  head " + headOf(demo[4]) + "\n"
	f := &fake{stored: map[string][]events.Record{"demo": demo, "other": fine(t, "other")}}
	for name, r := range map[string]result{
		"stream":          culm(t, f, "audit", "demo"),
		"head in it":      culm(t, f, "audit", "demo", "--head", headOf(demo[3])),
		"head at its end": culm(t, f, "audit", "demo", "--head", headOf(demo[4])),
		"standard input":  culmAt(t, f, false, lines(demo), "audit", "--file", "-"),
	} {
		if r.status != exitOK || r.out != want {
			t.Errorf("%s: status %d, err %q\n%s", name, r.status, r.err, r.out)
		}
	}
	r := culm(t, f, "audit", "--all")
	if r.status != exitOK || !strings.Contains(r.out, "2 sessions audited, 0 with findings") {
		t.Errorf("all: status %d\n%s%s", r.status, r.out, r.err)
	}
	r = culm(t, f, "audit", "demo", "--json")
	if !strings.Contains(r.out, `"head":"`+headOf(demo[4])+`"`) || !strings.Contains(r.out, `"findings":[]`) {
		t.Errorf("JSON: %s", r.out)
	}
}

func TestAuditFindsWhatWasCutOff(t *testing.T) {
	demo := fine(t, "demo")
	cut := &fake{stored: map[string][]events.Record{"demo": demo[:3]}}
	if r := culm(t, cut, "audit", "demo"); r.status != exitOK {
		t.Errorf("without a head nothing can be found, yet: %s", r.out)
	}
	if r := culm(t, cut, "audit", "demo", "--head", headOf(demo[4])); r.status != exitFailed || !strings.Contains(r.out, "cut_off") {
		t.Errorf("cut off: status %d\n%s", r.status, r.out)
	}
	replaced := "5:" + strings.Repeat("0", 64)
	whole := &fake{stored: map[string][]events.Record{"demo": demo}}
	if r := culm(t, whole, "audit", "demo", "--head", replaced); r.status != exitFailed || !strings.Contains(r.out, "changed") {
		t.Errorf("replaced: status %d\n%s", r.status, r.out)
	}
}

func TestAuditOfSeveralSessionsInOneFile(t *testing.T) {
	a, b := fine(t, "a"), damage["missing"](fine(t, "b"))
	mixed := lines([]events.Record{a[0], b[0], a[1], b[1], b[2], a[2], a[3], b[3], a[4]})
	r := culmAt(t, &fake{}, false, mixed, "audit", "--file", "-")
	if r.status != exitFailed || !strings.Contains(r.out, "a: 5 events, all fine") || !strings.Contains(r.out, "b: 4 events, 1 finding") {
		t.Errorf("status %d, err %q\n%s", r.status, r.err, r.out)
	}
	if r := culmAt(t, &fake{}, false, mixed, "audit", "--file", "-", "--head", headOf(a[0])); r.status != exitUsage {
		t.Errorf("a head for two sessions: status %d", r.status)
	}
}

func TestAuditOfNothing(t *testing.T) {
	if r := culm(t, &fake{}, "audit", "demo"); r.status != exitFailed || !strings.Contains(r.err, "session_not_found") {
		t.Errorf("no session: status %d, err %q", r.status, r.err)
	}
	if r := culm(t, &fake{}, "audit", "--all"); r.status != exitOK || !strings.Contains(r.out, "culm session create") {
		t.Errorf("no sessions: status %d, out %q", r.status, r.out)
	}
	if r := culmAt(t, &fake{}, false, "\n", "audit", "--file", "-"); r.status != exitFailed || r.err == "" {
		t.Errorf("empty file: status %d, err %q", r.status, r.err)
	}
}

// A file that is no log is told in one sentence, not line by line.
func TestAuditOfAFileThatIsNoLog(t *testing.T) {
	for _, text := range []string{"# A page\n\nof text\n", "{\n \"a\": 1\n}\n", `{"a":1}`} {
		r := culmAt(t, &fake{}, false, text, "audit", "--file", "-")
		if r.status != exitFailed || r.out != "" || r.err != "culm: standard input is no log: it has not one event, a line each, as culm log SESSION --json prints them\n" {
			t.Errorf("%q: status %d, out %q, err %q", text, r.status, r.out, r.err)
		}
	}
}
