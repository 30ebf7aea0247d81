package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by culm completion --help.
func (completion) Help() string {
	return `To load it at every start:

  bash: culm completion bash > ~/.local/share/bash-completion/completions/culm
  zsh:  culm completion zsh > "${fpath[1]}/_culm"
  fish: culm completion fish > ~/.config/fish/completions/culm.fish`
}

// place is one point of the command line and what may stand there.
type place struct {
	path    string // words before, e.g. "session create"
	entries []entry
}

type entry struct{ word, help string }

func (c *completion) Run(a *app) error {
	places := walk(a.parser.Model.Node, "", nil)
	switch c.Shell {
	case "bash":
		return bashCompletion(a.out, places)
	case "zsh":
		return zshCompletion(a.out, places)
	default:
		return fishCompletion(a.out, places)
	}
}

// walk lists the node and all below it. Flags of a node stand at every place
// below it, too.
func walk(n *kong.Node, path string, above []entry) []place {
	flags := slices.Clone(above)
	for _, f := range n.Flags {
		if !f.Hidden {
			flags = append(flags, entry{"--" + f.Name, firstLine(f.Help)})
		}
	}
	here := place{path: path}
	var below []place
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		here.entries = append(here.entries, entry{child.Name, firstLine(child.Help)})
		below = append(below, walk(child, strings.TrimSpace(path+" "+child.Name), flags)...)
	}
	for _, p := range n.Positional {
		if p.Enum != "" {
			for _, word := range p.EnumSlice() {
				here.entries = append(here.entries, entry{word: word})
			}
		}
	}
	here.entries = append(here.entries, flags...)
	return append([]place{here}, below...)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(s, ".")
}

// commands lists the paths of places that others stand below, so that a shell
// can tell a subcommand from an argument.
func commands(places []place) string {
	var paths []string
	for _, p := range places {
		if p.path != "" {
			paths = append(paths, "'"+p.path+"'")
		}
	}
	return strings.Join(paths, "|")
}

// bashCompletion offers flags once a - is typed, as zshCompletion does: where a
// session, a call or a text is wanted, which no script knows, nothing is
// offered. Files are offered behind a flag.
func bashCompletion(w io.Writer, places []place) error {
	var b strings.Builder
	b.WriteString("# bash completion of culm\n_culm() {\n\tlocal path='' word words='' kept='' cur=\"${COMP_WORDS[COMP_CWORD]}\"\n")
	b.WriteString("\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tcase \"${path:+$path }$word\" in\n")
	fmt.Fprintf(&b, "\t\t%s) path=\"${path:+$path }$word\" ;;\n\t\tesac\n\tdone\n\tcase \"$path\" in\n", commands(places))
	for _, p := range places {
		words := make([]string, len(p.entries))
		for i, e := range p.entries {
			words[i] = e.word
		}
		fmt.Fprintf(&b, "\t'%s') words='%s' ;;\n", p.path, strings.Join(words, " "))
	}
	b.WriteString("\tesac\n\tfor word in $words; do\n\t\t[[ $word == -* && $cur != -* ]] || kept=\"$kept $word\"\n\tdone\n")
	b.WriteString("\t[[ ${COMP_WORDS[COMP_CWORD-1]} == -* ]] || compopt +o default 2>/dev/null\n")
	b.WriteString("\tCOMPREPLY=($(compgen -W \"$kept\" -- \"$cur\"))\n}\ncomplete -o default -F _culm culm\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func zshCompletion(w io.Writer, places []place) error {
	var b strings.Builder
	b.WriteString("#compdef culm\n# zsh completion of culm\n_culm() {\n\tlocal culm_path='' word\n\tlocal -a entries\n")
	b.WriteString("\tfor word in \"${(@)words[2,CURRENT-1]}\"; do\n\t\tcase \"${culm_path:+$culm_path }$word\" in\n")
	fmt.Fprintf(&b, "\t\t%s) culm_path=\"${culm_path:+$culm_path }$word\" ;;\n\t\tesac\n\tdone\n\tcase \"$culm_path\" in\n", strings.ReplaceAll(commands(places), "'", "\""))
	for _, p := range places {
		fmt.Fprintf(&b, "\t\"%s\") entries=(", p.path)
		for _, e := range p.entries {
			fmt.Fprintf(&b, " %s", quoted(strings.ReplaceAll(e.word, ":", `\:`)+":"+e.help))
		}
		b.WriteString(" ) ;;\n")
	}
	b.WriteString("\tesac\n\t[[ $words[CURRENT] == -* ]] || entries=(${entries:#-*})\n")
	b.WriteString("\t_describe 'culm' entries || { [[ $words[CURRENT-1] == -* ]] && _files; }\n}\nif [ \"$funcstack[1]\" = _culm ]; then _culm \"$@\"; else compdef _culm culm; fi\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func fishCompletion(w io.Writer, places []place) error {
	var b strings.Builder
	b.WriteString("# fish completion of culm\nfunction __culm_at\n\tset -l path ''\n\tfor word in (commandline -opc)[2..-1]\n")
	b.WriteString("\t\tset -l next (string trim \"$path $word\")\n\t\tswitch $next\n")
	fmt.Fprintf(&b, "\t\tcase %s\n\t\t\tset path $next\n\t\tend\n\tend\n\ttest \"$path\" = \"$argv[1]\"\nend\n", strings.ReplaceAll(commands(places), "|", " "))
	for _, p := range places {
		for _, e := range p.entries {
			arg := "-a " + e.word
			if long, ok := strings.CutPrefix(e.word, "--"); ok {
				arg = "-l " + long
			}
			fmt.Fprintf(&b, "complete -c culm -n \"__culm_at '%s'\" %s -d %s\n", p.path, arg, quoted(e.help))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted is s between single quotes for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
