package web

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"culm/events"
)

// minToken is the length below which a token could be guessed, in characters.
const minToken = 24

// Tokens say who speaks: each names an actor. The zero value knows nobody.
type Tokens struct {
	entries []tokenEntry
}

type tokenEntry struct {
	actor string
	sum   [sha256.Size]byte
}

// Add lets the token speak as the actor. One actor may have several tokens.
func (t *Tokens) Add(actor, token string) error {
	switch {
	case !validActor(actor):
		return fmt.Errorf("actor %.80q is no token of [A-Za-z0-9_-]{1,64}, or begins with _", actor)
	case len(token) < minToken:
		return fmt.Errorf("the token of %s has %d characters, at least %d are needed", actor, len(token), minToken)
	case strings.TrimFunc(token, printableASCII) != "":
		return fmt.Errorf("the token of %s holds other than printable ASCII characters", actor)
	}
	sum := sha256.Sum256([]byte(token))
	for _, e := range t.entries {
		if e.sum == sum && e.actor != actor {
			return fmt.Errorf("%s and %s have the same token", e.actor, actor)
		}
	}
	t.entries = append(t.entries, tokenEntry{actor, sum})
	return nil
}

func validActor(s string) bool { return events.ValidToken(s) && !events.ReservedToken(s) }

func printableASCII(r rune) bool { return '!' <= r && r <= '~' }

// actor returns whom the token names. The time it takes does not depend on how
// much of a token is right.
func (t *Tokens) actor(token string) (string, bool) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range t.entries {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t.entries[i].sum[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return t.entries[found].actor, true
}

// of returns who sent the request: "" without a token, a fault with a wrong one.
func (t *Tokens) of(r *http.Request) (string, error) {
	given := r.Header.Get("Authorization")
	if given == "" {
		return "", nil
	}
	scheme, token, _ := strings.Cut(given, " ")
	if strings.EqualFold(scheme, "Bearer") {
		if actor, ok := t.actor(strings.TrimSpace(token)); ok {
			return actor, nil
		}
	}
	return "", refuse(codeUnauthorized, "the token is not known here; `culm page` prints the address with the token")
}

// ReadTokens reads lines "actor token"; empty lines and those that begin with #
// are passed over.
func ReadTokens(r io.Reader) (*Tokens, error) {
	t := &Tokens{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not: actor token", n)
		}
		if err := t.Add(fields[0], fields[1]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return t, lines.Err()
}

// KeptToken returns the token that the file holds, and makes it with a new one,
// readable by its owner alone, if there is none: an open page can go on after
// a restart.
func KeptToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(b))) >= minToken {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token of the page: %w", err)
	}
	token := NewToken()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as the data folder is made
		return "", fmt.Errorf("token of the page: %w", err)
	}
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token of the page: %w", err)
	}
	return token, nil
}

// NewToken mints a token of 256 bits.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
