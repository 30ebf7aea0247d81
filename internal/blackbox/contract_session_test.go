package blackbox

import (
	"strings"
	"testing"
)

// TestSession_SettingsMergeAndMetadataIsRemovedByNull: session.configure changes
// what it names; naming what holds already appends nothing.
func TestSession_SettingsMergeAndMetadataIsRemovedByNull(t *testing.T) {
	c := common(t)
	s := c.create("", obj{"title": "one", "metadata": obj{"a": "1", "b": "2"}, "gold": obj{"enabled": false, "n": 9007199254740993}})
	c.must(s, "session.configure", `{"title":"two","metadata":{"a":null,"c":"3"},"gold":null}`)
	c.nothing(s, "session.configure", obj{"title": "two"})
	c.refused("invalid_command", s, "session.configure", obj{})
	c.refused("invalid_command", s, "session.configure", obj{"mode": "auto"})
	state := c.part(s, "session")
	meta, _ := state["metadata"].(obj)
	if state["title"] != "two" || len(meta) != 2 || meta["b"] != "2" || meta["c"] != "3" || state["gold"] != nil {
		t.Errorf("settings: %v", state)
	}
	if e := c.stream(s)[0]; !strings.Contains(string(e.payload), "9007199254740993") {
		t.Errorf("gold was rounded: %s", e.payload)
	}
}

// TestSession_ModesAndPlanCarryTheirAudit: each change raises the revision by
// one, plan covers the mode, repeats append nothing.
func TestSession_ModesAndPlanCarryTheirAudit(t *testing.T) {
	c := common(t)
	s := c.create("", obj{"mode": "bypass"})
	c.must(s, "session.enter_plan", obj{"reason": "look first"})
	c.nothing(s, "session.enter_plan", nil)
	c.must(s, "session.set_mode", obj{"mode": "auto"})
	c.nothing(s, "session.set_mode", obj{"mode": "auto"})
	c.must(s, "session.exit_plan", nil)
	c.nothing(s, "session.exit_plan", nil)
	c.refused("invalid_command", s, "session.set_mode", obj{"mode": "yolo"})
	want := []string{"1 bypass bypass", "2 bypass plan", "3 auto plan", "4 auto auto"}
	for i, e := range c.audit(s) {
		got := strings.Join([]string{jsonText(e.Data["audit_revision"]), e.Data["requested_mode"].(string), e.Data["effective_mode"].(string)}, " ")
		if got != want[i] {
			t.Errorf("%s: %q, want %q", e.Type, got, want[i])
		}
	}
}

// TestSession_PlanRefusesMutatingCalls: at tool.start, by the runner's word or
// by the name of the tool.
func TestSession_PlanRefusesMutatingCalls(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"w", "Write", "{}"}, call{"g", "Grep", "{}"})
	c.must(s, "session.enter_plan", nil)
	r.refused("plan_mode", "tool.start", obj{"tool_call_id": "w", "mutating": true})
	r.must("tool.start", obj{"tool_call_id": "g", "mutating": false})
	c.must(s, "session.exit_plan", nil)
	r.must("tool.start", obj{"tool_call_id": "w", "mutating": true})
}

// TestSession_CloseEndsEverything: a live run with its loop, a requested run, and
// calls that wait; nothing is accepted afterwards, reads go on.
func TestSession_CloseEndsEverything(t *testing.T) {
	c := common(t)
	live := c.create("-live")
	r := c.beginLoop(live, 2, 5)
	r.calls(r.admit(), call{"a", "A", "{}"}, call{"b", "B", "{}"}, call{"w", "Write", "{}"})
	r.startTool("a")
	r.park("w")
	c.must(live, "session.close", obj{"reason": "enough"})
	c.wantLoop(live, "cancelled", "1/0/1")
	closed := c.last(live, "session.closed")
	if len(objects(closed.Data["voided"])) != 2 || closed.Data["reason"] != "enough" {
		t.Errorf("closed: %s", closed.payload)
	}
	requested := c.create("-requested")
	c.must(requested, "run.request", obj{"prompt": "p"})
	c.must(requested, "session.close", nil)
	for _, s := range []string{live, requested} {
		if run := c.part(s, "run"); run != nil {
			t.Errorf("%s still has a run: %v", s, run)
		}
		for name, data := range map[string]any{"message.submit": obj{"content": "a"}, "run.request": obj{"prompt": "p"}, "session.close": nil, "loop.stop": nil, "note.append": obj{"kind": "k", "data": obj{}}, "session.configure": obj{"title": "t"}} {
			c.refused("session_closed", s, name, data)
		}
		c.refused("session_exists", s, "session.create", nil)
		c.audit(s)
	}
	if x := r.do("round.start", nil); x.code() != "session_closed" && x.code() != "stale_run" {
		t.Errorf("the runner of a closed session: %s", x.raw)
	}
}

// TestSession_DeletedAndCreatedAgain: nothing of the former life is left to
// read, the new one starts above it, and no id or birth of the former fits.
func TestSession_DeletedAndCreatedAgain(t *testing.T) {
	c := common(t)
	s := c.create("")
	c.must(s, "message.submit", obj{"content": "secret"}, id("m"))
	old := c.readWith(s, nil)
	c.refused("birth_changed", s, "session.delete", obj{"birth": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
	c.refused("invalid_command", s, "session.delete", obj{})
	c.refused("wrong_expected_sequence", s, "session.delete", obj{"birth": old.Birth}, expect(1))
	c.nothing(s, "session.delete", obj{"birth": old.Birth})
	c.refused("session_not_found", s, "session.delete", obj{"birth": old.Birth})
	c.refused("session_not_found", s, "message.submit", obj{"content": "a"})
	if r := c.request(readMessage(s, nil)); r.code() != "session_not_found" {
		t.Errorf("read of a deleted session: %s", r.raw)
	}
	again := c.must(s, "session.create", nil)
	if again.Sequence <= old.Sequence {
		t.Errorf("the new life starts at %d, the former ended at %d", again.Sequence, old.Sequence)
	}
	c.refused("birth_changed", s, "session.delete", obj{"birth": old.Birth})
	c.refused("wrong_expected_sequence", s, "message.submit", obj{"content": "a"}, expect(old.Sequence))
	if r := c.must(s, "message.submit", obj{"content": "secret"}, id("m")); r.Duplicate {
		t.Errorf("a receipt of the former life: %s", r.raw)
	}
	list := c.audit(s)
	if len(list) != 2 || list[0].Seq != old.Sequence+2 || list[0].streamSeq != list[0].Seq || list[0].Prevhash != "" || list[0].Birth == old.Birth {
		t.Errorf("the new life: %+v", list)
	}
}

// TestSession_DeletedManyTimes: sequences grow over the lives of one id.
func TestSession_DeletedManyTimes(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	var before uint64
	births := map[string]bool{}
	for range 5 {
		now := c.must(s, "session.create", nil).Sequence
		// One is left out above a former life.
		if want := before + 1 + min(before, 1); now != want {
			t.Fatalf("starts at %d after %d", now, before)
		}
		c.must(s, "message.submit", obj{"content": "a"})
		r := c.readWith(s, nil)
		births[r.Birth], before = true, r.Sequence
		c.must(s, "session.delete", obj{"birth": r.Birth})
	}
	if len(births) != 5 {
		t.Errorf("births: %v", births)
	}
}

// TestSession_ChildrenAndKinds: a child names its parent and call.
func TestSession_ChildrenAndKinds(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	for _, bad := range []obj{
		{"kind": "child"}, {"kind": "root", "parent": obj{"session": "p", "tool_call_id": "c"}}, {"parent": obj{"session": "a.b", "tool_call_id": "c"}},
		{"parent": obj{"session": "p"}}, {"kind": "twin"}, {"mode": "x"}, {"model": obj{"provider": "p"}}, {"model": obj{"provider": "", "model": "m"}}, {"gold": []int{1}}, {"metadata": obj{"a": 1}},
	} {
		c.refused("invalid_command", s, "session.create", bad)
	}
	c.must(s, "session.create", obj{"kind": "child", "parent": obj{"session": "p", "tool_call_id": "c"}})
	if st := c.part(s, "session"); st["kind"] != "child" {
		t.Errorf("child: %v", st)
	}
}

// TestSession_NotesChangeNoState: they are in the log and nowhere else.
func TestSession_NotesChangeNoState(t *testing.T) {
	c := common(t)
	s := c.create("")
	before := jsonText(c.read(s).State)
	c.must(s, "note.append", `{"kind":"ticket","data":{"n":18446744073709551615,"x":1.10}}`)
	c.refused("invalid_command", s, "note.append", obj{"kind": "a b", "data": obj{}})
	c.refused("invalid_command", s, "note.append", obj{"kind": "k", "data": []int{}})
	if after := jsonText(c.read(s).State); after != before {
		t.Errorf("state changed:\n%s\n%s", before, after)
	}
	e := c.last(s, "note.appended")
	if !strings.Contains(string(e.payload), `{"n":18446744073709551615,"x":1.10}`) || !strings.Contains(string(e.payload), `"ignorable":true`) {
		t.Errorf("note: %s", e.payload)
	}
}
