package policy

import (
	"path"
	"slices"
	"strings"
)

// Danger is one kind of operation that no remembered decision covers: only a
// single approval, or mode auto, lets it pass (docs/permissions.md#dangerous).
type Danger struct {
	ID  string // names the rule in verdicts
	Why string // completes "it ..."

	command func(simple) bool
	request func(*subject) bool
}

// Dangers are the built-in dangerous operations. They recognise the common
// spellings of common accidents and serve as a net for mistakes. They are no
// defence against somebody who hides what a command does.
func Dangers() []Danger { return slices.Clone(dangers) }

var dangers = []Danger{
	{ID: "danger:rm_root", Why: "deletes a whole system folder, home or working folder", command: isRemoveRoot, request: isDeleteRoot},
	{ID: "danger:format_disk", Why: "formats or repartitions a disk", command: isFormat},
	{ID: "danger:write_device", Why: "writes to a raw device", command: isDeviceCommand, request: isDeviceWrite},
	{ID: "danger:pipe_to_shell", Why: "runs what it loads from the network", command: isPipeToShell},
	{ID: "danger:force_push", Why: "overwrites the history of a remote repository", command: isForcePush},
	{ID: "danger:chmod_root", Why: "changes owner or rights of a whole system folder or home", command: isChmodRoot},
	{ID: "danger:fork_bomb", Why: "starts copies of itself without end", request: isForkBomb},
	{ID: "danger:shutdown", Why: "stops the machine or all of its processes", command: isShutdown},
	{ID: "danger:credentials", Why: "rewrites who may log in to the machine", command: isCredentialCommand, request: isCredentialWrite},
	{ID: "danger:unreadable", Why: "nests commands too deep to be read", request: func(s *subject) bool { return s.clipped }},
}

// dangerOf finds the first built-in danger of the request.
func dangerOf(s *subject) (Danger, bool) {
	for _, d := range dangers {
		if d.request != nil && d.request(s) || d.command != nil && slices.ContainsFunc(s.script, d.command) {
			return d, true
		}
	}
	return Danger{}, false
}

// hasFlag says that one of the words is the long flag, or a group of short
// flags that holds the letter.
func hasFlag(words []string, letters, long string) bool {
	for _, w := range words {
		if w == "--" {
			return false
		}
		if name, _, _ := strings.Cut(w, "="); long != "" && name == long {
			return true
		}
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w[1:], letters) {
			return true
		}
	}
	return false
}

// isRootTarget says that a word names the root, a folder right below it, a
// home folder, what the working folder lies in, or everything in one of these.
func isRootTarget(w string) bool {
	for _, all := range []string{"/*", "/.*", "/."} {
		if cut, ok := strings.CutSuffix(w, all); ok {
			return isRootTarget(cut + "/")
		}
	}
	trimmed := strings.TrimRight(w, "/")
	switch trimmed {
	case "":
		return w != ""
	case ".", "*", "~", "$HOME", "${HOME}", "$PWD", "${PWD}":
		return true
	}
	climbs := strings.Trim(trimmed, "./") == "" && strings.HasSuffix(path.Clean(trimmed), "..")
	return climbs || strings.HasPrefix(trimmed, "~") && !strings.Contains(trimmed, "/") || isTopFolder(w)
}

// isTopFolder: the root, a folder right below it, or a home folder. /tmp is
// everybody's to clear.
func isTopFolder(w string) bool {
	p, ok := cleanPath(w)
	if !ok || p == "/tmp" {
		return false
	}
	parts := strings.Split(strings.Trim(p, "/"), "/")
	return len(parts) == 1 || len(parts) == 2 && (parts[0] == "home" || parts[0] == "Users")
}

func isRemoveRoot(s simple) bool {
	switch s.program() {
	case "rm":
		return hasFlag(s.words[1:], "", "--no-preserve-root") ||
			hasFlag(s.words[1:], "rR", "--recursive") && slices.ContainsFunc(s.words[1:], isRootTarget)
	case "find":
		removes := slices.Contains(s.words, "-delete") || slices.Contains(s.words, "rm")
		return removes && len(s.words) > 1 && isTopFolder(s.words[1])
	}
	return false
}

func isDeleteRoot(s *subject) bool {
	if s.Type != DeleteOperation {
		return false
	}
	p, where := resolve(s.Resource, s.Workspace)
	return where == known && (isTopFolder(p) || samePath(p, s.Workspace)) || strings.HasPrefix(s.Resource, "~") && isRootTarget(s.Resource)
}

func isFormat(s simple) bool {
	p := s.program()
	switch p {
	case "mkswap", "wipefs", "fdisk", "sfdisk", "gdisk", "sgdisk", "parted", "format.com":
		return true
	case "diskutil":
		return len(s.words) > 1 && strings.HasPrefix(strings.ToLower(s.words[1]), "erase")
	}
	return p == "mkfs" || strings.HasPrefix(p, "mkfs.")
}

// isDevice says that a path is a device that holds data; /dev/null, terminals
// and file descriptors are not.
func isDevice(p string) bool {
	c, ok := cleanPath(p)
	if !ok || !strings.HasPrefix(c, "/dev/") {
		return false
	}
	for _, harmless := range []string{"null", "zero", "full", "random", "urandom", "std", "tty", "pts/", "fd", "shm/", "ptmx"} {
		if strings.HasPrefix(c, "/dev/"+harmless) {
			return false
		}
	}
	return true
}

func isDeviceCommand(s simple) bool {
	if slices.ContainsFunc(s.targets, isDevice) {
		return true
	}
	switch s.program() {
	case "dd":
		return slices.ContainsFunc(s.words[1:], func(w string) bool {
			of, ok := strings.CutPrefix(w, "of=")
			return ok && isDevice(of)
		})
	case "tee", "shred", "truncate", "blkdiscard":
		return slices.ContainsFunc(s.words[1:], isDevice)
	case "cp", "mv", "install":
		return isDevice(s.words[len(s.words)-1])
	}
	return false
}

func isDeviceWrite(s *subject) bool {
	return shapeOf(s.Type) == shapePath && isDevice(s.Resource)
}

func isPipeToShell(s simple) bool {
	if !s.fetched || len(s.words) == 0 {
		return false
	}
	inserted := func(w string) bool { return strings.Contains(w, "$()") || strings.Contains(w, "`") || w == "/dev/fd" }
	switch p := s.program(); {
	case shells[p] || p == "eval" || p == "source" || p == "." || inserted(s.words[0]):
		return true
	case interpreters[strings.TrimRight(p, "0123456789.")]: // it runs its input only if it is given nothing else
		return len(s.words) == 1 || slices.Contains(s.words, "-") || slices.ContainsFunc(s.words, inserted)
	}
	return false
}

func isForcePush(s simple) bool {
	w := withoutGitOptionsIf(s)
	if len(w) < 2 || w[1] != "push" {
		return false
	}
	for _, a := range w[2:] {
		if strings.HasPrefix(a, "+") || strings.HasPrefix(a, "--force") || a == "--mirror" || a == "--prune" {
			return true
		}
	}
	return hasFlag(w[2:], "f", "")
}

func withoutGitOptionsIf(s simple) []string {
	if s.program() != "git" {
		return nil
	}
	return withoutGitOptions(s.words)
}

func isChmodRoot(s simple) bool {
	switch s.program() {
	case "chmod", "chown", "chgrp":
		return hasFlag(s.words[1:], "R", "--recursive") && slices.ContainsFunc(s.words[1:], isRootTarget)
	}
	return false
}

// isForkBomb looks for a function that pipes itself into itself in the
// background, under any name: f(){ f|f& };f
func isForkBomb(s *subject) bool {
	if shapeOf(s.Type) != shapeCommand {
		return false
	}
	text := strings.Join(strings.Fields(s.Resource), "")
	for i := strings.Index(text, "(){"); i >= 0; {
		name := strings.TrimPrefix(text[strings.LastIndexAny(text[:i], ";&|(){}")+1:i], "function")
		if body := name + "|" + name; name != "" && strings.HasPrefix(text[i+3:], body) && strings.Contains(text[i+3+len(body):], "&") {
			return true
		}
		next := strings.Index(text[i+3:], "(){")
		if next < 0 {
			return false
		}
		i += 3 + next
	}
	return false
}

func isShutdown(s simple) bool {
	args := s.words[min(1, len(s.words)):]
	switch s.program() {
	case "shutdown", "reboot", "halt", "poweroff":
		return true
	case "init", "telinit":
		return slices.Contains(args, "0") || slices.Contains(args, "6")
	case "systemctl":
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"poweroff", "reboot", "halt", "kexec", "emergency", "rescue"}, a)
		})
	case "kill":
		return len(args) > 1 && (slices.Contains(args[1:], "-1") || slices.Contains(args[1:], "1"))
	}
	return false
}

var credentialFiles = []string{"/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers"}

func isCredentialFile(p string) bool {
	c := path.Clean(p)
	return slices.Contains(credentialFiles, c) || strings.HasPrefix(c, "/etc/sudoers.d/") || strings.HasSuffix(c, "/.ssh/authorized_keys")
}

func isCredentialCommand(s simple) bool {
	if slices.ContainsFunc(s.targets, isCredentialFile) {
		return true
	}
	switch s.program() {
	case "tee", "rm", "mv", "shred", "truncate":
		return slices.ContainsFunc(s.words[1:], isCredentialFile)
	case "cp", "install":
		return isCredentialFile(s.words[len(s.words)-1])
	}
	return false
}

func isCredentialWrite(s *subject) bool {
	return shapeOf(s.Type) == shapePath && isCredentialFile(s.Resource)
}
