package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDisk_ShorterLogIsTold: what the server gives of a damaged stream may be a
// whole, shorter history, and a lost one is none at all. The views have seen
// more, and the engine says so when it starts; a deleted session is no loss.
func TestDisk_ShorterLogIsTold(t *testing.T) {
	t.Parallel()
	e := &engine{dir: t.TempDir()}
	e.args = []string{"--listen", "127.0.0.1:0", "--data", e.dir, "--no-runner", "--http", "127.0.0.1:0"}
	e.up(t)
	cut, lost, good, deleted := e.create("-cut"), e.create("-lost"), e.create("-good"), e.create("-deleted")
	for _, s := range []string{cut, lost, good, deleted} {
		for i := range 20 {
			e.must(s, "message.submit", obj{"content": fmt.Sprint("number ", i)})
		}
	}
	for _, s := range []string{cut, lost, good, deleted} {
		body := obj{"session": s, "min_sequence": obj{s: 21}, "wait_ms": 60_000}
		eventually(t, "the views have seen "+s, func() bool {
			m, err := e.nc.Request("agent.query.sessions.get", []byte(jsonText(body)), patience)
			must(t, err)
			return strings.HasPrefix(string(m.Data), `{"ok":true`)
		})
	}
	e.stop()
	before := e.output()
	// Deleted by an engine whose views do not see it.
	e.args = append(e.args, "--no-projector")
	e.up(t)
	e.nothing(deleted, "session.delete", obj{"birth": e.readWith(deleted, nil).Birth})
	e.stop()
	e.args = e.args[:len(e.args)-1]
	cutBlock(t, e.dir, cut)
	must(t, filepath.WalkDir(e.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "SESSION_"+lost {
			err = os.RemoveAll(path)
			if err == nil {
				err = filepath.SkipDir
			}
		}
		return err
	}))
	e.up(t)
	eventually(t, "the metrics count both", func() bool {
		_, metrics := e.get("/metrics")
		return strings.Contains(metrics, "\nengine_shorter_logs 2\n")
	})
	const words = "shorter than its views have seen"
	for _, s := range []string{cut, lost} {
		eventually(t, "the log names "+s, func() bool {
			for line := range strings.Lines(e.output()) {
				if strings.Contains(line, words) && strings.Contains(line, "level=ERROR") && strings.Contains(line, "session="+s+" ") && strings.Contains(line, "seen=21") {
					return true
				}
			}
			return false
		})
	}
	if strings.Count(e.output(), words) != 2 || strings.Contains(before, words) {
		t.Errorf("others are named, too:\n%s", e.output())
	}
	e.must(good, "message.submit", obj{"content": "still here"})
}

// cutBlock takes the second half of the stream's block away.
func cutBlock(t *testing.T, dir, session string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "SESSION_"+session) {
			return err
		}
		switch {
		case strings.HasSuffix(path, "1.blk"):
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()/2)
		case strings.HasSuffix(path, "index.db"): // the server makes it anew
			return os.Remove(path)
		}
		return nil
	}))
}
