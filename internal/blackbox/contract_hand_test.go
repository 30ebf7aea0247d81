package blackbox

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The commands of docs/contract.md: `cmd ACTOR NAME BODY`, or `run NAME FIELDS`
// with jq's spelling of an object.
var (
	handLine   = regexp.MustCompile(`^(?:([A-Z]+)=\$\()?(?:cmd (\w+) ([\w.]+)|run ([\w.]+)) +('[^']*'|"(?:\\.|[^"\\])*")(?: -H Nats-Msg-Id:(\S+))?`)
	handSpeaks = regexp.MustCompile(`(^|\$\()(cmd|run) `)
	handKey    = regexp.MustCompile(`([{,] *)([a-z_]+):`)
)

// hand plays the shell of "A session by hand", one line at a time.
type hand struct {
	c       *client
	session string
	vars    map[string]string
	told    []string // event of each answer, "duplicate" for a repeated one
}

// TestContract_ASessionByHand types every command that the contract's walk shows,
// as it stands there: each is accepted, and leads to what the text around it says.
func TestContract_ASessionByHand(t *testing.T) {
	h := &hand{c: common(t), session: sessionName(t, ""), vars: map[string]string{}}
	for _, line := range handLines(t) {
		h.play(t, line)
	}
	want := "session.created duplicate run.requested run.started round.started round.finished tool.started tool.finished round.started round.finished run.finished" +
		" run.requested run.started round.started round.finished tool.parked approval.decided run.started replay.started replay.finished round.started round.finished run.finished"
	if got := strings.Join(h.told, " "); got != want {
		t.Errorf("the walk led to\n%s\nwant\n%s", got, want)
	}
	state := h.c.read(h.session).State
	if state["run"] != nil || len(objects(state["pending"])) != 0 {
		t.Errorf("at the end: %v", state)
	}
}

// handLines are the lines of the walk's shell blocks.
func handLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/contract.md")
	must(t, err)
	_, walk, found := strings.Cut(string(text), "\n## A session by hand\n")
	if !found {
		t.Fatal("the contract has no session by hand")
	}
	var lines []string
	for i, block := range strings.Split(walk, "```") {
		if code, isShell := strings.CutPrefix(block, "sh\n"); isShell && i%2 == 1 {
			lines = append(lines, strings.Split(code, "\n")...)
		}
	}
	return lines
}

func (h *hand) play(t *testing.T, line string) {
	t.Helper()
	if strings.HasPrefix(line, "GEN=") {
		h.vars["GEN"], _ = h.c.pending(h.session)[0]["generation"].(string)
		return
	}
	m := handLine.FindStringSubmatch(line)
	if m == nil {
		if isDefinition := strings.Contains(line, "() {"); handSpeaks.MatchString(line) && !isDefinition {
			t.Fatalf("not understood: %s", line)
		}
		return
	}
	var opts []option
	if m[6] != "" {
		opts = append(opts, id(m[6]))
	}
	var r reply
	if quoted := m[5]; m[4] != "" {
		var fields obj
		must(t, json.Unmarshal([]byte(handKey.ReplaceAllString(strings.Trim(quoted, "'"), `$1"$2":`)), &fields))
		fields = merge(fields, obj{"run_id": h.vars["RUN"], "fence": json.Number(h.vars["FENCE"])})
		r = h.c.must(h.session, m[4], fields, append(opts, as("r1"))...)
	} else {
		body := strings.Trim(quoted, "'")
		if quoted[0] == '"' {
			body = os.Expand(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), func(name string) string { return h.vars[name] })
		}
		r = h.c.must(h.session, m[3], body, append(opts, as(m[2]))...)
	}
	if r.Duplicate {
		h.told = append(h.told, "duplicate")
	} else {
		h.told = append(h.told, r.event())
	}
	switch m[1] {
	case "RUN":
		h.vars["RUN"] = r.text("run_id")
	case "FENCE":
		h.vars["FENCE"] = jsonText(r.Result["fence"])
	}
}
