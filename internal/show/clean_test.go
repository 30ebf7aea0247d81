package show_test

import (
	"encoding/json"
	"testing"
	"time"
	"unicode"

	"culm/internal/show"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, line, block string }{
		{"plain text stays", "größer 日本 👩‍💻", "größer 日本 👩‍💻", "größer 日本 👩‍💻"},
		{"white space folds in a line", "  a \t\r\n b  ", "a b", "  a \t\n b  "},
		{"an escape sequence becomes visible", "\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		{"a lone carriage return does not go back", "safe\revil", "safe evil", `safe\x0devil`},
		{"C1 controls become visible", "\u009b2J", `\x9b2J`, `\x9b2J`},
		{"text direction marks become visible", "a\u202eb", `a\u202eb`, `a\u202eb`},
		{"bytes that are not text become visible", "a\xffb", `a\xffb`, `a\xffb`},
		{"tags outside the basic plane become visible", "a\U000e0041", `a\U000e0041`, `a\U000e0041`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := show.Clean(c.in); got != c.line {
				t.Errorf("Clean = %q, want %q", got, c.line)
			}
			if got := show.CleanBlock(c.in); got != c.block {
				t.Errorf("CleanBlock = %q, want %q", got, c.block)
			}
		})
	}
}

func TestCleanJSON_saysTheSame(t *testing.T) {
	t.Parallel()
	want := "a\u009b\u202e\U000e0041 ü 日本 \x7f"
	doc, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	safe := show.CleanJSON(doc)
	for _, r := range string(safe) {
		if !unicode.IsPrint(r) {
			t.Errorf("%U is left in %s", r, safe)
		}
	}
	var got string
	if err := json.Unmarshal(safe, &got); err != nil || got != want {
		t.Errorf("%s reads as %q (%v), want %q", safe, got, err, want)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range show.Clean(s) {
			if !unicode.IsPrint(r) && r != 0x200c && r != 0x200d {
				t.Errorf("%U is left of %q", r, s)
			}
		}
		if n := len([]rune(show.Clip(s, 5))); n > 5 {
			t.Errorf("Clip left %d characters of %q", n, s)
		}
	})
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		show.Count(1, "event"):                             "1 event",
		show.Count(1204567, "event"):                       "1,204,567 events",
		show.Thousands(999):                                "999",
		show.Thousands(1000):                               "1,000",
		show.Elapsed(85):                                   "85 ms",
		show.Elapsed(2000):                                 "2 s",
		show.Elapsed(125_900):                              "2m5s",
		show.Age(noon, noon.Add(-time.Hour)):               "just now",
		show.Age(noon, noon.Add(5*time.Second)):            "5 seconds ago",
		show.Age(noon, noon.Add(90*time.Second)):           "1 minute ago",
		show.Age(noon, noon.Add(26*time.Hour)):             "26 hours ago",
		show.Age(noon, noon.Add(72*time.Hour)):             "3 days ago",
		show.When(noon, noon.Add(3*time.Minute), time.UTC): "2026-11-30 12:00:00 (3 minutes ago)",
		show.When(time.Time{}, noon, time.UTC):             "never",
		show.Clip("日本語", 2):                                "日…",
		show.Clip("日本語", 3):                                "日本語",
		show.Progress("round", 7, 20):                      "round 7 of 20",
		show.Progress("round", 7, 0):                       "round 7",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
