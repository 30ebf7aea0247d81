package blackbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestRead_StateAtEverySequence: what was read after each event is read again
// later by its number, byte for byte; by another fold it is the same.
func TestRead_StateAtEverySequence(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	c.must(s, "session.create", nil)
	var states []string
	note := func() { states = append(states, rawState(t, c.readWith(s, obj{"transcript": true}))) }
	note()
	r := c.beginAt(s, note)
	for i := range 3 {
		r.must("round.start", nil)
		note()
		r.answer(i, fmt.Sprint("answer ", i))
		note()
	}
	r.finish("ok")
	note()
	for i, want := range states {
		x := c.readWith(s, obj{"transcript": true, "at_sequence": i + 1})
		if got := rawState(t, x); got != want || x.Sequence != uint64(i+1) {
			t.Errorf("at %d:\n%s\n%s", i+1, want, got)
		}
	}
	for _, beyond := range []any{len(states) + 1, 1 << 40, 0, -1, "1", 1.5} {
		if x := c.request(readMessage(s, obj{"at_sequence": beyond})); x.code() != "invalid_command" {
			t.Errorf("at %v: %s", beyond, x.raw)
		}
	}
}

// beginAt begins a loop of three and calls note after each of its events.
func (c *client) beginAt(s string, note func()) *run {
	c.t.Helper()
	id := c.must(s, "run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 3, "max_total_rounds": 5}}).text("run_id")
	note()
	r := c.claim(s, id)
	note()
	return r
}

func rawState(t *testing.T, r reply) string {
	t.Helper()
	var x struct {
		State json.RawMessage `json:"state"`
	}
	must(t, json.Unmarshal([]byte(r.raw), &x))
	return string(x.State)
}

// TestRead_RefusesWhatIsNoRead: with codes, never with silence.
func TestRead_RefusesWhatIsNoRead(t *testing.T) {
	c := common(t)
	s := c.create("")
	for body, want := range map[string]string{
		`{"x":1}`: "invalid_command", `[]`: "invalid_json", `{`: "invalid_json", `{"transcript":1}`: "invalid_command", `{"transcript":true,"transcript":true}`: "invalid_json",
		`{"events":{"limit":-1}}`: "invalid_command", `{"events":{"limit":100000}}`: "invalid_command", `{"after_message":"nope","transcript":true}`: "invalid_command",
	} {
		if r := c.request(readMessage(s, body)); r.code() != want {
			t.Errorf("%s: want %s, got %s", body, want, r.raw)
		}
	}
	for session, want := range map[string]string{"nobody-here": "session_not_found", "_x": "invalid_token", "ä": "invalid_token", "a.b": "invalid_token", "*": "invalid_token"} {
		if r := c.request(readMessage(session, nil)); r.code() != want {
			t.Errorf("%s: want %s, got %s", session, want, r.raw)
		}
	}
	m := readMessage(s, "")
	m.Data = nil
	if r := c.request(m); !r.OK || r.HeadHash == "" || r.Birth == "" {
		t.Errorf("an empty read: %s", r.raw)
	}
}

// TestRead_EventsAreTheStoredBytes: in pages of any size they add up to the
// stream, and head_hash is the hash of the last.
func TestRead_EventsAreTheStoredBytes(t *testing.T) {
	c := common(t)
	s := c.create("")
	for i := range 23 {
		c.must(s, "message.submit", obj{"content": fmt.Sprint(i)})
	}
	want := c.stream(s)
	for _, limit := range []int{1, 7, 24, 100} {
		var got [][]byte
		var after any = 0
		for after != nil {
			x := c.readWith(s, obj{"events": obj{"after": after, "limit": limit}})
			if len(x.Events) > limit {
				t.Fatalf("%d events, limit %d", len(x.Events), limit)
			}
			for _, e := range x.Events {
				got = append(got, e)
			}
			after = x.Next
		}
		if !slices.EqualFunc(got, want, func(a []byte, b stored) bool { return bytes.Equal(a, b.payload) }) {
			t.Errorf("limit %d: %d events, want %d equal ones", limit, len(got), len(want))
		}
	}
	sum := sha256.Sum256(want[len(want)-1].payload)
	if x := c.readWith(s, nil); x.HeadHash != hex.EncodeToString(sum[:]) {
		t.Errorf("head: %s", x.HeadHash)
	}
}

// TestRead_LongTranscriptComesInPages: more than one answer can hold, each
// message once and in order.
func TestRead_LongTranscriptComesInPages(t *testing.T) {
	c := common(t)
	s := c.create("")
	for i := range 12 {
		c.must(s, "message.submit", obj{"content": fmt.Sprint(i, " ", strings.Repeat("x", 200<<10))})
	}
	var got []string
	query, pages := obj{"transcript": true}, 0
	for {
		x := c.readWith(s, query)
		pages++
		for _, m := range objects(x.State["messages"]) {
			n, _, _ := strings.Cut(m["content"].(string), " ")
			got = append(got, n)
		}
		if x.Next == nil {
			break
		}
		query["after_message"] = x.Next
	}
	if strings.Join(got, " ") != "0 1 2 3 4 5 6 7 8 9 10 11" || pages < 3 {
		t.Errorf("%d pages: %v", pages, got)
	}
}

// TestEvent_EnvelopeAndChain: what section 4 of the contract says of an event.
func TestEvent_EnvelopeAndChain(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	list := allKinds(c, s)
	prev, lastID, birth := "", "", ""
	for i, e := range c.audit(s) {
		if birth == "" {
			birth = e.Birth
		}
		wrong := map[string]bool{
			"specversion": e.Specversion != "1.0", "source": e.Source != "culm/sessions/"+s, "subject": e.Subject != s, "type": "agent.log."+s+"."+e.Type != e.subject,
			"dataschema": e.Dataschema != "culm:"+e.Type+":1", "content": e.Datacontenttype != "application/json", "seq": e.Seq != uint64(i+1) || e.streamSeq != e.Seq,
			"prevhash": e.Prevhash != prev, "birth": e.Birth != birth || birth == "", "id": e.ID <= lastID || len(e.ID) != 26, "command": e.Command != list[i].first.Command,
			"header": e.header.Get("Content-Type") != "application/cloudevents+json", "time": !strings.HasSuffix(e.Time, "Z"),
		}
		for what, is := range wrong {
			if is {
				t.Errorf("%s of event %d: %s", what, i+1, e.payload)
			}
		}
		sum := sha256.Sum256(e.payload)
		prev, lastID = hex.EncodeToString(sum[:]), e.ID
	}
}

// TestFeed_IsWhatIsStored: the live messages are the stored bytes with the
// sequence, in order; refused commands show nowhere on it.
func TestFeed_IsWhatIsStored(t *testing.T) {
	c := common(t)
	s := sessionName(t, "")
	feed := c.listen("agent.event." + s + ".>")
	allKinds(c, s)
	c.refused("wrong_expected_sequence", s, "message.submit", obj{"content": "no"}, expect(1))
	c.refused("stale_run", s, "round.start", obj{"run_id": "x", "fence": 1})
	for _, e := range c.stream(s) {
		m := next(t, feed)
		if !bytes.Equal(m.Data, e.payload) || m.Header.Get("Nats-Sequence") != strconv.FormatUint(e.streamSeq, 10) || m.Header.Get("Nats-Stream") != "SESSION_"+s ||
			m.Header.Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("live %v %s\nstored %s", m.Header, m.Data, e.payload)
		}
	}
	if rest := drain(feed); len(rest) > 0 {
		t.Errorf("%d more messages, the first: %s", len(rest), rest[0].Data)
	}
}

// TestFeed_DeltasAreNotStored: they reach who listens and no log.
func TestFeed_DeltasAreNotStored(t *testing.T) {
	c := common(t)
	s := c.create("")
	r := c.begin(s, obj{"prompt": "p"})
	r.admit()
	heard := c.listen("agent.delta." + s + ".>")
	at := c.sequence(s)
	for i := range 1000 {
		must(t, c.nc.PublishMsg(&nats.Msg{Subject: "agent.delta." + s + "." + r.id, Data: fmt.Appendf(nil, `{"round":0,"index":%d,"kind":"text","text":"x"}`, i)}))
	}
	for range 1000 {
		next(t, heard)
	}
	if now := c.sequence(s); now != at {
		t.Errorf("deltas moved the session from %d to %d", at, now)
	}
}

// TestStream_CannotBeCutByAClient: purge and removal of messages are refused.
func TestStream_CannotBeCutByAClient(t *testing.T) {
	c := common(t)
	s := c.create("")
	c.must(s, "message.submit", obj{"content": "a"})
	stream, err := c.js.Stream(t.Context(), "SESSION_"+s)
	must(t, err)
	if err := stream.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("an event could be deleted")
	}
	if err := stream.Purge(t.Context()); err == nil {
		t.Error("the stream could be purged")
	}
	if n := len(c.audit(s)); n != 2 {
		t.Errorf("%d events", n)
	}
}
