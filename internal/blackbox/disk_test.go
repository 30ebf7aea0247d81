//go:build linux

package blackbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"culm/aggregate"
	"culm/events"
)

// smallDisk is a data folder whose disk can be filled and given free again. It
// is a small file system of its own where mounts are permitted; else the files
// of the engine may not grow beyond a size, which the server meets as the same
// write error.
type smallDisk struct {
	dir     string
	mounted bool
}

func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	d := &smallDisk{dir: t.TempDir()}
	if unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m") == nil {
		d.mounted = true
		t.Cleanup(func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) })
	}
	return d
}

// fill leaves no room.
func (d *smallDisk) fill(t *testing.T, e *engine) {
	t.Helper()
	if !d.mounted {
		d.limit(t, e, 4<<10)
		return
	}
	f, err := os.Create(d.ballast())
	must(t, err)
	defer func() { _ = f.Close() }()
	for _, piece := range []int{1 << 20, 64 << 10, 4 << 10, 1} {
		for {
			if _, err := f.Write(make([]byte, piece)); err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				break
			}
		}
	}
}

// free gives the room back.
func (d *smallDisk) free(t *testing.T, e *engine) {
	t.Helper()
	if !d.mounted {
		d.limit(t, e, unix.RLIM_INFINITY)
		return
	}
	must(t, os.Remove(d.ballast()))
}

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

func (d *smallDisk) limit(t *testing.T, e *engine, bytes uint64) {
	t.Helper()
	must(t, unix.Prlimit(e.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil))
}

// TestDisk_FullAndFreeAgain: while nothing can be written, commands are answered
// unavailable and not with silence; when there is room again the engine takes
// commands by itself, everything that was acknowledged is there once, and no
// event is half there.
func TestDisk_FullAndFreeAgain(t *testing.T) {
	t.Parallel()
	d := newSmallDisk(t)
	t.Logf("file system of its own: %t", d.mounted)
	e := &engine{dir: d.dir}
	e.args = slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", d.dir}, bare)
	e.up(t)
	sessions := []string{e.create("-a"), e.create("-b")}
	acked := map[int]reply{}
	large := func(n int) *nats.Msg {
		return message(sessions[n%2], "message.submit", obj{"content": fmt.Sprint(n, strings.Repeat("x", 20<<10))}, id(fmt.Sprint("m", n)))
	}
	w := newWorker(t.Context(), e.client, &ledger{}, "w")
	send := func(n int) reply {
		began := time.Now()
		r, err := w.within(large(n), patience/2)
		switch took := time.Since(began); {
		case err != nil && took > patience/3: // else the connection ended, as with a server that restarts
			t.Fatalf("command %d: no answer in %s: %v", n, took, err)
		case r.OK:
			acked[n] = r
		case err == nil && r.code() != "unavailable":
			t.Fatalf("command %d: %s", n, r.raw)
		}
		return r
	}
	n, refused := 0, 0
	for ; n < 5; n++ {
		send(n)
	}
	d.fill(t, e)
	for ; refused < 6 && n < 200; n++ {
		if !send(n).OK {
			refused++
		}
	}
	if refused == 0 {
		t.Error("a full disk took 200 commands")
	}
	d.free(t, e)
	eventually(t, "commands are accepted again", func() bool { n++; return send(n).OK })
	for k := range n {
		r := e.request(large(k))
		if first, ok := acked[k]; ok && r.first() != first.first() || !r.OK {
			t.Errorf("command %d: first %.200s, now %.200s", k, first.raw, r.raw)
		}
	}
	for _, s := range sessions {
		at := map[string]int{}
		for _, ev := range e.audit(s) {
			if at[ev.Command]++; at[ev.Command] > 1 {
				t.Errorf("command %s is stored twice", ev.Command)
			}
		}
	}
	if status := e.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestDisk_DamagedStream: a bit of one session's stream was changed while the
// engine was away. It starts, other sessions work, the damaged one is refused
// with a code and not half answered, nothing can be added to it, and the audit
// of what is left names the damage.
func TestDisk_DamagedStream(t *testing.T) {
	t.Parallel()
	e, bad, good := twoSessions(t)
	e.stop()
	damageStream(t, e.dir, bad, func(b []byte) { b[strings.Index(string(b), "number 10")+8] ^= 0x03 })
	e.up(t)
	e.must(good, "message.submit", obj{"content": "still here"}, id("still"))
	if len(e.audit(good)) != 22 {
		t.Error("the other session lost something")
	}
	if r := e.request(readMessage(bad, nil)); r.code() != "malformed_state" {
		t.Errorf("read: %s", r.raw)
	}
	e.refused("malformed_state", bad, "message.submit", obj{"content": "more"})
	if report := e.findings(bad, events.Head{}); !strings.Contains(report, `"seq":12,"kind":"missing"`) {
		t.Errorf("audit: %s", report)
	}
	e.must(good, "message.submit", obj{"content": "and on"})
}

// TestDisk_StreamCutOffByTheServer: the server cuts a stream off where its file
// is unreadable. Nothing in the file tells that from a shorter history; a head
// that was noted down elsewhere does.
func TestDisk_StreamCutOffByTheServer(t *testing.T) {
	t.Parallel()
	e, bad, good := twoSessions(t)
	noted := e.readWith(bad, nil)
	e.stop()
	damageStream(t, e.dir, bad, func(b []byte) {
		for i := len(b) / 3; i < len(b)/2; i++ {
			b[i] = 0xa5
		}
	})
	e.up(t)
	if report := e.findings(bad, events.Head{Seq: noted.Sequence, Hash: noted.HeadHash}); !strings.Contains(report, `"cut_off"`) && !strings.Contains(report, `"missing"`) {
		t.Errorf("audit: %s", report)
	}
	e.must(good, "message.submit", obj{"content": "still here"})
	e.audit(good)
}

// twoSessions is an engine with two sessions of 21 events.
func twoSessions(t *testing.T) (e *engine, bad, good string) {
	t.Helper()
	e = start(t)
	bad, good = e.create("-bad"), e.create("-good")
	for i := range 20 {
		e.must(bad, "message.submit", obj{"content": fmt.Sprint("number ", i)})
		e.must(good, "message.submit", obj{"content": "a"})
	}
	return e, bad, good
}

// damageStream changes the block file of a session's stream.
func damageStream(t *testing.T, dir, session string, change func([]byte)) {
	t.Helper()
	var block string
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, "SESSION_"+session) && strings.HasSuffix(path, "1.blk") {
			block = path
		}
		return err
	}))
	b, err := os.ReadFile(block)
	must(t, err)
	change(b)
	must(t, os.WriteFile(block, b, 0o600))
}

// findings audits what the server still gives of a damaged stream.
func (c *client) findings(session string, noted events.Head) string {
	c.t.Helper()
	s, err := c.js.Stream(c.t.Context(), "SESSION_"+session)
	must(c.t, err)
	var list []stored
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		if m, err := s.GetMsg(c.t.Context(), seq); err == nil {
			list = append(list, stored{payload: m.Data, subject: m.Subject, streamSeq: m.Sequence})
		}
	}
	report, err := aggregate.Audit(records(session, list), aggregate.AuditOptions{Session: session, Head: noted})
	must(c.t, err)
	return jsonText(report.Findings)
}

// TestDisk_FolderTakesNoWrites: a data folder without the right to write ends
// the start with status 1 and names the folder.
func TestDisk_FolderTakesNoWrites(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "culm-readonly-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	must(t, os.Mkdir(data, 0o755))                                    //nolint:gosec // empty
	must(t, errors.Join(os.Chmod(data, 0o555), os.Chmod(dir, 0o555))) //nolint:gosec // empty
	for _, folder := range []string{data, filepath.Join(dir, "new")} {
		cmd := command(slices.Concat([]string{"--listen", "127.0.0.1:0", "--data", folder}, bare)...)
		if os.Geteuid() == 0 { // rights do not bind root
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		p := launch(t, cmd)
		if status := p.wait(); status != 1 || !strings.Contains(p.output(), folder) || !strings.Contains(p.output(), "permission denied") || strings.Contains(p.output(), "goroutine ") {
			t.Errorf("status %d:\n%s", status, p.output())
		}
	}
}
