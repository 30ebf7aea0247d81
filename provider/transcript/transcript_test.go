package transcript_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"culm/provider/transcript"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// files are the example and, where they are, recordings of real sessions.
func files(t testing.TB) []string {
	dir := cmp.Or(os.Getenv("CULM_TRANSCRIPTS"), "../../../shared/data/transcripts")
	found, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return append(found, "../../examples/three_drafts.jsonl")
}

func TestOpen_ExampleMatchesGolden(t *testing.T) {
	t.Parallel()
	r, err := transcript.Open("../../examples/three_drafts.jsonl", transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, golden := render(r), "testdata/three_drafts.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("recording (-want +got):\n%s", diff)
	}
}

func render(r *transcript.Recording) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lines %d passed %v\n", r.Lines, r.Passed)
	for _, p := range r.Prompts {
		fmt.Fprintf(&b, "prompt line %d: %q\n", p.Line, p.Text)
	}
	for i, a := range r.Answers {
		fmt.Fprintf(&b, "answer %d line %d %s %s usage %v\n", i, a.Line, a.MessageID, a.FinishReason, a.Usage)
		for _, p := range a.Parts {
			fmt.Fprintf(&b, "  reasoning %v: %q\n", p.Reasoning, p.Text)
		}
		for _, c := range a.Calls {
			fmt.Fprintf(&b, "  call %q %s %s\n", c.ID, c.Name, c.Arguments)
			if c.Result != nil {
				fmt.Fprintf(&b, "    line %d failed %v: %q\n", c.Result.Line, c.Result.Failed, c.Result.Content)
			}
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func TestOpen_EveryRecordingIsReadExactly(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := transcript.Open(file, transcript.Limits{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		lines := bytes.Split(raw, []byte("\n"))
		calls, results := 0, 0
		for _, a := range r.Answers {
			for _, c := range a.Calls {
				calls++
				if !bytes.Contains(lines[c.Line-1], []byte(c.Arguments)) {
					t.Errorf("%s line %d: arguments are not the bytes of the file: %s", file, c.Line, c.Arguments)
				}
				if c.Result != nil {
					results++
				}
			}
		}
		if want := count(lines, `"type":"tool_use"`); calls != want {
			t.Errorf("%s: %d calls, want %d", file, calls, want)
		}
		if want := count(lines, `"type":"tool_result"`); results != want {
			t.Errorf("%s: %d results, want %d", file, results, want)
		}
		for _, f := range r.Findings {
			if f.Kind != transcript.MissingResult && f.Kind != transcript.RepeatedID && f.Kind != transcript.BrokenOff {
				t.Errorf("%s: %v", file, f)
			}
		}
	}
}

// count looks in the lines of the conversation itself; progress lines quote
// what subagents say.
func count(lines [][]byte, part string) (n int) {
	for _, line := range lines {
		if !bytes.Contains(line, []byte(`"type":"progress"`)) {
			n += bytes.Count(line, []byte(part))
		}
	}
	return n
}

func TestRead_JoinsThePartsOfAnAnswerAcrossResults(t *testing.T) {
	t.Parallel()
	r := read(t,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"hm"}]}}`,
		`{"type":"progress"}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"T"}]}}`,
		`{"type":"user","message":{"content":"go on"}}`,
		`{"type":"assistant","message":{"id":"m","content":"again"}}`,
	)
	if len(r.Answers) != 2 || len(r.Answers[0].Parts) != 2 || len(r.Answers[0].Calls) != 1 {
		t.Fatalf("answers = %+v", r.Answers)
	}
	if got := kinds(r); !slices.Equal(got, []transcript.FindingKind{transcript.SplitAnswer}) {
		t.Errorf("findings = %v", r.Findings)
	}
}

func TestRead_KeepsArgumentsAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`{"id":9007199254740993,"b":18446744073709551615,"c":1e400,"d":-0,"e":1.10}`,
		`{ "a" : "\u00e9" , "a" : "\/" }`, `{"lone":"\ud800"}`, `[1, 2]`, `"text"`, `null`, `{}`,
	} {
		r := read(t, `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"","name":"Write","input":`+args+`}]}}`)
		if got := r.Answers[0].Calls[0].Arguments; got != args {
			t.Errorf("arguments = %s, want %s", got, args)
		}
	}
}

func TestRead_ResultsFindTheirCall(t *testing.T) {
	t.Parallel()
	call := func(msg, id string) string {
		return `{"type":"assistant","message":{"id":"` + msg + `","content":[{"type":"tool_use","id":"` + id + `","name":"N","input":{}}]}}`
	}
	result := func(id, text string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"` + text + `","is_error":true}]}}`
	}
	r := read(t,
		call("1", "x"), result("x", "one"), // the same id in a later answer
		call("2", "x"), call("2", "x"), // twice in one answer
		result("x", "two"), result("x", "three"), result("x", "stray"),
		call("3", ""), result("", "The tool use was rejected"),
		call("4", "never"),
	)
	var got []string
	for _, a := range r.Answers {
		for _, c := range a.Calls {
			if c.Result == nil {
				got = append(got, "missing")
			} else {
				got = append(got, fmt.Sprint(c.Result.Content, " ", c.Result.Failed, " ", c.Result.Rejected))
			}
		}
	}
	want := []string{"one true false", "two true false", "three true false", "The tool use was rejected true true", "missing"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	wantKinds := []transcript.FindingKind{transcript.RepeatedID, transcript.StrayResult, transcript.MissingResult, transcript.BrokenOff}
	if diff := gocmp.Diff(wantKinds, kinds(r)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if last := r.Answers[len(r.Answers)-1]; len(last.Calls) > 0 || last.Text() == "" || last.FinishReason != "stop" {
		t.Errorf("the recording breaks off with %+v", last)
	}
}

func TestRead_DamageIsNamedWithItsLineAndPassedOver(t *testing.T) {
	t.Parallel()
	const good = `{"type":"assistant","message":{"id":"m","content":"fine"}}`
	for _, bad := range []string{
		`{"type":"assistant"`, `[]`, `nonsense`, "\xff", `{"type":7}`, `{"type":"user","message":"text"}`,
		`{"type":"assistant","message":{"content":7}}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"half \ud800"}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","input":{}}]}}`,
		strings.Repeat(`[`, 20_000),
	} {
		r := read(t, "", bad, good)
		if len(r.Findings) != 1 || r.Findings[0].Line != 2 || r.Findings[0].Kind != transcript.Damaged {
			t.Errorf("%.60s: findings = %v", bad, r.Findings)
		}
		if last := r.Answers[len(r.Answers)-1]; last.Text() != "fine" {
			t.Errorf("%.60s: the line after it reads %q", bad, last.Text())
		}
	}
}

func TestRead_IsBounded(t *testing.T) {
	t.Parallel()
	const good = `{"type":"assistant","message":{"id":"m","content":"fine"}}`
	long := `{"type":"user","message":{"content":"` + strings.Repeat("x", 200_000) + `"}}`
	r, err := transcript.Read(strings.NewReader(long+"\n"+good), transcript.Limits{Line: 1000})
	if err != nil || !slices.Equal(kinds(r), []transcript.FindingKind{transcript.TooLong}) {
		t.Errorf("long line: %v, %v", r, err)
	}
	_, err = transcript.Read(strings.NewReader(good+"\n"+good), transcript.Limits{Bytes: int64(len(good))})
	if !errors.Is(err, transcript.ErrTooLarge) {
		t.Errorf("large file: err = %v", err)
	}
	if _, err = transcript.Read(strings.NewReader(good), transcript.Limits{Bytes: int64(len(good))}); err != nil {
		t.Errorf("file as large as allowed: err = %v", err)
	}
	r, err = transcript.Read(strings.NewReader(good+strings.Repeat("\n?", 10)), transcript.Limits{Findings: 3})
	if err != nil || len(r.Findings) != 3 || r.MoreFindings != 7 {
		t.Errorf("many findings: %v, %v", r, err)
	}
}

func TestRead_NothingUsableIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "not a recording", `{"type":"user","message":{"content":"hello"}}`} {
		if _, err := transcript.Read(strings.NewReader(text), transcript.Limits{}); !errors.Is(err, transcript.ErrNothing) {
			t.Errorf("Read(%q): err = %v", text, err)
		}
	}
	_, err := transcript.Read(strings.NewReader("\n{"), transcript.Limits{})
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("err = %v, want it to name line 2", err)
	}
}

func TestRead_ListsWhatThePersonWrote(t *testing.T) {
	t.Parallel()
	r := read(t,
		`{"type":"user","message":{"content":"first"}}`,
		`{"type":"user","isMeta":true,"message":{"content":"skill text"}}`,
		`{"type":"assistant","message":{"id":"m","content":"ok"}}`,
		`{"type":"assistant","isSidechain":true,"message":{"id":"s","content":"a subagent"}}`,
		`{"type":"assistant","message":{"model":"<synthetic>","content":"API error"}}`,
		`{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"},{"type":"text","text":"second"},{"type":"image"}]}}`,
	)
	if diff := gocmp.Diff([]transcript.Prompt{{Line: 1, Text: "first"}, {Line: 6, Text: "second"}}, r.Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	want := map[string]int{"meta": 1, "sidechain": 1, "synthetic": 1, "interruption": 1, "block image": 1}
	if diff := gocmp.Diff(want, r.Passed); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}

// FuzzRead: whatever the bytes, reading ends, and what it keeps is valid.
func FuzzRead(f *testing.F) {
	for _, file := range files(f) {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		for i, line := range bytes.Split(raw, []byte("\n")) {
			if i%7 == 0 && len(line) < 4096 {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := transcript.Read(bytes.NewReader(raw), transcript.Limits{Line: 1 << 16, Findings: 10})
		if err != nil {
			return
		}
		if len(r.Answers) == 0 || len(r.Findings) > 10 {
			t.Errorf("%d answers, %d findings", len(r.Answers), len(r.Findings))
		}
		for _, a := range r.Answers {
			if !utf8.ValidString(a.Text()) || a.Line < 1 || a.Line > r.Lines {
				t.Errorf("answer %+v", a)
			}
			for _, c := range a.Calls {
				if c.Name == "" || !bytes.Contains(raw, []byte(c.Arguments)) {
					t.Errorf("call %+v", c)
				}
			}
		}
	})
}

func read(t *testing.T, lines ...string) *transcript.Recording {
	t.Helper()
	r, err := transcript.Read(strings.NewReader(strings.Join(lines, "\n")), transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func kinds(r *transcript.Recording) (kinds []transcript.FindingKind) {
	for _, f := range r.Findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}
