package blackbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// hostileID is 500 bytes that no subject could hold.
var hostileID = func() string {
	s := "call.1 *> \n\t\"\\ 😀 $JS.API.> ../"
	return s + strings.Repeat("é", (500-len(s))/2) + strings.Repeat("x", (500-len(s))%2)
}()

// TestTool_IdsOfAnyShape: kept in the payload, usable in commands, never in a
// subject; too long is refused.
func TestTool_IdsOfAnyShape(t *testing.T) {
	c := common(t)
	s := c.create("")
	feed := c.listen("agent.event." + s + ".>")
	r := c.begin(s, obj{"prompt": "p"})
	x := r.calls(r.admit(), call{hostileID, "Grep", "{}"})
	if ids, _ := x.Result["tool_call_ids"].([]any); len(ids) != 1 || ids[0] != hostileID || len(hostileID) != 500 {
		t.Fatalf("ids: %s", x.raw)
	}
	r.useTool(hostileID)
	for _, e := range c.audit(s)[1:] {
		if e.subject != "agent.log."+s+"."+e.Type {
			t.Errorf("subject %q", e.subject)
		}
		if m := next(t, feed); m.Subject != "agent.event."+s+"."+e.Type {
			t.Errorf("live subject %q", m.Subject)
		}
	}
	r.admit()
	r.refused("invalid_command", "round.finish", obj{"round": 1, "message": obj{"content": "", "tool_calls": []obj{{"id": strings.Repeat("x", 5000), "name": "a", "arguments": "{}"}}}})
}

// TestTool_EmptyAndRepeatedIds: within a batch they are replaced, over rounds
// they are new calls.
func TestTool_EmptyAndRepeatedIds(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	for range 2 {
		x := r.calls(r.admit(), call{"", "a", "{}"}, call{"", "b", "{}"}, call{"", "c", "{}"}, call{"same", "d", "{}"}, call{"same", "e", "{}"}, call{"ok", "f", "{}"})
		ids, _ := x.Result["tool_call_ids"].([]any)
		distinct := map[any]bool{}
		for _, id := range ids {
			distinct[id] = true
			r.useTool(id.(string))
		}
		if len(ids) != 6 || len(distinct) != 6 || distinct[""] || ids[5] != "ok" {
			t.Errorf("ids: %v", ids)
		}
	}
	r.answer(r.admit(), "done")
	r.finish("ok")
	if n := c.count(s, "tool.finished"); n != 12 {
		t.Errorf("%d results", n)
	}
	c.audit(s)
}

// exactArguments are texts that a careless decoder would change.
var exactArguments = []string{
	`{"id":9007199254740993,"max":18446744073709551615,"e":1e400,"z":-0,"d":1.10}`,
	`{ "a" : 1 ,  "a" : 2 }`, `{"nul":"\u0000","emoji":"\ud83d\ude00","raw":"😀"}`, `{"sep":"` + "\u2028\u2029" + `"}`,
	`{"b":1,"a":{"é":"\u00e9"}}`, ``, `not json at all`, `{"html":"<&>"}`, strings.Repeat("a", 47) + "é" + strings.Repeat("😀", 100), "line\nend\r\n\ttab \x00 \x7f",
}

// TestTool_ArgumentsAreKeptByteForByte: in the log, in the transcript, in what is
// handed out for replay, with the digest of exactly these bytes.
func TestTool_ArgumentsAreKeptByteForByte(t *testing.T) {
	c := common(t)
	for i, args := range exactArguments {
		s := c.create("-" + string(rune('a'+i)))
		r := c.begin(s, obj{"prompt": "p"})
		r.calls(r.admit(), call{"w", "Write", args})
		r.park("w")
		sum := sha256.Sum256([]byte(args))
		digest := hex.EncodeToString(sum[:])
		if got := c.last(s, "tool.parked").Data["arguments_digest"]; got != digest {
			t.Errorf("%q: digest %v, want %s", args, got, digest)
		}
		var message struct {
			ToolCalls []struct{ Arguments string } `json:"tool_calls"`
		}
		must(t, json.Unmarshal([]byte(jsonText(c.last(s, "round.finished").Data["message"])), &message))
		c.decide(s, "w", "allow_once")
		q := c.claimNext(s)
		rep, _ := q.must("replay.start", nil).Result["replay"].(obj)
		if message.ToolCalls[0].Arguments != args || rep["arguments"] != args || rep["arguments_digest"] != digest {
			t.Errorf("%q: stored %q, replayed %q", args, message.ToolCalls[0].Arguments, rep["arguments"])
		}
		c.audit(s)
	}
}

// TestTool_TextThatIsNoneIsRefused: a lone surrogate or a broken byte is never
// replaced and then approved.
func TestTool_TextThatIsNoneIsRefused(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.admit()
	at := c.sequence(s)
	for _, bad := range []string{`"\ud800"`, `"\udc00"`, `"\ud83dx"`, "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\""} {
		body := jsonText(r.body(obj{"round": 0, "message": obj{"content": "", "tool_calls": []obj{{"id": "c", "name": "a", "arguments": "ARGS"}}}}))
		c.refused("invalid_json", s, "round.finish", strings.Replace(body, `"ARGS"`, bad, 1))
	}
	if c.sequence(s) != at {
		t.Error("something was stored")
	}
}

// TestTool_ErrorResultsAreResults: a failed call is told to the model and the
// round goes on; content of any text is kept.
func TestTool_ErrorResultsAreResults(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"c", "Bash", "{}"}, call{"d", "Bash", "{}"})
	r.startTool("c")
	r.must("tool.finish", obj{"tool_call_id": "c", "success": false, "content": "exit 1\x00\x1b[31m", "error": "exit status 1", "elapsed_ms": 12})
	r.useTool("d")
	r.answer(r.admit(), "I see")
	r.finish("ok")
	for _, m := range objects(c.read(s).State["messages"]) {
		if m["tool_call_id"] == "c" && (m["success"] != false || m["content"] != "exit 1\x00\x1b[31m") {
			t.Errorf("result: %v", m)
		}
	}
	c.audit(s)
}

// TestTool_NothingRunsTwice: neither start nor finish of a call is accepted
// again, in the same round or another.
func TestTool_NothingRunsTwice(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"c", "Bash", "{}"})
	r.useTool("c")
	for range 2 {
		r.refused("call_not_open", "tool.start", obj{"tool_call_id": "c"})
		r.refused("call_not_open", "tool.finish", obj{"tool_call_id": "c", "success": true, "content": "again"})
		r.refused("call_not_open", "tool.park", obj{"tool_call_id": "c", "question": "Run it?"})
	}
	r.admit()
	x := r.do("tool.start", obj{"tool_call_id": "c"})
	if x.OK {
		t.Errorf("a call of an earlier round was started: %s", x.raw)
	}
	if n := c.count(s, "tool.started"); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// TestTool_EnforcedPolicyWantsAnAuthorization: where the session says so.
func TestTool_EnforcedPolicyWantsAnAuthorization(t *testing.T) {
	c := common(t)
	s := c.create("", obj{"enforce_policy": true})
	r := c.begin(s, obj{"prompt": "p"})
	r.calls(r.admit(), call{"c", "Bash", "{}"})
	r.refused("not_authorized", "tool.start", obj{"tool_call_id": "c"})
}
