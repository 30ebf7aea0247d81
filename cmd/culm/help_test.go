package main

import (
	"strings"
	"testing"

	build "culm/internal/version"
)

func TestCulmAloneGivesAnOverview(t *testing.T) {
	r := culm(t, &fake{})
	if r.status != exitUsage || r.out != "" {
		t.Errorf("status %d, out %q", r.status, r.out)
	}
	for _, want := range []string{"culm session create NAME", "culm pending", "culm page", "culm help COMMAND", "go run ./cmd/engine"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is missing in\n%s", want, r.err)
		}
	}
	for line := range strings.Lines(r.err) {
		if len([]rune(strings.TrimSpace(line))) > 78 {
			t.Errorf("wider than 80: %q", line)
		}
	}
}

// Each command that the overview and the epilogue of the demo name is there.
func TestTheOverviewNamesCommandsThatExist(t *testing.T) {
	for line := range strings.Lines(overview) {
		_, rest, ok := strings.Cut(line, "  culm ")
		if !ok {
			continue
		}
		var words []string
		for _, w := range strings.Fields(rest) {
			if w == "NAME" || strings.ToLower(w) != w || len(words) == 2 {
				break
			}
			words = append(words, w)
		}
		if len(words) > 0 && words[0] != "session" && words[0] != "loop" {
			words = words[:1]
		}
		if r := culm(t, &fake{}, append(words, "--help")...); r.status != exitOK {
			t.Errorf("%v: status %d, %s", words, r.status, r.err)
		}
	}
}

func TestHelpIsAlsoACommand(t *testing.T) {
	for _, args := range [][]string{{}, {"loop"}, {"loop", "continue"}, {"search"}} {
		asked := culm(t, &fake{}, append([]string{"help"}, args...)...)
		flag := culm(t, &fake{}, append(args, "--help")...)
		if asked.status != exitOK || asked.out != flag.out || asked.out == "" {
			t.Errorf("help %v: status %d, err %q\n%s", args, asked.status, asked.err, asked.out)
		}
	}
	if r := culm(t, &fake{}, "help", "nosuch"); r.status != exitUsage || !strings.Contains(r.err, "there is no command nosuch") {
		t.Errorf("help nosuch: status %d, %q", r.status, r.err)
	}
}

func TestVersionIsAlsoAFlag(t *testing.T) {
	flag, command := culm(t, &fake{}, "--version"), culm(t, &fake{}, "version")
	if flag.status != exitOK || flag.out != command.out || !strings.HasPrefix(flag.out, "culm "+build.String()+" (go") {
		t.Errorf("status %d, %q; the command says %q", flag.status, flag.out, command.out)
	}
}

// What is wrong is said in the words of --help, and the hint names the command.
func TestFaultsOfArgumentsInPlainWords(t *testing.T) {
	for _, c := range []struct{ args, text, hint string }{
		{"session create x --mode loud", `--mode takes default, bypass or auto, not "loud"`, "culm session create"},
		{"mode x loud", `<mode> takes default, bypass, auto, plan or exit-plan, not "loud"`, "culm mode"},
		{"policy test Write --risk huge", `--risk takes low, medium or high, not "huge"`, "culm policy test"},
		{"usage --by week", `--by takes session, model or day, not "week"`, "culm usage"},
		{"session list --status loud", `--status takes running, requested, waiting, blocked, failed, idle, closed or stuck, not "loud"`, "culm session list"},
		{"session list --limit=-1", "--limit takes 0 or more, not -1", "culm session list"},
		{"loop start x do -n many", `--iterations takes a whole number, not "many"`, "culm loop start"},
		{"loop start x do", "missing: --iterations=N", "culm loop start"},
		{"send", "missing: <session> <text>", "culm send"},
		{"answer x", "missing: <text>", "culm answer"},
		{"send a.b hello", `session "a.b": 1 to 64 letters, digits, _ and - are allowed`, "culm send"},
		{"session", "culm session takes one of create, list, show, close, delete", "culm session"},
		{"sesion list", `there is no command sesion, did you mean "session"?`, "culm"},
		{"se list", `there is no command se, did you mean "session", "send" or "search"?`, "culm"},
		{"lop status", `there is no command lop, did you mean "loop" or "log"?`, "culm"},
		{"zzzz", "there is no command zzzz", "culm"},
		{"--json", "a command is missing; culm alone shows the commonest", "culm"},
		{"--timeout soon pending", `--timeout takes a duration such as 500ms, 10s or 2m, not "soon"`, "culm"},
		{"session create x --title", "--title takes a value, and none is given", "culm session create"},
		{"session list --limit -1", "--limit takes 0 or more, not -1", "culm session list"},
		{"log x --after 3", `unknown flag --after, did you mean "--from"?`, "culm log"},
		{"policy test Write", "what would Write be done to? Give it behind the name (a path, a command, a URL), or the call's --arguments", "culm policy test"},
		{"policy add deny write_file command_prefix go", "a rule for write_file takes exact_resource, path_subtree or tool_action, not command_prefix", "culm policy add"},
		{"policy add deny execute_command fly go", "a rule for execute_command takes exact_resource, command_prefix or tool_action, not fly", "culm policy add"},
		{"session create x --metadata a", `--metadata takes KEY=VALUE, not "a"`, "culm session create"},
		{"session create x --model gpt", "--model gpt: PROVIDER/MODEL is wanted", "culm session create"},
		{"run x do --prompt this", "the prompt is given twice, as argument and as flag", "culm run"},
		{"watch --from 3", "--from counts the events of one session; name it", "culm watch"},
		{"--actor _engine session list", "--actor _engine: names that begin with _ are the engine's own", "culm session list"},
	} {
		r := culm(t, &fake{}, strings.Fields(c.args)...)
		want := "culm: " + c.text + "\n      see " + c.hint + " --help\n"
		if r.status != exitUsage || r.err != want {
			t.Errorf("%s: status %d\n%swant\n%s", c.args, r.status, r.err, want)
		}
	}
}
