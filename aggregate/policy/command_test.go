package policy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitCommand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"git status":                       {"git", "status"},
		"  git\t status  ":                 {"git", "status"},
		`git commit -m "a & b; c | d"`:     {"git", "commit", "-m", "a & b; c | d"},
		`echo 'a $HOME ` + "`x`" + ` \ !'`: {"echo", "a $HOME `x` \\ !"},
		`'git' "status"`:                   {"git", "status"},
		`g''it sta"tus"`:                   {"git", "status"},
		`touch ""`:                         {"touch", ""},
		"ls *.go {a,b} ~ [x]?":             {"ls", "*.go", "{a,b}", "~", "[x]?"},
		"go\u00a0test":                     {"go\u00a0test"}, // shells do not split there either
		"gö test":                          {"gö", "test"},
		"":                                 nil,
		" \t ":                             nil,
		"git 'status":                      nil,
		`git "status`:                      nil,
		"git\nstatus":                      nil,
		"git 'a\nb'":                       nil,
		"git \x00":                         nil,
		"git \xff":                         nil,
		`git \status`:                      nil,
		`git "a\"b"`:                       nil,
		`git "$x"`:                         nil,
		"git \"`x`\"":                      nil,
		`git "fix!"`:                       nil,
		"git #x":                           nil,
		"git \u2028 x":                     nil,
	} {
		got, ok := SplitCommand(in)
		if ok != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", in, got, ok, want)
		}
	}
}

// operators are texts that make more than one simple command of a line, or
// might in some shell.
var operators = []string{
	"&", "&&", "|", "||", "|&", ";", ";;", "\n", "\r", "\r\n", ">", ">>", "<", "<<", "<<<", ">&", "$(", "${", "$", "$'", "`",
	"(", ")", "#", "!", "\\", "\x00", "\x1b", "\x7f",
}

func TestCommandPrefix_NoOperatorPasses(t *testing.T) {
	t.Parallel()
	for _, op := range operators {
		for _, candidate := range []string{"git status" + op, "git status " + op + " rm -rf /", "git status a" + op + "b", op + "git status", "git " + op + " status"} {
			if matchPrefix("git status", candidate) {
				t.Errorf("%q passes as git status", candidate)
			}
		}
		for _, pattern := range []string{"git " + op, "git" + op, op} {
			if _, ok := prefixWords(pattern); ok {
				t.Errorf("%q passes as a pattern", pattern)
			}
		}
		if active := strings.ContainsAny(op, "$`!\\\n\r\x00\x1b\x7f"); matchPrefix("git", `git "`+op+`"`) == active {
			t.Errorf("%q in double quotes: want match %v", op, !active)
		}
		if control := strings.ContainsAny(op, "'\n\r\x00\x1b\x7f"); matchPrefix("git", `git '`+op+`'`) == control {
			t.Errorf("%q in single quotes: want match %v", op, !control)
		}
	}
}

func TestCommandPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, command string
		want             bool
	}{
		{"git status", "git status", true},
		{"git status", "git status -s", true},
		{"git status", "  git   'status' --short", true},
		{"git status", "git", false},
		{"git status", "git statusx", false},
		{"git status", "git stat us", false},
		{"git status", "xgit status", false},
		{"git status", "Git status", false},
		{"git status", "git -C /x status", false},
		{"git status", "A=1 git status", false},
		{"git status", "/bin/git status", false},
		{"git 'a b'", "git 'a b' c", true},
		{"git 'a b'", "git a b", false},
		{"go test ./...", "go test ./... -race", true},
		{"go test", "go test *.go", true},
		{"go *", "go x", false},
		{"~/bin/x", "~/bin/x", false},
		{"A=1 go", "A=1 go", false},
		{"''", "'' x", false},
		{"go test", "go te?t", false},
		{"go", "go{,} test", false},
	} {
		if got := matchPrefix(c.pattern, c.command); got != c.want {
			t.Errorf("%q against %q: %v", c.pattern, c.command, got)
		}
	}
}

func TestCommandPrefix_CoversOnlyCommandsThatBeginWithItsWords(t *testing.T) {
	t.Parallel()
	words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,3}`), 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		pattern, command := words.Draw(t, "pattern"), words.Draw(t, "command")
		want := len(command) >= len(pattern) && slices.Equal(pattern, command[:min(len(pattern), len(command))])
		if got := matchPrefix(strings.Join(pattern, " "), strings.Join(command, "  ")); got != want {
			t.Fatalf("%q against %q: %v", pattern, command, got)
		}
	})
}

// unquoted is an independent reading of a command: the characters that stand
// outside of quotes, where a backslash outside of single quotes makes the
// reading uncertain. It returns false for what it cannot tell.
func unquoted(s string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			return "", false
		case '\'', '"':
			j := strings.IndexByte(s[i+1:], s[i])
			if j < 0 || s[i] == '"' && strings.ContainsAny(s[i+1:i+1+j], "\\$`") {
				return "", false
			}
			i += 1 + j
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String(), true
}

func FuzzCommandPrefix(f *testing.F) {
	f.Add("git status", "git status; rm -rf /")
	f.Add("git", `git "a$(b)"`)
	f.Add("a", "'a' \"b\" c\\")
	f.Add("go test", "go test ./... && x")
	f.Fuzz(func(t *testing.T, pattern, command string) {
		matched := matchPrefix(pattern, command)
		if !matched {
			return
		}
		plain, ok := unquoted(command)
		if !ok || strings.ContainsAny(plain, "&|;<>()#`$!\n\r\x00") {
			t.Fatalf("%q matches %q, which holds an operator", pattern, command)
		}
		r := Request{Type: ExecuteCommand, Resource: command}
		if script, _ := readScript(command); !touchesPrefix(pattern, script) && hardProblem(r) == "" {
			t.Fatalf("%q matches %q but does not touch it: %v", pattern, command, script)
		}
	})
}

func FuzzReadScript(f *testing.F) {
	for _, s := range []string{"a|b", "$(", "`", "sh -c 'a; b'", "eval eval eval", "((((", "a > b", "find / -exec find -exec x", "sudo -u x env A=1 sh -c 'rm'", "\\", "\"$(\"", "<(a)", "${"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		script, _ := readScript(s)
		for _, c := range script {
			_ = c.program()
			for _, d := range dangers {
				if d.command != nil {
					d.command(c)
				}
			}
		}
		for _, kind := range []string{ExecuteCommand, GitWrite, TerminalSession, WriteFile, DeleteOperation} {
			dangerOf(newSubject(Request{Type: kind, Resource: s, Workspace: "/w"}))
		}
	})
}

func TestReadScript_FindsEveryCommand(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"rm x", "true; rm x", "true && rm x", "true || rm x", "a | rm x", "a & rm x", "a\nrm x", "(rm x)", "{ rm x; }",
		"echo $(rm x)", "echo \"$(rm x)\"", "echo `rm x`", "cat <(rm x)", "if true; then rm x; fi", "! rm x", "A=1 B=2 rm x",
		"sudo rm x", "sudo -u root rm x", "env -i A=1 rm x", "nohup nice -n 5 rm x", "timeout 5s rm x", "xargs -0 rm x",
		"sh -c 'rm x'", "bash -lc \"rm x\"", "sudo sh -c 'true; rm x'", "eval rm x", "eval 'rm x'", "find . -exec rm x ;",
		"/bin/rm x", "'rm' x", "r''m x", "r\\m x", "rm x > /dev/null", "2>/dev/null rm x", "while true; do rm x; done",
		"echo $(echo $(rm x))", "sh -c \"sh -c 'rm x'\"", "rm x # tidy", "f() { rm x; }", "su -c 'rm x'",
	} {
		if got, _ := readScript(script); !touchesPrefix("rm x", got) {
			t.Errorf("%q: rm x is not found in %v", script, got)
		}
	}
	for _, script := range []string{"echo rm x", "echo 'rm x'", "rmx", "rm y", "git commit -m 'rm x'", "grep 'rm x' f"} {
		if got, _ := readScript(script); touchesPrefix("rm x", got) {
			t.Errorf("%q: rm x is found in %v", script, got)
		}
	}
}

// No text of the allowed size may keep the engine busy: what is read of it is
// bounded in all, and a text beyond that is told.
func TestReadScript_StaysBounded(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{
		"a|", "$(", "eval ", "find -exec ", "find / -exec sudo ", "sudo ", "sh -c ' ", "`", `"$(`, "eval sudo sh -c find -exec ", "(a|", "<(",
		"env sh -c eval ", "a(){", "(){", "x>a ", "find -exec sh -c ", `"'`, "-c 'sh -c x' ", "A=1 ", "if ", "git -c ", "a;", "x ",
	} {
		s := newSubject(Request{Type: ExecuteCommand, Resource: "sh " + strings.Repeat(piece, (MaxResource-4)/len(piece))})
		words := 0
		for _, c := range s.script {
			words += len(c.words)
		}
		if len(s.script) > 2*maxCommands || words > 2*maxWords {
			t.Errorf("%q: %d commands of %d words", piece, len(s.script), words)
		}
		dangerOf(s)
	}
	if _, clipped := readScript(strings.Repeat("$(", 100)); !clipped {
		t.Error("deep nesting is not told")
	}
}
