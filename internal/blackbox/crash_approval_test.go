package blackbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestCrash_ApprovedCallsRunOnceAtMost kills an engine, its runner included,
// around parking, decision and replay, and starts it again on the same data: what
// waits goes on waiting under the same generation, a decision that was answered
// holds, an approved call is handed out once for each approval, with the bytes
// that were approved, and one whose outcome was lost waits for a person again.
func TestCrash_ApprovedCallsRunOnceAtMost(t *testing.T) {
	t.Parallel()
	kills := envNumber(t, "CULM_CRASH_ROUNDS", 8)
	seed := uint64(envNumber(t, "CULM_CRASH_SEED", int(time.Now().UnixNano()>>10))) //nolint:gosec // any number will do
	t.Logf("%d kills, CULM_CRASH_SEED=%d", kills, seed)
	e := &engine{dir: t.TempDir()}
	e.args = []string{"--listen", "127.0.0.1:0", "--data", e.dir, "--no-projector", "--http", "off", "--lease", "3s", "--config", recordings(t)}
	e.up(t)
	g := &gate{e: e, t: t, random: rand.New(rand.NewPCG(seed, 1)), kills: kills} //nolint:gosec // repeatable
	for n := 0; g.killed < kills; n++ {
		if n%3 == 2 { // asked two questions, about nothing else
			g.play(fmt.Sprint("asked", n), obj{"mode": "bypass", "model": obj{"provider": "questions", "model": "m"}})
		} else {
			g.play(fmt.Sprint("gated", n), obj{})
		}
		if t.Failed() {
			t.Fatalf("after kill %d", g.killed)
		}
	}
	t.Logf("%d kills; %d approvals; %d calls were lost on the way and decided about again", g.killed, g.approved, g.lost)
}

// recordings is a configuration that plays the sample, and a session that asks
// the user something and has a plan approved.
func recordings(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "recordings-") // a plain name: the file may hold nothing that looks like a key
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	questions := filepath.Join(dir, "questions.jsonl")
	text := ""
	for i, c := range []string{`"AskUserQuestion","input":{"questions":[{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}]}`, `"ExitPlanMode","input":{}`, ""} {
		content := fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%s}`, i, c)
		if c == "" {
			content = `{"type":"text","text":"done"}`
		}
		text += fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","role":"assistant","model":"m","content":[%s],"stop_reason":null}}`+"\n", i, content)
	}
	must(t, os.WriteFile(questions, []byte(text), 0o600))
	sample, err := filepath.Abs("../../examples/three_drafts.jsonl")
	must(t, err)
	name := filepath.Join(dir, "engine.yaml")
	must(t, os.WriteFile(name, []byte(fmt.Sprintf("providers:\n  - {id: sample, type: recorded, default: true, file: %q}\n  - {id: questions, type: recorded, file: %q}\n", sample, questions)), 0o600))
	return name
}

// gate is a person who decides about sessions of an engine that is killed.
type gate struct {
	e              *engine
	t              *testing.T
	random         *rand.Rand
	kills, killed  int
	approved, lost int
}

func (g *gate) kill() {
	g.e.kill()
	g.killed++
	g.e.up(g.t)
}

// play has one session run to its end.
func (g *gate) play(session string, settings obj) {
	c := g.e.client
	c.request(message(session, "session.create", settings, id(session+"-create")))
	c.request(message(session, "run.request", obj{"prompt": "go"}, id(session+"-run")))
	end := time.Now().Add(patience)
	for step := 0; ; step++ {
		waiting := c.pending(session)
		switch {
		case len(waiting) > 0:
			g.decide(session, waiting[0], step)
			end = time.Now().Add(patience)
		case c.part(session, "run") != nil:
			time.Sleep(5 * time.Millisecond)
		default:
			r := c.request(message(session, "run.resume", nil, id(fmt.Sprint(session, "-resume", step))))
			if r.text("outcome") == "nothing_pending" {
				g.check(session)
				return
			}
		}
		if time.Now().After(end) {
			g.t.Fatalf("%s does not come to an end: %s", session, c.types(session))
		}
	}
}

// decide approves what waits, and kills the engine at one of its moments.
func (g *gate) decide(session string, item obj, step int) {
	c := g.e.client
	name, body := "approval.decide", obj{"tool_call_id": item["tool_call_id"], "generation": item["generation"], "decision": "allow_once"}
	switch item["kind"] {
	case "question":
		q, _ := item["question"].(obj)
		options, _ := q["options"].([]any)
		name, body = "question.answer", obj{"tool_call_id": item["tool_call_id"], "answer": options[0]}
	case "unknown":
		g.lost++
		if g.random.IntN(2) == 0 {
			name, body = "tool.resolve", obj{"tool_call_id": item["tool_call_id"], "generation": item["generation"], "success": true, "content": "it is there"}
		}
	}
	decision := message(session, name, body, id(fmt.Sprint(session, "-decide", step)))
	feed := c.listen("agent.event." + session + ".>")
	moment := g.random.IntN(5)
	switch moment {
	case 0: // while it waits
		g.kill()
		g.same(session, item)
	case 1: // a stop is nobody's decision
		if status := g.e.stop(); status != 0 {
			g.t.Errorf("exit status %d", status)
		}
		g.e.up(g.t)
		g.same(session, item)
	}
	if r := c.request(decision); !r.OK {
		g.t.Fatalf("%s: %s", name, r.raw)
	}
	if name == "approval.decide" {
		g.approved++
	}
	switch moment {
	case 2: // right after the answer
		time.Sleep(time.Duration(g.random.IntN(3000)) * time.Microsecond)
		g.kill()
	case 3: // between the start of the replay and its outcome
		if name == "approval.decide" && g.replays(feed) {
			time.Sleep(time.Duration(g.random.IntN(300)) * time.Microsecond)
			g.kill()
		}
	}
	g.check(session)
}

// replays waits for the start of the replay. There is none where the runner has
// lost its lease before it, as one without a processor may.
func (g *gate) replays(feed <-chan *nats.Msg) bool {
	for {
		subject := next(g.t, feed).Subject
		if strings.HasSuffix(subject, ".replay.started") || strings.HasSuffix(subject, ".run.interrupted") {
			return strings.HasSuffix(subject, ".replay.started")
		}
	}
}

// same: the item waits as it did.
func (g *gate) same(session string, item obj) {
	list := g.e.pending(session)
	if len(list) == 0 || jsonText(list[0]) != jsonText(item) {
		g.t.Errorf("%s waited as %s, after the start as %s", session, jsonText(item), jsonText(list))
	}
}

// check reads the stream: what ran, and by whose word.
func (g *gate) check(session string) {
	g.t.Helper()
	arguments, digests, policy := map[string]string{}, map[any]any{}, map[any]bool{}
	word, handedOut, runs, words := map[any]bool{}, map[any]int{}, map[any]int{}, map[any]int{}
	for _, e := range g.e.audit(session) {
		message, generation := e.Data["message_id"], e.Data["generation"]
		switch e.Type {
		case "round.finished":
			m, _ := e.Data["message"].(obj)
			for _, c := range objects(m["tool_calls"]) {
				sum := sha256.Sum256([]byte(c["arguments"].(string)))
				arguments[fmt.Sprint(c["id"])] = hex.EncodeToString(sum[:])
			}
		case "tool.parked":
			digests[message] = e.Data["arguments_digest"]
			if digests[message] != arguments[fmt.Sprint(e.Data["tool_call_id"])] {
				g.t.Errorf("%s %d: the digest is not that of the arguments", session, e.Seq)
			}
		case "tool.authorized":
			policy[message] = true
			words[message]++
		case "question.answered":
			if runs[message]++; runs[message] > 1 || e.Data["content"] != e.Data["answer"] {
				g.t.Errorf("%s %d: answered %d times, as %v", session, e.Seq, runs[message], e.Data["content"])
			}
		case "approval.decided":
			word[generation] = true
			words[message]++
		case "tool.started":
			if runs[message]++; !policy[message] || runs[message] > 1 {
				g.t.Errorf("%s %d: started %d times, allowed by policy: %t", session, e.Seq, runs[message], policy[message])
			}
		case "replay.started":
			handedOut[generation]++
			if runs[message]++; !word[generation] || handedOut[generation] > 1 || runs[message] > words[message] {
				g.t.Errorf("%s %d: handed out %d times under one approval, approved: %t", session, e.Seq, handedOut[generation], word[generation])
			}
		}
	}
}
