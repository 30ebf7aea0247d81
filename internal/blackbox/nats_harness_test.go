package blackbox

import (
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"culm/internal/natstest"
)

// natsServer is a NATS server in a process of its own.
type natsServer struct {
	*process

	url  string
	args []string
}

// startNATS runs a server in an empty folder.
func startNATS(t testing.TB, args ...string) *natsServer {
	t.Helper()
	s := &natsServer{args: slices.Concat([]string{"-data", t.TempDir(), "-port", strconv.Itoa(natstest.Port(t))}, args)}
	s.up(t)
	return s
}

// up starts the process (again), on the same port.
func (s *natsServer) up(t testing.TB) {
	t.Helper()
	s.process = launch(t, exec.Command(natsBinary, s.args...)) //nolint:gosec // built by TestMain
	s.url = s.awaitURL()
}
