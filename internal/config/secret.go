package config

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// secretShapes are spellings that only keys and passwords have. They are looked
// for in every line, comments too.
var secretShapes = regexp.MustCompile(strings.Join([]string{
	apart + `(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}`,          // model providers, payment services
	`\bAIza[0-9A-Za-z_-]{30,}`,                            // Google
	`\bya29\.[0-9A-Za-z_-]{20,}`,                          // Google, OAuth
	`\bgh[pousr]_[A-Za-z0-9]{20,}`, apart + `github_pat_`, // GitHub
	apart + `glpat-[0-9A-Za-z_-]{12,}`,                    // GitLab
	apart + `xox[abeoprs]-[0-9A-Za-z-]{8,}`,               // Slack
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,                       // AWS
	apart + `(?:hf|gsk|xai|nvapi|r8)[-_][A-Za-z0-9]{16,}`, // model hosts
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`,           // JSON web token
	`\bS[UAONCX][A-Z2-7]{54,}`,                            // NATS seed
	`-----BEGIN [A-Z ]*PRIVATE KEY`,                       // PEM
	`(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12,}`,               // HTTP header
	`://[^/\s"'@]+@`,                                      // user or password in an address
}, "|"))

// apart stands before a key that begins like words may. Within a path words
// stand there, as in /srv/sk-transcripts-of-2026.
const apart = `(?:^|[^A-Za-z0-9_/\\])`

// paths are texts that name a file by their looks: from the root or a folder
// on, or by an ending that files of culm have.
var paths = regexp.MustCompile(`^(?:~?/|\.\.?[/\\]|[A-Za-z]:[/\\]|\\\\)|\.(?:jsonl?|ya?ml|txt|log|md|db)$`)

// runs are what a random key is made of.
var runs = regexp.MustCompile(`[A-Za-z0-9+=]{24,}`)

var secretWord = regexp.MustCompile(`(?i)(^|[_-])(api_?key|key|token|secret|password|passwd|credentials?|authorization)s?$`)

// secretName says that a key is called like a secret.
func secretName(key string) bool { return secretWord.MatchString(key) }

const secretAdvice = "looks like a key or a password: secrets do not belong in this file; set it in the environment and name the variable in api_key_env, " +
	"or for a setting use its CULM_ variable. If it was shared with the file, replace it"

// checkLines looks for secrets before anything else may repeat a part of the
// text, and for lines that nobody writes.
func (r *reader) checkLines(text []byte) bool {
	number := 0
	for l := range bytes.Lines(text) {
		number++
		switch {
		case len(l) > maxLine:
			r.failf(number, "", "is a line of more than %d bytes", maxLine)
		case secretShapes.Match(l):
			r.failf(number, lineKey(l), secretAdvice)
		}
	}
	return len(r.errs) > 0
}

var leadingKey = regexp.MustCompile(`^[\s-]*([A-Za-z0-9_-]{1,64})\s*:(?:\s|$)`)

// lineKey is the key that a line begins with, "" if with none or if the key
// itself may be the secret.
func lineKey(l []byte) string {
	m := leadingKey.FindSubmatch(l)
	if m == nil || secretShapes.Match(m[1]) {
		return ""
	}
	return string(m[1])
}

// checkValues looks at every text as YAML reads it: for the shapes again, which
// an escape may have hidden from checkLines, and for one as random as a key.
func (r *reader) checkValues(root ast.Node) bool {
	if root != nil {
		r.randomIn("", root)
	}
	return len(r.errs) > 0
}

func (r *reader) randomIn(path string, n ast.Node) {
	if values, ok := entries(n); ok {
		for _, v := range values {
			key, _ := textOf(v.Key)
			if random(key) || secretShapes.MatchString(key) {
				r.failf(line(v.Key), path, "holds a key that "+secretAdvice)
				continue
			}
			r.randomIn(join(path, key), v.Value)
		}
		return
	}
	if s, ok := n.(*ast.SequenceNode); ok {
		for _, v := range s.Values {
			r.randomIn(path, v)
		}
		return
	}
	if s, ok := textOf(n); ok && (slices.ContainsFunc(strings.Fields(s), randomWord) || secretShapes.MatchString(s)) {
		r.failf(line(n), path, secretAdvice)
	}
}

// randomWord says that a word is as random as a key and no path.
func randomWord(w string) bool { return random(w) && !paths.MatchString(w) }

// random says that the text holds a run of letters and digits that no word or
// name has: hexadecimal digits of at least 128 bits, or letters of both cases
// and digits in an even mix.
func random(s string) bool {
	for _, run := range runs.FindAllString(s, -1) {
		lower, upper, digit, hex := classes(run)
		switch {
		case len(run) >= 32 && hex && digit > 0 && lower+upper > 0:
			return true
		case lower > 2 && upper > 2 && digit > 2 && entropy(run) >= 3.7:
			return true
		}
	}
	return false
}

func classes(s string) (lower, upper, digit int, hex bool) {
	hex = true
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z':
			lower++
		case 'A' <= c && c <= 'Z':
			upper++
		case '0' <= c && c <= '9':
			digit++
		}
		hex = hex && strings.ContainsRune("0123456789abcdefABCDEF", c)
	}
	return lower, upper, digit, hex
}

// entropy is the mean information of a character, in bits.
func entropy(s string) float64 {
	count := map[rune]float64{}
	for _, c := range s {
		count[c]++
	}
	sum, n := 0.0, float64(len(s))
	for _, k := range count {
		sum -= k / n * math.Log2(k/n)
	}
	return sum
}
