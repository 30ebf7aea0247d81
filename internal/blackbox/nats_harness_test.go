package blackbox

import (
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"testing"
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
	s := &natsServer{args: slices.Concat([]string{"-data", t.TempDir()}, args)}
	s.up(t)
	return s
}

// up starts the process (again), on the same port.
func (s *natsServer) up(t testing.TB) {
	t.Helper()
	args := s.args
	if s.url != "" {
		u, err := url.Parse(s.url)
		must(t, err)
		port, err := strconv.Atoi(u.Port())
		must(t, err)
		args = append(slices.Clone(args), "-port", strconv.Itoa(port))
	}
	s.process = launch(t, exec.Command(natsBinary, args...)) //nolint:gosec // built by TestMain
	s.url = s.awaitURL()
}
