package bus

import (
	"errors"
	"strings"
	"testing"

	"culm/aggregate"
)

func TestValidToken(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]bool{
		"a": true, "A-z_09": true, strings.Repeat("x", 64): true, "_engine": true,
		"": false, strings.Repeat("x", 65): false, "a.b": false, "a b": false, "*": false, ">": false,
		"é": false, "a\x00": false, "a\n": false, "$": false, "\xff": false,
	} {
		if got := ValidToken(token); got != want {
			t.Errorf("ValidToken(%q) = %v, want %v", token, got, want)
		}
	}
}

func TestNewSubjects_RefusesWhatIsNoPrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", ".", "a.", ".a", "a..b", "a.*", ">", "a b", "_INBOX", "_R_", "a._b", "$JS", strings.Repeat("a.", 80) + "a"} {
		if _, err := NewSubjects(prefix); !errors.Is(err, ErrInvalidPrefix) {
			t.Errorf("NewSubjects(%q): %v", prefix, err)
		}
	}
	for _, prefix := range []string{"agent", "a.b", "tenant-1.agent"} {
		s, err := NewSubjects(prefix)
		if err != nil || s.Prefix() != prefix {
			t.Errorf("NewSubjects(%q) = %q, %v", prefix, s.Prefix(), err)
		}
	}
}

func TestSubjects_ParseWhatTheyBuild(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"agent", "a.b"} {
		s, err := NewSubjects(prefix)
		if err != nil {
			t.Fatal(err)
		}
		for k, subject := range map[kind]string{
			kindCmd: s.Command("alice", "S1", "run.request"), kindLater: s.Later("alice", "S1", "run.request"), kindRefused: s.Refused("alice", "S1", "run.request"),
		} {
			var r aggregate.Request
			if e := s.decodeAddress(k, subject, &r); e != nil || r.Actor != "alice" || r.Session != "S1" || r.Name != "run.request" {
				t.Errorf("%s: %+v %v", subject, r, e)
			}
		}
		if session, typ, ok := s.ParseEvent(s.Event("S1", "run.started")); session != "S1" || typ != "run.started" || !ok {
			t.Errorf("event: %q %q %v", session, typ, ok)
		}
		if session, run, ok := s.ParseDelta(s.Delta("S1", "R1")); session != "S1" || run != "R1" || !ok {
			t.Errorf("delta: %q %q %v", session, run, ok)
		}
		if view, verb, ok := s.ParseQuery(s.Query("runs", "list")); view != "runs" || verb != "list" || !ok {
			t.Errorf("query: %q %q %v", view, verb, ok)
		}
		if session, ok := s.ParseRead(s.Read("S1")); session != "S1" || !ok {
			t.Errorf("read: %q %v", session, ok)
		}
	}
	if got := (Subjects{}).Command("a", "s", "n.v"); got != "agent.cmd.a.s.n.v" {
		t.Errorf("zero value builds %q", got)
	}
}

func TestSubjects_ParseRefusesForeignSubjects(t *testing.T) {
	t.Parallel()
	s := Subjects{}
	for _, subject := range []string{
		"", "agent", "agent.cmd", "agent.cmd.", "agentx.cmd.a.s.n.v", "agent.cmdx.a.s.n.v", "agent.later.a.s.n.v", "agent.cmd.a.s.n",
		"agent.cmd.a.s.n.v.w", "agent.cmd..s.n.v", "agent.cmd.a.s.n.", "agent.cmd.a.*.n.v", "agent.cmd.a.s.>", "x.agent.cmd.a.s.n.v", "agent-cmd.a.s.n.v",
	} {
		if e := s.decodeAddress(kindCmd, subject, new(aggregate.Request)); e == nil {
			t.Errorf("decodeAddress(%q) accepted", subject)
		}
	}
	for _, subject := range []string{"agent.read.", "agent.read.a.b", "agent.read.*", "agent.read"} {
		if _, ok := s.ParseRead(subject); ok {
			t.Errorf("ParseRead(%q) accepted", subject)
		}
	}
}

func FuzzSubjects(f *testing.F) {
	f.Add("agent.cmd.a.s.n.v")
	f.Add("agent.event.s.n.v")
	f.Fuzz(func(t *testing.T, subject string) {
		s := Subjects{}
		var r aggregate.Request
		if e := s.decodeAddress(kindCmd, subject, &r); e == nil && s.Command(r.Actor, r.Session, r.Name) != subject {
			t.Fatalf("command %q", subject)
		}
		if session, typ, ok := s.ParseEvent(subject); ok && s.Event(session, typ) != subject {
			t.Fatalf("event %q", subject)
		}
		if session, run, ok := s.ParseDelta(subject); ok && s.Delta(session, run) != subject {
			t.Fatalf("delta %q", subject)
		}
	})
}
