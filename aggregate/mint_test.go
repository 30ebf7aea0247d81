package aggregate

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestMint: the ids are UUIDs of version 5, whatever a session and a command are
// called, and stay what they were: clients and logs hold them.
func TestMint(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "01KB9ZQ000T8QW2X4Y6Z7A8B9C", strings.Repeat("c", 4*MaxCommandID)} {
		env := Env{Birth: "01KB9ZQ000T8QW2X4Y6Z7A8B9D", Command: command}
		want := uuid.NewSHA1(idSpace, []byte(env.Birth+"\x00"+command+"\x00message\x0012")).String()
		if got := env.mint("message", 12); got != want || !isUUID(got) {
			t.Errorf("%.40q: %s, want %s", command, got, want)
		}
	}
}
