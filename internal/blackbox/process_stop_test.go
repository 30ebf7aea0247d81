package blackbox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProcess_StopsWithoutItsServer: an engine whose server has gone ends when
// it is told to, says why, and has not failed.
func TestProcess_StopsWithoutItsServer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"bare": bare,
		"all":  {"--http", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "views")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNATS(t)
			e := launch(t, command(slices.Concat([]string{"--nats", ns.url}, args)...))
			e.awaitReady()
			c := dial(t, ns.url)
			s := c.create("")
			c.must(s, "message.submit", obj{"content": "a"})
			ns.kill()
			eventually(t, "the engine has noticed", func() bool { return strings.Contains(e.output(), "connection lost") })
			if status := e.stop(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if out := e.output(); !strings.Contains(out, "the NATS server is gone") {
				t.Errorf("it does not say why:\n%s", tail(out, 2000))
			}
		})
	}
}

// TestProcess_AnotherPrefix: an engine with another prefix has no place on a
// server; it says so, with the flag, whoever runs the server.
func TestProcess_AnotherPrefix(t *testing.T) {
	t.Parallel()
	ns := startNATS(t)
	join(t, ns.url)
	for _, url := range []string{start(t).url, start(t, "--sync", "always").url, ns.url} {
		ends(t, 2, slices.Concat([]string{"--nats", url, "--prefix", "other"}, bare), "--prefix other", "agent.later.>")
	}
	e := start(t)
	if status := e.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	ends(t, 2, slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", e.dir, "--prefix", "other"}, bare), "--prefix other")
}
