package policy

import (
	"path"
	"slices"
	"strings"
)

// wrappers run the command that stands in their arguments.
var wrappers = map[string]bool{
	"sudo": true, "doas": true, "env": true, "nohup": true, "nice": true, "ionice": true, "time": true, "command": true,
	"builtin": true, "exec": true, "stdbuf": true, "timeout": true, "setsid": true, "xargs": true, "busybox": true,
	"watch": true, "chroot": true, "unshare": true, "parallel": true, "strace": true,
}

// shells take a script with -c, or on their input.
var shells = map[string]bool{
	"sh": true, "bash": true, "zsh": true, "dash": true, "ksh": true, "ash": true, "fish": true, "csh": true, "tcsh": true,
}

// interpreters run a program that comes on their input.
var interpreters = map[string]bool{
	"python": true, "perl": true, "ruby": true, "node": true, "deno": true, "bun": true, "php": true,
	"lua": true, "pwsh": true, "powershell": true,
}

// fetchers load something from the network and print it.
var fetchers = map[string]bool{
	"curl": true, "wget": true, "fetch": true, "aria2c": true, "http": true, "https": true, "xh": true, "nc": true, "ncat": true,
	"socat": true, "lynx": true, "ftp": true, "invoke-webrequest": true, "iwr": true,
}

var keywords = map[string]bool{
	"if": true, "then": true, "else": true, "elif": true, "fi": true, "do": true, "done": true, "while": true, "until": true,
	"!": true, "{": true, "}": true, "coproc": true,
}

// wrapperWindow is how many words behind a wrapper are tried as the program
// that it runs: its own options and their values come first.
const wrapperWindow = 8

// isLead says that the program does not stand here yet.
func isLead(w string) bool { return keywords[w] || isAssignment(w) }

// emit stores a command, the same without its leading keywords and
// assignments, and then what it hands on to be run.
func (r *reader) emit(s simple) {
	if len(r.out) >= maxCommands || r.words >= maxWords {
		r.clipped = true
		return
	}
	if len(s.words) > 1 && isLead(s.words[0]) {
		r.store(s)
		for len(s.words) > 1 && isLead(s.words[0]) {
			s.words = s.words[1:]
		}
	}
	r.store(s)
	program := s.program()
	switch {
	case wrappers[program] && r.depth < maxNesting:
		r.wrapped(s)
	case shells[program] || program == "su":
		for i, w := range s.words {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c") && i+1 < len(s.words) {
				r.nested(s.words[i+1])
			}
		}
	case program == "eval":
		r.nested(strings.Join(s.words[1:], " "))
	case program == "find":
		for i, w := range s.words {
			if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w) && i+1 < len(s.words) {
				r.exec(simple{words: s.words[i+1:], fetched: s.fetched})
			}
		}
	case program == "git":
		if w := withoutGitOptions(s.words); len(w) != len(s.words) {
			r.store(simple{words: w, fetched: s.fetched})
		}
	}
}

func (r *reader) store(s simple) {
	if fetchers[s.program()] {
		r.lastFetch = len(r.out)
	}
	r.out = append(r.out, s)
	r.words += len(s.words)
}

// exec reads the command behind an -exec of find. Another find in it has its
// own -exec in the same words, which the outer one tries.
func (r *reader) exec(s simple) {
	switch {
	case r.words >= maxWords:
		r.clipped = true
	case s.program() == "find":
		r.store(s)
	default:
		r.deeper(s)
	}
}

// wrapped tries each of the first words behind a wrapper as a program.
func (r *reader) wrapped(s simple) {
	for i := 1; i < len(s.words) && i <= wrapperWindow; i++ {
		w := s.words[i]
		if !strings.HasPrefix(w, "-") && !isAssignment(w) {
			r.deeper(simple{words: s.words[i:], fetched: s.fetched, targets: s.targets})
			if wrappers[path.Base(w)] { // it tries the rest itself
				return
			}
		}
	}
}

func (r *reader) deeper(s simple) {
	if r.depth >= maxNesting {
		r.clipped = true
		return
	}
	r.depth++
	r.emit(s)
	r.depth--
}

// withoutGitOptions drops what stands between git and its command.
func withoutGitOptions(words []string) []string {
	i := 1
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}, words[i]) {
			i++
		}
		i++
	}
	return append([]string{words[0]}, words[min(i, len(words)):]...)
}

func isAssignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_+") == ""
}

// touchesPrefix is the wide reading of command_prefix: some command of the
// script begins with the words of the pattern. A program is known by its base
// name too, so `rm` touches /bin/rm.
func touchesPrefix(pattern string, script []simple) bool {
	prefix, ok := prefixWords(pattern)
	if !ok {
		return true
	}
	for _, s := range script {
		if len(s.words) < len(prefix) || !slices.Equal(s.words[1:len(prefix)], prefix[1:]) {
			continue
		}
		if s.words[0] == prefix[0] || s.program() == prefix[0] {
			return true
		}
	}
	return false
}

// touchesCommand is the wide reading of exact_resource for commands: some
// command of the script has exactly the words of the pattern.
func touchesCommand(pattern string, script []simple) bool {
	words, ok := SplitCommand(pattern)
	if !ok {
		return false // a script: only the same text is the same
	}
	return slices.ContainsFunc(script, func(s simple) bool { return slices.Equal(s.words, words) })
}
